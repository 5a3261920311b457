"""LangChain documents as nodes: who they are, and how absent ones are found again."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self, TypeAlias

from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore

from synapse_retrievers import Found, NodeId, Plan, Result, best_chunk, tokens

NodeKind: TypeAlias = str | Callable[[Document], str | None]
"""`"id"`, `"source"`, `"metadata:<key>"`, or what gives a document's node."""

Fetch: TypeAlias = Callable[[Sequence[NodeId]], Mapping[NodeId, Document]]

_HARMLESS = {"k", "fetch_k", "lambda_mult", "score_threshold"}
"""Search arguments that decide how many and in which order, not which (a threshold closes)."""

_CHUNKS_READ = 64


@dataclass(frozen=True, slots=True)
class Nodes:
    """How documents are known: by `kind`, and each document itself by its id."""

    kind: NodeKind = "id"
    id_key: str | None = None

    @property
    def name(self) -> str:
        """What the store records."""
        return self.kind if isinstance(self.kind, str) else "callable"

    @property
    def metadata_key(self) -> str | None:
        """The metadata key that names a document's node, if that is how it is known."""
        if not isinstance(self.kind, str) or self.kind == "id":
            return None
        return "source" if self.kind == "source" else self.kind.removeprefix("metadata:")

    def checked(self) -> Self:
        """Itself, if the kind is one.

        Raises:
            ValueError: It is not.
        """
        is_named = isinstance(self.kind, str) and (
            self.kind in {"id", "source"}
            or self.kind.removeprefix("metadata:") not in {"", self.kind}
        )
        if not is_named and not callable(self.kind):
            raise ValueError(
                f'node={self.kind!r:.100} is not known: give "id", "source", "metadata:<key>" or '
                "a function of a document"
            )
        return self

    def id_of(self, document: Document) -> NodeId | None:
        """`Document.id`, else metadata `_id`, else `id_key`; None: it has none."""
        keys = ["_id", self.id_key] if self.id_key else ["_id"]
        found = [document.id, *(document.metadata.get(key) for key in keys)]
        return next((_text(value) for value in found if _text(value)), None)

    def node_of(self, document: Document) -> NodeId | None:
        """What is learned about; None: nothing can be."""
        if self.kind == "id":
            return self.id_of(document)
        if callable(self.kind):
            return _text(self.kind(document))
        return _text(document.metadata.get(self.metadata_key or ""))

    def result_of(self, document: Document) -> Result:
        """The document as the core sees it."""
        source = document.metadata.get("source") or document.metadata.get("file_path")
        chunk = None if self.kind == "id" else self.id_of(document)
        return Result(self.node_of(document), document.page_content, chunk, _text(source))


class Shelf(Protocol):
    """Where absent documents can be had, with the restrictions of one call."""

    @property
    def is_restricted(self) -> bool:
        """Whether a document that is not found may still be there."""
        ...

    def by_ids(self, ids: Sequence[str]) -> list[Document]:
        """The documents of these ids that the restrictions let through, in any order."""
        ...

    def of_sources(self, key: str, sources: Sequence[str]) -> list[Document]:
        """Some documents whose metadata `key` is one of these; empty: none, or it cannot tell."""
        ...


@dataclass(frozen=True, slots=True)
class ChromaShelf:
    """A Chroma collection; filters are re-checked by Chroma itself."""

    vectorstore: Any
    where: Mapping[str, Any] | None
    where_document: Mapping[str, Any] | None
    ids: Sequence[str] | None

    @property
    def is_restricted(self) -> bool:
        return self.where is not None or self.where_document is not None or self.ids is not None

    def by_ids(self, ids: Sequence[str]) -> list[Document]:
        allowed = ids if self.ids is None else [one for one in ids if one in set(self.ids)]
        return self._get(self.where, ids=list(dict.fromkeys(allowed))) if allowed else []

    def of_sources(self, key: str, sources: Sequence[str]) -> list[Document]:
        match = {key: {"$in": list(sources)}}
        where = match if self.where is None else {"$and": [dict(self.where), match]}
        most = _CHUNKS_READ * len(sources)
        found = self._get(where, limit=most)
        if len(found) == most and len(sources) > 1:  # one long document may have crowded out others
            return [chunk for source in sources for chunk in self.of_sources(key, [source])]
        return [one for one in found if self.ids is None or one.id in set(self.ids)]

    def _get(self, where: Mapping[str, Any] | None, **how: Any) -> list[Document]:
        found = self.vectorstore.get(
            where=where,
            where_document=self.where_document,
            include=["documents", "metadatas"],
            **how,
        )
        rows = zip(found["ids"], found["documents"], found["metadatas"], strict=True)
        return [
            Document(id=id_, page_content=text, metadata=metadata or {})
            for id_, text, metadata in rows
            if text is not None
        ]


@dataclass(frozen=True, slots=True)
class IdShelf:
    """Any store with `get_by_ids`; a callable filter is asked about each document."""

    vectorstore: VectorStore
    accepts: Callable[[Document], bool] | None = None

    @property
    def is_restricted(self) -> bool:
        return self.accepts is not None

    def by_ids(self, ids: Sequence[str]) -> list[Document]:
        found = self.vectorstore.get_by_ids(list(dict.fromkeys(ids))) if ids else []
        return [one for one in found if self.accepts is None or self.accepts(one)]

    def of_sources(self, key: str, sources: Sequence[str]) -> list[Document]:  # noqa: ARG002
        return []


