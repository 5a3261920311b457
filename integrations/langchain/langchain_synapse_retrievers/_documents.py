"""LangChain documents as nodes: who they are, and how absent ones are found again."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from langchain_core.documents import Document

from langchain_synapse_retrievers._shelves import ChromaShelf, Shelf
from synapse_retrievers import Found, NodeId, Plan, Result, best_chunk, tokens

NodeKind: TypeAlias = str | Callable[[Document], str | None]
"""`"id"`, `"source"`, `"metadata:<key>"`, or what gives a document's node."""


@dataclass(frozen=True, slots=True)
class Nodes:
    """How documents are known: by `kind`, and each document itself by its id."""

    kind: NodeKind = "id"
    id_key: str | None = None

    @property
    def metadata_key(self) -> str | None:
        """The metadata key that names a document's node, if that is how it is known."""
        if not isinstance(self.kind, str) or self.kind == "id":
            return None
        return "source" if self.kind == "source" else self.kind.removeprefix("metadata:")

    def id_of(self, document: Document) -> NodeId | None:
        """`Document.id`, else metadata `_id`, else `id_key`; None: it has none."""
        keys = ["_id", self.id_key] if self.id_key else ["_id"]
        metadata = _metadata(document)
        found = [document.id, *(metadata.get(key) for key in keys)]
        return next((_text(value) for value in found if _text(value)), None)

    def node_of(self, document: Document) -> NodeId | None:
        """What is learned about; None: nothing can be."""
        if self.kind == "id":
            return self.id_of(document)
        if callable(self.kind):
            return _text(self.kind(document))
        return _text(_metadata(document).get(self.metadata_key or ""))

    def result_of(self, document: Document) -> Result:
        """The document as the core sees it."""
        metadata = _metadata(document)
        source = metadata.get("source") or metadata.get("file_path")
        chunk = None if self.kind == "id" else self.id_of(document)
        return Result(self.node_of(document), document.page_content, chunk, _text(source))


def find(plan: Plan, where: Shelf, nodes: Nodes, present: Iterable[Document]) -> Found:
    """The plan's wanted nodes that can be had, best first; no more than may come in."""
    if nodes.kind == "id":
        return _find_by_id(plan, where, nodes)
    return _find_by_source(plan, where, nodes, {nodes.id_of(one) for one in present})


def _find_by_id(plan: Plan, where: Shelf, nodes: Nodes) -> Found:
    ids = [node.id for node in plan.wanted]
    fetched = where.by_ids(ids)
    known = {nodes.node_of(one): one for one in fetched.documents}
    found = {node: known[node] for node in ids if node in known}
    return Found(
        {node: nodes.result_of(one) for node, one in found.items()},
        found,
        {node: _why(node in fetched.gone) for node in ids if node not in found},
        [node for node in ids if node in fetched.gone],
    )


def _why(is_gone: bool) -> str:
    return "not there" if is_gone else "kept out by the call's filter, or another document"


def _find_by_source(plan: Plan, where: Shelf, nodes: Nodes, present: set[NodeId | None]) -> Found:
    chunks = [chunk for node in plan.wanted if (chunk := plan.chunks.get(node.id))]
    by_id = {nodes.id_of(one): one for one in where.by_ids(chunks).documents}
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
    can_tell = nodes.metadata_key is not None and isinstance(where, ChromaShelf)
    is_gone = can_tell and not where.is_restricted
    return Found(
        {node: nodes.result_of(one) for node, one in found.items()},
        found,
        dict.fromkeys(missing, _why(is_gone)),
        missing if is_gone else (),
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


def _metadata(document: Document) -> Mapping[str, Any]:
    """Empty where somebody has set it to None."""
    return document.metadata or {}


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
