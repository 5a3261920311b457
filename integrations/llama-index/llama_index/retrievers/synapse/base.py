"""The retriever that learns, around the one that a LlamaIndex application has."""

import asyncio
import os
from typing import Any

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.retrievers import VectorIndexRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index.core.vector_stores.types import BasePydanticVectorStore

from llama_index.retrievers.synapse._call import call, own_run
from llama_index.retrievers.synapse._nodes import Nodes, arranged
from llama_index.retrievers.synapse._shelves import Fetch, NodeKind, collection_of, shelf_of
from llama_index.retrievers.synapse.listener import listen
from synapse_retrievers import Recalled, Seam, Synapse, Trace, memory, node_kind


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
        self._nodes = Nodes(node)
        vector_store = getattr(base, "_vector_store", getattr(index, "vector_store", None))
        self._seam = Seam.opened(
            memory(store, options), node_kind(node), collection_of(vector_store)
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
        return self._seam.explain(*call(bundle.query_str, hits, self._nodes, where, own_run()))

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
                *call(query_bundle.query_str, hits, self._nodes, where, own_run())
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


def _blocks(base: BaseRetriever) -> bool:
    """Whether its async path would run synchronous code on the event loop."""
    if type(base)._aretrieve is BaseRetriever._aretrieve:  # noqa: SLF001
        return True
    if not isinstance(base, VectorIndexRetriever):
        return False
    store = base._vector_store  # noqa: SLF001
    return type(store).aquery is BasePydanticVectorStore.aquery
