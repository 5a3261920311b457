"""Where absent nodes can be had again, with the restrictions of a retriever."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.retrievers import BaseRetriever, VectorIndexRetriever
from llama_index.core.schema import BaseNode
from llama_index.core.vector_stores import (
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
    SimpleVectorStore,
)
from llama_index.core.vector_stores.utils import build_metadata_filter_fn

from synapse_retrievers import NodeId

NodeKind: TypeAlias = str | Callable[[BaseNode], str | None]
"""`"id"`, `"source"`, `"metadata:<key>"`, or what gives a node's name."""

Fetch: TypeAlias = Callable[[Sequence[NodeId]], Mapping[NodeId, BaseNode]]

_CHUNKS_READ = 64

# The last is an auto retriever's: there a model makes a filter for every query.
_RESTRICTING = ("_filters", "_doc_ids", "_kwargs", "_extra_filters", "_vector_store_info")


@dataclass(frozen=True, slots=True)
class Fetched:
    """Nodes in any order, and the ids that are surely not there any more."""

    nodes: Sequence[BaseNode]
    gone: frozenset[str] = frozenset()


class Shelf(Protocol):
    """Where absent nodes can be had, with the restrictions of one retriever."""

    def by_ids(self, ids: Sequence[str]) -> Fetched:
        """The nodes of these ids that the restrictions let through."""
        ...

    def of_source(self, kind: NodeKind, source: str) -> list[BaseNode] | None:
        """Some chunks of a source; None: it cannot tell."""
        ...


@dataclass(frozen=True, slots=True)
class IndexShelf:
    """An index's vector store if it holds the text, its docstore otherwise."""

    vector_store: Any
    docstore: Any
    nodes_dict: Mapping[str, str]
    filters: MetadataFilters | None = None
    node_ids: frozenset[str] | None = None
    doc_ids: frozenset[str] | None = None

    def by_ids(self, ids: Sequence[str]) -> Fetched:
        asked = [one for one in dict.fromkeys(ids) if self.node_ids is None or one in self.node_ids]
        there = [one for one in asked if self._is_indexed(one)]
        found: list[BaseNode] = []
        if there and self.vector_store.stores_text:  # get_nodes([]) is the whole collection
            found = self.vector_store.get_nodes(there, filters=self.filters)
        elif there:
            found = self._filtered(self.docstore.get_nodes(there, raise_error=False))
        is_restricted = self.filters is not None or self.doc_ids is not None
        gone = frozenset() if is_restricted else frozenset(asked) - {one.node_id for one in found}
        return Fetched([one for one in found if self._lets_in(one)], gone)

    def _is_indexed(self, id_: str) -> bool:
        """A docstore keeps what was deleted from the index, and may serve other indexes too."""
        if isinstance(self.vector_store, SimpleVectorStore):
            # `index.delete_nodes` takes a node out of here alone.
            return id_ in self.vector_store.data.embedding_dict
        return self.vector_store.stores_text or id_ in self.nodes_dict.values()

    def of_source(self, kind: NodeKind, source: str) -> list[BaseNode] | None:
        if not self.vector_store.stores_text or not isinstance(kind, str):
            return None
        keys = ("file_path", "source") if kind == "source" else (kind.removeprefix("metadata:"),)
        found = (self._where(key, source) for key in keys)
        return next(filter(None, found), [])[:_CHUNKS_READ]

    def _where(self, key: str, value: str) -> list[BaseNode]:
        match = MetadataFilter(key=key, value=value, operator=FilterOperator.EQ)
        filters: list[MetadataFilter | MetadataFilters] = [match]
        if self.filters is not None:
            filters.append(self.filters)
        found = self.vector_store.get_nodes(None, filters=MetadataFilters(filters=filters))
        return [one for one in found if self._lets_in(one)]

    def _lets_in(self, node: BaseNode) -> bool:
        return (self.node_ids is None or node.node_id in self.node_ids) and (
            self.doc_ids is None or node.ref_doc_id in self.doc_ids
        )

    def _filtered(self, nodes: Sequence[BaseNode]) -> list[BaseNode]:
        if self.filters is None:
            return list(nodes)
        if any(isinstance(one, MetadataFilters) for one in self.filters.filters):
            raise ValueError("nested filters cannot be checked against a docstore")
        by_id = {one.node_id: one for one in nodes}
        is_let_in = build_metadata_filter_fn(lambda id_: by_id[id_].metadata, self.filters)
        return [one for one in nodes if is_let_in(one.node_id)]


