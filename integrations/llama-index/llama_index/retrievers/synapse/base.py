"""The retriever and the postprocessor that learn, around what a LlamaIndex application has."""

import asyncio
import os
from collections.abc import Callable
from typing import Any
from uuid import uuid4

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.bridge.pydantic import ConfigDict, Field
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.retrievers import VectorIndexRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index.core.vector_stores import MetadataFilters
from llama_index.core.vector_stores.types import BasePydanticVectorStore
from llama_index_instrumentation.dispatcher import active_instrument_tags
from llama_index_instrumentation.span import active_span_id

from llama_index.retrievers.synapse._nodes import (
    Fetch,
    IndexShelf,
    NodeKind,
    Nodes,
    Shelf,
    arranged,
    collection_of,
    find,
    shelf_of,
)
from llama_index.retrievers.synapse.listener import listen, were_restricted
from synapse_retrievers import TREE, Call, Found, Plan, Recalled, Seam, Synapse, Trace


class SynapseRetriever(BaseRetriever):
    """Wraps a retriever, learns which nodes are used, and brings them back in its count."""

    def __init__(
        self,
        base: BaseRetriever,
        store: str | os.PathLike[str] | Synapse | None = None,
        *,
        index: Any = None,
        node: NodeKind = "id",
        fetch: Fetch | None = None,
        **options: Any,
    ) -> None:
        """Put a memory around a retriever.

        Args:
            base: Any LlamaIndex retriever.
            store: Where the memory lies: a path, a URL or a `Synapse`; None: the environment's
                SYNAPSE_RETRIEVERS_STORE, else `synapse.db` in the working directory.
            index: Where absent nodes can be had, for retrievers that are no
                `VectorIndexRetriever`; None: such a retriever only re-orders.
            node: What is learned about: "id" (every node by its id), "source" (nodes of one file
                together), "metadata:<key>", or a function of a node.
            fetch: Ids -> nodes, instead of the index.
            **options: Of `Synapse`: namespace, recall, learning, clock, enabled, inject, learn ...

        Raises:
            NamespaceClaimedError: The namespace serves another collection, or other nodes.
            TypeError: `base` is no retriever, or options beside a `Synapse`.
        """
        if not isinstance(base, BaseRetriever):
            raise TypeError(
                f"base={base!r:.100} is no retriever: give index.as_retriever(), and "
                "RetrieverQueryEngine.from_args(SynapseRetriever(...)) as the query engine"
            )
        super().__init__(callback_manager=base.callback_manager)
        self.object_map = base.object_map
        self._base = base
        self._index = index
        self._fetch = fetch
        self._nodes = Nodes(node).checked()
        vector_store = getattr(base, "_vector_store", getattr(index, "vector_store", None))
        self._seam = Seam.opened(
            _synapse(store, options), self._nodes.name, collection_of(vector_store)
        )
        listen()

    @property
    def synapse(self) -> Synapse:
        """The memory."""
        return self._seam.synapse

    @property
    def base(self) -> BaseRetriever:
        """The wrapped retriever."""
        return self._base

    @property
    def last_trace(self) -> Trace | None:
        """What the last recall of this context moved, and why; None before the first."""
        return self._seam.last_trace.get()

    def explain(self, query: str | QueryBundle) -> Trace:
        """What is learned about a query: asks the wrapped retriever, notes and teaches nothing."""
        bundle = QueryBundle(query) if isinstance(query, str) else query
        hits = self._found(bundle)
        where = shelf_of(self._base, self._index, self._fetch)
        return self._seam.explain(*_call(bundle.query_str, hits, self._nodes, where, _own_run()))

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return self._recalled(query_bundle, self._found(query_bundle))

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        if _blocks(self._base):
            hits = await asyncio.to_thread(self._found, query_bundle)
        else:
            hits = await self._base._aretrieve(query_bundle)  # noqa: SLF001 - one event pair
            hits = await self._base._ahandle_recursive_retrieval(query_bundle, hits)  # noqa: SLF001
        recalled = await asyncio.to_thread(self._recall, query_bundle, hits)
        return self._arranged(hits, recalled)

    def _handle_recursive_retrieval(
        self,
        query_bundle: QueryBundle,  # noqa: ARG002 - LlamaIndex's signature
        nodes: list[NodeWithScore],
    ) -> list[NodeWithScore]:
        """Nothing more: the wrapped retriever has followed its objects before we moved anything."""
        return nodes

    async def _ahandle_recursive_retrieval(
        self,
        query_bundle: QueryBundle,  # noqa: ARG002 - LlamaIndex's signature
        nodes: list[NodeWithScore],
    ) -> list[NodeWithScore]:
        return nodes

    def _found(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        hits = self._base._retrieve(query_bundle)  # noqa: SLF001 - retrieve() would report twice
        return self._base._handle_recursive_retrieval(query_bundle, hits)  # noqa: SLF001

    def _recalled(
        self, query_bundle: QueryBundle, hits: list[NodeWithScore]
    ) -> list[NodeWithScore]:
        return self._arranged(hits, self._recall(query_bundle, hits))

    def _recall(self, query_bundle: QueryBundle, hits: list[NodeWithScore]) -> Recalled | None:
        def recall() -> Recalled | None:
            where = shelf_of(self._base, self._index, self._fetch)
            return self._seam.recall(
                *_call(query_bundle.query_str, hits, self._nodes, where, _own_run())
            )

        return self.synapse.guarded(recall, None) if query_bundle.query_str else None

    def _arranged(
        self, hits: list[NodeWithScore], recalled: Recalled | None
    ) -> list[NodeWithScore]:
        if recalled is None:
            return hits
        # Here, not where it was made: on the async path that was another thread's context.
        self._seam.last_trace.set(recalled.trace)
        return arranged(hits, recalled)


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
        nodes = Nodes(node).checked()
        seam = Seam.opened(
            _synapse(store, options),
            nodes.name,
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
                *_call(query, hits, Nodes(self.node), self._shelf(), _own_run())
            )
            return recalled

        return self.synapse.guarded(recall, None)

    def _shelf(self) -> Shelf | str:
        if self.index is None:
            return "only re-orders: give index="
        if self.filters is None and were_restricted(active_span_id.get()):
            return "the retriever in front has filters: give filters="
        return IndexShelf(self.index.vector_store, self.index.docstore, self.filters)

    def _arranged(
        self, hits: list[NodeWithScore], recalled: Recalled | None
    ) -> list[NodeWithScore]:
        if recalled is None:
            return hits
        self.seam.last_trace.set(recalled.trace)
        return arranged(hits, recalled)


def _call(
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


def _own_run() -> str:
    """A run of its own under the span it is called in: one span may hold several calls."""
    span_id, run_id = active_span_id.get(), str(uuid4())
    TREE.started(run_id, span_id)
    return run_id


def _synapse(store: Any, options: dict[str, Any]) -> Synapse:
    if isinstance(store, Synapse):
        if options:
            raise TypeError(f"give {', '.join(options)} to the Synapse itself")
        return store
    return Synapse(store, **({"must_open": False} | options))


def _blocks(base: BaseRetriever) -> bool:
    """Whether its async path would run synchronous code on the event loop."""
    if type(base)._aretrieve is BaseRetriever._aretrieve:  # noqa: SLF001
        return True
    if not isinstance(base, VectorIndexRetriever):
        return False
    store = base._vector_store  # noqa: SLF001
    return type(store).aquery is BasePydanticVectorStore.aquery
