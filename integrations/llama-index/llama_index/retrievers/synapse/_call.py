"""What the core has to know of a call of ours, read from LlamaIndex's instrumentation."""

from collections.abc import Callable
from uuid import uuid4

from llama_index.core.schema import NodeWithScore
from llama_index_instrumentation.dispatcher import active_instrument_tags
from llama_index_instrumentation.span import active_span_id

from llama_index.retrievers.synapse._nodes import Nodes, find
from llama_index.retrievers.synapse._shelves import Shelf
from synapse_retrievers import TREE, Call, Found, Plan


def call(
    query: str, hits: list[NodeWithScore], nodes: Nodes, where: Shelf | str, run_id: str
) -> tuple[Call, Callable[[Plan], Found] | None]:
    """What the core has to know of a call, and how it can fetch for it."""
    tags = active_instrument_tags.get()
    closed = where if isinstance(where, str) else None
    call = Call(
        query,
        [nodes.result_of(one.node) for one in hits],
        [one.score for one in hits],
        tags.get("synapse_namespace"),
        run_id,
        closed,
        tags.get("synapse_run_id"),
    )
    if isinstance(where, str):
        return call, None
    return call, lambda plan: find(plan, where, nodes, hits)


def own_run() -> str:
    """A run of its own under the span it is called in: one span may hold several calls."""
    span_id, run_id = active_span_id.get(), str(uuid4())
    TREE.started(run_id, span_id)
    return run_id