@dataclass(frozen=True, slots=True)
class OwnShelf:
    """The `fetch=` that the user gave."""

    fetch: Fetch
    is_restricted: bool = False

    def by_ids(self, ids: Sequence[str]) -> list[Document]:
        found = self.fetch(ids)
        return [found[one] for one in ids if isinstance(found.get(one), Document)]

    def of_sources(self, key: str, sources: Sequence[str]) -> list[Document]:  # noqa: ARG002
        return []


def shelf(
    vectorstore: VectorStore | None, restrictions: Mapping[str, Any], fetch: Fetch | None
) -> Shelf | str:
    """Where the call's absent documents can be had, or why nothing may come in.

    Args:
        vectorstore: Behind the wrapped retriever, if it is a plain vector store retriever.
        restrictions: The search arguments of this call.
        fetch: The user's own; it goes before the vector store.
    """
    given = {key: value for key, value in restrictions.items() if value is not None}
    if "score_threshold" in given:
        return "a score threshold cannot be checked again"
    if fetch is not None:
        unchecked = sorted(given.keys() - _HARMLESS)
        return f"fetch= cannot check {', '.join(unchecked)}" if unchecked else OwnShelf(fetch)
    if vectorstore is None:
        return "this retriever has no way to fetch by id: give fetch="
    if _is_chroma(vectorstore):
        unchecked = sorted(given.keys() - _HARMLESS - {"filter", "where_document", "ids"})
        if unchecked:
            return f"{', '.join(unchecked)} cannot be checked again"
        return ChromaShelf(
            vectorstore, given.get("filter"), given.get("where_document"), given.get("ids")
        )
    return _id_shelf(vectorstore, given)


def find(plan: Plan, where: Shelf, nodes: Nodes, present: Iterable[Document]) -> Found:
    """The plan's wanted nodes that can be had, best first; no more than may come in."""
    if nodes.kind == "id":
        return _find_by_id(plan, where, nodes)
    return _find_by_source(plan, where, nodes, {nodes.id_of(one) for one in present})


def collection_of(vectorstore: VectorStore | None) -> str:
    """The name of what the vector store searches; "" where it tells none."""
    for holder in (getattr(vectorstore, "_collection", None), vectorstore):
        for name in ("name", "collection_name", "_collection_name", "index_name"):
            value = getattr(holder, name, None)
            if isinstance(value, str) and value:
                return value
    return ""


def _find_by_id(plan: Plan, where: Shelf, nodes: Nodes) -> Found:
    ids = [node.id for node in plan.wanted]
    known = {nodes.node_of(one): one for one in where.by_ids(ids)}
    found = {node: known[node] for node in ids if node in known}
    missing = [node for node in ids if node not in found]
    why = "not there, or kept out by the call's filter" if where.is_restricted else "not there"
    return Found(
        {node: nodes.result_of(one) for node, one in found.items()},
        found,
        dict.fromkeys(missing, why),
        () if where.is_restricted else missing,
    )


def _find_by_source(plan: Plan, where: Shelf, nodes: Nodes, present: set[NodeId | None]) -> Found:
    chunks = [chunk for node in plan.wanted if (chunk := plan.chunks.get(node.id))]
    by_id = {nodes.id_of(one): one for one in where.by_ids(chunks)}
    known = {
        node.id: best
        for node in plan.wanted
        if (best := by_id.get(plan.chunks.get(node.id, ""))) and nodes.node_of(best) == node.id
    }
    found: dict[NodeId, Document] = {}
    missing: list[NodeId] = []
    wanted = [node.id for node in plan.wanted]
    while wanted and len(found) < plan.most:
        turn, wanted = wanted[: plan.most - len(found)], wanted[plan.most - len(found) :]
        known |= _best_of_sources(
            plan.trace.query, [node for node in turn if node not in known], where, nodes
        )
        for node in turn:
            best = known.get(node)
            if best is None or nodes.id_of(best) in present:
                missing.append(node)
            else:
                found[node] = best
    why = "not there, or kept out by the call's filter" if where.is_restricted else "not there"
    can_tell = nodes.metadata_key is not None and isinstance(where, ChromaShelf)
    return Found(
        {node: nodes.result_of(one) for node, one in found.items()},
        found,
        dict.fromkeys(missing, why),
        missing if can_tell and not where.is_restricted else (),
    )


def _best_of_sources(
    query: str, sources: Sequence[NodeId], where: Shelf, nodes: Nodes
) -> dict[NodeId, Document]:
    """Source -> the chunk of it that shares most with the query."""
    if nodes.metadata_key is None or not sources:
        return {}
    chunks: dict[NodeId, list[Document]] = {}
    for one in where.of_sources(nodes.metadata_key, sources):
        if (node := nodes.node_of(one)) is not None:
            chunks.setdefault(node, []).append(one)
    asked = tokens(query)
    return {
        source: found[best_chunk(asked, [tokens(one.page_content) for one in found])]
        for source, found in chunks.items()
    }


def _id_shelf(vectorstore: VectorStore, given: Mapping[str, Any]) -> Shelf | str:
    unchecked = sorted(given.keys() - _HARMLESS)
    if isinstance(vectorstore, InMemoryVectorStore) and unchecked == ["filter"]:
        if callable(given["filter"]):
            return IdShelf(vectorstore, given["filter"])
        return "a filter that is no function cannot be checked again"
    if unchecked:
        return f"{', '.join(unchecked)} cannot be checked again"
    if type(vectorstore).get_by_ids is VectorStore.get_by_ids:
        return "this vector store cannot fetch by id: give fetch="
    return IdShelf(vectorstore)


def _is_chroma(vectorstore: VectorStore) -> bool:
    """Whether it is LangChain's Chroma, without importing it."""
    return any(
        one.__name__ == "Chroma" and one.__module__.startswith("langchain")
        for one in type(vectorstore).__mro__
    )


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
