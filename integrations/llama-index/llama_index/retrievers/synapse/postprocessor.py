"""The postprocessor that learns, behind a retriever that cannot be swapped."""

import asyncio
import os
from typing import Any

from llama_index.core.bridge.pydantic import ConfigDict, Field
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index.core.vector_stores import MetadataFilters
from llama_index_instrumentation.span import active_span_id

from llama_index.retrievers.synapse._call import call, own_run
from llama_index.retrievers.synapse._nodes import Nodes, arranged
from llama_index.retrievers.synapse._shelves import IndexShelf, NodeKind, Shelf, collection_of
from llama_index.retrievers.synapse.listener import listen, were_restricted
from synapse_retrievers import Recalled, Seam, Synapse, Trace, memory, node_kind


class SynapsePostprocessor(BaseNodePostprocessor):
    """Learns and re-orders behind any retriever; brings nodes in only with an index to check."""

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    index: Any = Field(default=None, exclude=True)
    filters: Any = Field(default=None, exclude=True)
    node: Any = Field(default="id", exclude=True)
    seam: Any = Field(default=None, exclude=True, repr=False)

    def __init__(
        self,
        store: str | os.PathLike[str] | Synapse | None = None,
        *,
        index: Any = None,
        filters: MetadataFilters | None = None,
        node: NodeKind = "id",
        **options: Any,
    ) -> None:
        """Put a memory behind a retriever that cannot be swapped.

        Args:
            store: As of `SynapseRetriever`.
            index: Where absent nodes can be had; None: only the order changes.
            filters: Those of the retriever in front; they are checked again. Where a retriever
                in front is seen to have filters that are not given here, nothing comes in.
            node: As of `SynapseRetriever`.
            **options: Of `Synapse`.

        Raises:
            NamespaceClaimedError: The namespace serves another collection, or other nodes.
            TypeError: Options beside a `Synapse`.
        """
        seam = Seam.opened(
            memory(store, options),
            node_kind(node),
            collection_of(getattr(index, "vector_store", None)),
        )
        given: dict[str, Any] = {"index": index, "filters": filters, "node": node, "seam": seam}
        super().__init__(**given)
        listen()

    @classmethod
    def class_name(cls) -> str:
        """The name that LlamaIndex knows it by."""
        return "SynapsePostprocessor"

    @property
    def synapse(self) -> Synapse:
        """The memory."""
        memory: Synapse = self.seam.synapse
        return memory

    @property
    def last_trace(self) -> Trace | None:
        """What the last recall of this context moved, and why; None before the first."""
        trace: Trace | None = self.seam.last_trace.get()
        return trace

    def explain(self, nodes: list[NodeWithScore], query: str | QueryBundle) -> Trace:
        """What is learned about a query and what the retriever found; notes and teaches nothing."""
        query_str = query if isinstance(query, str) else query.query_str
        seen = call(query_str, nodes, Nodes(self.node), self._shelf(nodes), own_run())
        trace: Trace = self.seam.explain(*seen)
        return trace

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        return self._arranged(nodes, self._recall(nodes, query_bundle))

    async def _apostprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        return self._arranged(nodes, await asyncio.to_thread(self._recall, nodes, query_bundle))

    def _recall(
        self, hits: list[NodeWithScore], query_bundle: QueryBundle | None
    ) -> Recalled | None:
        if query_bundle is None or not query_bundle.query_str:
            return None
        query = query_bundle.query_str

        def recall() -> Recalled | None:
            recalled: Recalled | None = self.seam.recall(
                *call(query, hits, Nodes(self.node), self._shelf(hits), own_run())
            )
            return recalled

        return self.synapse.guarded(recall, None)

    def _shelf(self, hits: list[NodeWithScore]) -> Shelf | str:
        if self.index is None:
            return "only re-orders: give index="
        if self.filters is None and were_restricted(active_span_id.get(), hits):
            return "the retriever in front has filters: give filters="
        nodes_dict = self.index.index_struct.nodes_dict
        return IndexShelf(self.index.vector_store, self.index.docstore, nodes_dict, self.filters)

    def _arranged(
        self, hits: list[NodeWithScore], recalled: Recalled | None
    ) -> list[NodeWithScore]:
        if recalled is None:
            return hits
        self.seam.last_trace.set(recalled.trace)
        return arranged(hits, recalled)