@dataclass(frozen=True, slots=True)
class OwnShelf:
    """The `fetch=` that the user gave."""

    fetch: Fetch

    def by_ids(self, ids: Sequence[str]) -> Fetched:
        found = self.fetch(ids)
        known = [found[one] for one in ids if isinstance(found.get(one), BaseNode)]
        return Fetched(known, frozenset(one for one in ids if found.get(one) is None))

    def of_source(self, kind: NodeKind, source: str) -> list[BaseNode] | None:  # noqa: ARG002
        return None


def shelf_of(base: BaseRetriever, index: Any, fetch: Fetch | None) -> Shelf | str:
    """Where a retriever's absent nodes can be had, or why nothing may come in."""
    restrictions = restrictions_of(base)
    if fetch is not None:
        return "fetch= cannot check the retriever's filters" if restrictions else OwnShelf(fetch)
    if isinstance(base, VectorIndexRetriever) and _is_plain(base):
        return _shelf_of_vectors(base)
    if index is None:
        return "this retriever has no way to fetch by id: give index= or fetch="
    if restrictions:
        return "the filters of a retriever inside cannot be checked again"
    return IndexShelf(index.vector_store, index.docstore, index.index_struct.nodes_dict)


def restrictions_of(retriever: object) -> bool:
    """Whether it, or a retriever or an engine inside it, keeps some nodes out."""
    seen: set[int] = set()

    def search(one: object) -> bool:
        if id(one) in seen or not isinstance(one, BaseRetriever | BaseQueryEngine):
            return False
        seen.add(id(one))
        if isinstance(one, BaseRetriever) and _keeps_out(one):
            return True
        return any(search(part) for value in vars(one).values() for part in _parts(value))

    return search(retriever)


def _keeps_out(one: BaseRetriever) -> bool:
    if any(getattr(one, name, None) for name in _RESTRICTING):
        return True
    # An index whose text lies in the docstore hands over the ids of all its nodes.
    index = getattr(one, "_index", None)
    allowed = list(getattr(one, "_node_ids", None) or ())
    # In its own order: as lists they are compared in a fraction of the time.
    return bool(allowed) and (
        index is None or allowed != list(index.index_struct.nodes_dict.values())
    )


def collection_of(vector_store: object) -> str:
    """The name of what the vector store searches; "" where it tells none."""
    for holder in (getattr(vector_store, "_collection", None), vector_store):
        for name in ("name", "collection_name", "index_name", "table_name"):
            value = getattr(holder, name, None)
            if isinstance(value, str) and value:
                return value
    return ""


def _is_plain(base: VectorIndexRetriever) -> bool:
    """Whether it finds as VectorIndexRetriever itself does: what a subclass drops is not seen."""
    # By the class that holds it: instrumentation hands out another wrapper at every look.
    holders = [
        next(one for one in type(base).__mro__ if name in vars(one))
        for name in ("_retrieve", "_aretrieve")
    ]
    return holders == [VectorIndexRetriever, VectorIndexRetriever]


def _shelf_of_vectors(base: VectorIndexRetriever) -> Shelf | str:
    # Its own attributes: LlamaIndex keeps a retriever's restrictions nowhere else.
    if base._kwargs:  # noqa: SLF001
        return f"{', '.join(base._kwargs)} cannot be checked again"  # noqa: SLF001
    return IndexShelf(
        base._vector_store,  # noqa: SLF001
        base._docstore,  # noqa: SLF001
        base._index.index_struct.nodes_dict,  # noqa: SLF001
        base._filters,  # noqa: SLF001
        # An index whose vector store holds the text hands over an empty list: no restriction.
        frozenset(base._node_ids) if base._node_ids else None,  # noqa: SLF001
        frozenset(base._doc_ids) if base._doc_ids else None,  # noqa: SLF001
    )


def _parts(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return value.values()
    if not isinstance(value, list | tuple):
        return (value,)
    # The ids of all nodes are a list too, and a long one.
    return () if value and isinstance(value[0], str) else value
