"""LlamaIndex nodes as nodes of the memory: who they are, and which absent ones come in."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import cast

from llama_index.core.schema import BaseNode, IndexNode, MetadataMode, NodeWithScore

from llama_index.retrievers.synapse._shelves import NodeKind, Shelf
from synapse_retrievers import Found, NodeId, Plan, Recalled, Result, best_chunk, tokens


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


def find(plan: Plan, where: Shelf, nodes: Nodes, present: Iterable[NodeWithScore]) -> Found:
    """The plan's wanted nodes that can be had, best first; no more than may come in."""
    by_id = nodes.kind == "id"
    chunks = {node.id: node.id if by_id else plan.chunks.get(node.id, "") for node in plan.wanted}
    fetched = where.by_ids([one for one in chunks.values() if one])
    known = {one.node_id: one for one in fetched.nodes}
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
            refused[node.id] = "not there" if node.id in fetched.gone else "kept out, or not there"
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


def _best_of_source(query: str, source: NodeId, where: Shelf, nodes: Nodes) -> BaseNode | None:
    chunks = where.of_source(nodes.kind, source)
    if not chunks:
        return None
    texts = [tokens(one.get_content(metadata_mode=MetadataMode.NONE)) for one in chunks]
    return chunks[best_chunk(tokens(query), texts)]


def _sources(node: BaseNode) -> tuple[object, ...]:
    return (node.metadata.get("file_path"), node.metadata.get("source"), node.ref_doc_id)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
