"""LlamaIndex nodes as nodes of the memory: who they are, and how absent ones are found again."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, cast

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.retrievers import BaseRetriever, VectorIndexRetriever
from llama_index.core.schema import BaseNode, IndexNode, MetadataMode, NodeWithScore
from llama_index.core.vector_stores import FilterOperator, MetadataFilter, MetadataFilters
from llama_index.core.vector_stores.utils import build_metadata_filter_fn

from synapse_retrievers import Found, NodeId, Plan, Recalled, Result, best_chunk, tokens

NodeKind: TypeAlias = str | Callable[[BaseNode], str | None]
"""`"id"`, `"source"`, `"metadata:<key>"`, or what gives a node's name."""

Fetch: TypeAlias = Callable[[Sequence[NodeId]], Mapping[NodeId, BaseNode]]

_CHUNKS_READ = 64

# The last is an auto retriever's: there a model makes a filter for every query.
_RESTRICTING = ("_filters", "_doc_ids", "_kwargs", "_extra_filters", "_vector_store_info")


@dataclass(frozen=True, slots=True)
class Nodes:
    """How nodes are known: by `kind`, and each node itself by its id."""

    kind: NodeKind = "id"

    def node_of(self, node: BaseNode) -> NodeId | None:
        """What is learned about; None: nothing can be."""
        if self.kind == "id":
            return node.node_id or None
        if callable(self.kind):
            return _text(self.kind(node))
        if self.kind == "source":
            return next(filter(None, map(_text, _sources(node))), None)
        return _text(node.metadata.get(self.kind.removeprefix("metadata:")))

    def result_of(self, node: BaseNode) -> Result:
        """The node as the core sees it."""
        source = next(filter(None, map(_text, _sources(node))), None)
        chunk = None if self.kind == "id" else node.node_id
        return Result(
            self.node_of(node), node.get_content(metadata_mode=MetadataMode.NONE), chunk, source
        )


class Shelf(Protocol):
    """Where absent nodes can be had, with the restrictions of one retriever."""

    def hides(self, id_: str) -> bool:
        """Whether a node that is not found may still be there."""
        ...

    def by_ids(self, ids: Sequence[str]) -> list[BaseNode]:
        """The nodes of these ids that the restrictions let through, in any order."""
        ...

    def of_source(self, kind: NodeKind, source: str) -> list[BaseNode] | None:
        """Some chunks of a source; None: it cannot tell."""
        ...


@dataclass(frozen=True, slots=True)
class IndexShelf:
    """An index's vector store if it holds the text, its docstore otherwise."""

    vector_store: Any
    docstore: Any
    filters: MetadataFilters | None = None
    node_ids: frozenset[str] | None = None
    doc_ids: frozenset[str] | None = None

    def hides(self, id_: str) -> bool:
        is_left_out = self.node_ids is not None and id_ not in self.node_ids
        return is_left_out or self.filters is not None or self.doc_ids is not None

    def by_ids(self, ids: Sequence[str]) -> list[BaseNode]:
        asked = [one for one in dict.fromkeys(ids) if self.node_ids is None or one in self.node_ids]
        if not asked:  # get_nodes([]) is the whole collection
            return []
        if self.vector_store.stores_text:
            found = self.vector_store.get_nodes(asked, filters=self.filters)
        else:
            found = self._filtered(self.docstore.get_nodes(asked, raise_error=False))
        return [one for one in found if self.doc_ids is None or one.ref_doc_id in self.doc_ids]

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

    def hides(self, id_: str) -> bool:
        return self.fetch([id_]).get(id_) is not None

    def by_ids(self, ids: Sequence[str]) -> list[BaseNode]:
        found = self.fetch(ids)
        return [found[one] for one in ids if isinstance(found.get(one), BaseNode)]

    def of_source(self, kind: NodeKind, source: str) -> list[BaseNode] | None:  # noqa: ARG002
        return None


def shelf_of(base: BaseRetriever, index: Any, fetch: Fetch | None) -> Shelf | str:
    """Where a retriever's absent nodes can be had, or why nothing may come in."""
    restrictions = restrictions_of(base)
    if fetch is not None:
        return "fetch= cannot check the retriever's filters" if restrictions else OwnShelf(fetch)
    if isinstance(base, VectorIndexRetriever):
        return _shelf_of_vectors(base)
    if index is None:
        return "this retriever has no way to fetch by id: give index= or fetch="
    if restrictions:
        return "the filters of a retriever inside cannot be checked again"
    return IndexShelf(index.vector_store, index.docstore)


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


