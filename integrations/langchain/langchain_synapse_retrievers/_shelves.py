"""Where absent documents can be had again, with the restrictions of the call."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore

from synapse_retrievers import NodeId

Fetch: TypeAlias = Callable[[Sequence[NodeId]], Mapping[NodeId, Document]]

_HARMLESS = {"k", "fetch_k", "lambda_mult", "score_threshold"}
"""Search arguments that decide how many and in which order, not which (a threshold closes)."""

_CHUNKS_READ = 64


@dataclass(frozen=True, slots=True)
class Fetched:
    """Documents in any order, and the ids that are surely not there any more."""

    documents: Sequence[Document]
    gone: frozenset[str] = frozenset()


class Shelf(Protocol):
    """Where absent documents can be had, with the restrictions of one call."""

    @property
    def is_restricted(self) -> bool:
        """Whether a document that is not found may still be there."""
        ...

    def by_ids(self, ids: Sequence[str]) -> Fetched:
        """The documents of these ids that the restrictions let through."""
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

    def by_ids(self, ids: Sequence[str]) -> Fetched:
        allowed = ids if self.ids is None else [one for one in ids if one in set(self.ids)]
        if not allowed:
            return Fetched(())
        found = self._get(self.where, ids=list(dict.fromkeys(allowed)))
        gone = frozenset() if self.is_restricted else frozenset(allowed) - {d.id for d in found}
        return Fetched(found, gone)

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

    def by_ids(self, ids: Sequence[str]) -> Fetched:
        found = self.vectorstore.get_by_ids(list(dict.fromkeys(ids))) if ids else []
        if self.accepts is not None:
            return Fetched([one for one in found if self.accepts(one)])
        # A store may keep its ids in the metadata: then what is gone cannot be told.
        is_told = all(one.id for one in found)
        return Fetched(
            found, frozenset(ids) - {one.id for one in found} if is_told else frozenset()
        )

    def of_sources(self, key: str, sources: Sequence[str]) -> list[Document]:  # noqa: ARG002
        return []


@dataclass(frozen=True, slots=True)
class OwnShelf:
    """The `fetch=` that the user gave."""

    fetch: Fetch
    is_restricted: bool = False

    def by_ids(self, ids: Sequence[str]) -> Fetched:
        found = self.fetch(ids)
        known = [found[one] for one in ids if isinstance(found.get(one), Document)]
        return Fetched(known, frozenset(one for one in ids if found.get(one) is None))

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


def collection_of(vectorstore: VectorStore | None) -> str:
    """The name of what the vector store searches; "" where it tells none."""
    for holder in (getattr(vectorstore, "_collection", None), vectorstore):
        for name in ("name", "collection_name", "_collection_name", "index_name"):
            value = getattr(holder, name, None)
            if isinstance(value, str) and value:
                return value
    return ""


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