def find(plan: Plan, where: Shelf, nodes: Nodes, present: Iterable[NodeWithScore]) -> Found:
    """The plan's wanted nodes that can be had, best first; no more than may come in."""
    by_id = nodes.kind == "id"
    chunks = {node.id: node.id if by_id else plan.chunks.get(node.id, "") for node in plan.wanted}
    known = {one.node_id: one for one in where.by_ids([one for one in chunks.values() if one])}
    shown = {one.node.node_id for one in present}
    found: dict[NodeId, BaseNode] = {}
    refused: dict[NodeId, str] = {}
    for node in plan.wanted:
        if len(found) == plan.most:
            break
        best = known.get(chunks[node.id])
        if not by_id and (best is None or nodes.node_of(best) != node.id):
            best = _best_of_source(plan.trace.query, node.id, where, nodes)
        if best is None:
            refused[node.id] = "kept out, or not there" if where.hides(node.id) else "not there"
        elif best.node_id in shown:
            refused[node.id] = "among the hits already"
        elif isinstance(best, IndexNode):
            refused[node.id] = "it stands for another object"
        else:
            found[node.id] = best
    gone = [node for node, why in refused.items() if why == "not there"]
    return Found(
        {node: nodes.result_of(one) for node, one in found.items()},
        found,
        refused,
        gone if by_id else (),
    )


def arranged(hits: list[NodeWithScore], recalled: Recalled) -> list[NodeWithScore]:
    """The hits in the new order; the scores stay in theirs.

    A hit that kept its place is the same object; one that moved or came in is a new object around
    the same node, with the score that stood at its place: cutoffs and rerankers behind see a list
    as sorted as before.
    """
    if all(place.hit == after for after, place in enumerate(recalled.places)):
        return hits
    moved = []
    for after, place in enumerate(recalled.places):
        if place.hit == after:
            moved.append(hits[after])
            continue
        if place.hit is not None:
            node = hits[place.hit].node
        else:
            node = cast("BaseNode", recalled.fetched[cast("NodeId", place.entered)])
        moved.append(NodeWithScore(node=node, score=hits[after].score))
    return moved


def collection_of(vector_store: object) -> str:
    """The name of what the vector store searches; "" where it tells none."""
    for holder in (getattr(vector_store, "_collection", None), vector_store):
        for name in ("name", "collection_name", "index_name", "table_name"):
            value = getattr(holder, name, None)
            if isinstance(value, str) and value:
                return value
    return ""


def _shelf_of_vectors(base: VectorIndexRetriever) -> Shelf | str:
    # Its own attributes: LlamaIndex keeps a retriever's restrictions nowhere else.
    if base._kwargs:  # noqa: SLF001
        return f"{', '.join(base._kwargs)} cannot be checked again"  # noqa: SLF001
    return IndexShelf(
        base._vector_store,  # noqa: SLF001
        base._docstore,  # noqa: SLF001
        base._filters,  # noqa: SLF001
        # An index whose vector store holds the text hands over an empty list: no restriction.
        frozenset(base._node_ids) if base._node_ids else None,  # noqa: SLF001
        frozenset(base._doc_ids) if base._doc_ids else None,  # noqa: SLF001
    )


def _best_of_source(query: str, source: NodeId, where: Shelf, nodes: Nodes) -> BaseNode | None:
    chunks = where.of_source(nodes.kind, source)
    if not chunks:
        return None
    texts = [tokens(one.get_content(metadata_mode=MetadataMode.NONE)) for one in chunks]
    return chunks[best_chunk(tokens(query), texts)]


def _sources(node: BaseNode) -> tuple[object, ...]:
    return (node.metadata.get("file_path"), node.metadata.get("source"), node.ref_doc_id)


def _parts(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return value.values()
    if not isinstance(value, list | tuple):
        return (value,)
    # The ids of all nodes are a list too, and a long one.
    return () if value and isinstance(value[0], str) else value


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
