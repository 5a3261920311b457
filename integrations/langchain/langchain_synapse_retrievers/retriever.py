"""The retriever that learns: around any LangChain retriever, in one line."""

import os
from collections.abc import Callable, Mapping
from typing import Any, Self, TypeGuard

from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    BaseRunManager,
    CallbackManagerForRetrieverRun,
)
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import run_in_executor
from langchain_core.vectorstores import VectorStore, VectorStoreRetriever
from pydantic import ConfigDict, Field, model_validator

from langchain_synapse_retrievers._calls import configurable, named, namespace_of
from langchain_synapse_retrievers._documents import NodeKind, Nodes, find
from langchain_synapse_retrievers._restrictions import restrictions_of
from langchain_synapse_retrievers._shelves import Fetch, collection_of, shelf
from langchain_synapse_retrievers.listener import listen
from synapse_retrievers import Call, Found, Plan, Seam, Synapse, Trace, memory, node_kind


class SynapseRetriever(BaseRetriever):
    """Wraps a retriever, learns which documents are used, and brings them back in its count."""

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    base: Any = None
    """The wrapped retriever."""
    synapse: Any = None
    """The memory: a `Synapse`, a path or a URL; None: by the environment, else `synapse.db`."""
    node: Any = "id"
    """What is learned about: "id", "source", "metadata:<key>", or document -> text."""
    id_key: str | None = None
    """Metadata key with a document's id, where it has no `id`."""
    fetch: Any = None
    """Ids -> documents, for retrievers that cannot fetch by themselves."""
    k: int | None = None
    """How many results to ask for; None: as many as the wrapped retriever gives."""
    seam: Any = Field(default=None, exclude=True, repr=False)
    """The memory's side of this retriever; shared by copies."""

    @classmethod
    def wrap(
        cls,
        retriever: BaseRetriever | Runnable[str, list[Document]],
        store: str | os.PathLike[str] | Synapse | None = None,
        *,
        node: NodeKind = "id",
        id_key: str | None = None,
        fetch: Fetch | None = None,
        **options: Any,
    ) -> "SynapseRetriever":
        """The retriever, with a memory around it.

        Args:
            retriever: Any LangChain retriever; around a plain `VectorStoreRetriever` the result
                is itself one.
            store: Where the memory lies: a path, a URL or a `Synapse`; None: the environment's
                SYNAPSE_RETRIEVERS_STORE, else `synapse.db` in the working directory.
            node: What is learned about: "id" (every document by its id), "source" (documents of
                one metadata["source"] together), "metadata:<key>", or a function of a document.
            id_key: Metadata key with a document's id, where it has no `id`.
            fetch: Ids -> documents; without it only a vector store's documents can come in.
            **options: Of `Synapse`: namespace, recall, learning, clock, enabled, inject, learn ...

        Raises:
            StoreError: The namespace serves another collection, or another kind of nodes.
            TypeError: Something that is no retriever, or options beside a `Synapse`.
        """
        shared: dict[str, Any] = {
            "synapse": memory(store, options),
            "node": node,
            "id_key": id_key,
            "fetch": fetch,
            "tags": getattr(retriever, "tags", None),
            "metadata": getattr(retriever, "metadata", None),
        }
        if _is_plain(retriever):
            wrapped = SynapseVectorStoreRetriever(
                vectorstore=retriever.vectorstore,
                search_type=retriever.search_type,
                search_kwargs=retriever.search_kwargs,
                **shared,
            )
            # The very dict, not pydantic's copy: who changes the wrapped retriever changes ours.
            wrapped.search_kwargs = retriever.search_kwargs
            return wrapped
        return SynapseRetriever(base=retriever, **shared)

    @classmethod
    def from_vectorstore(
        cls,
        vectorstore: VectorStore,
        store: str | os.PathLike[str] | Synapse | None = None,
        *,
        k: int | None = None,
        search_type: str = "similarity",
        search_kwargs: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> "SynapseRetriever":
        """A vector store's retriever with a memory around it; `more` as in `wrap`."""
        kwargs = dict(search_kwargs or {}) | ({} if k is None else {"k": k})
        base = vectorstore.as_retriever(search_type=search_type, search_kwargs=kwargs)
        return cls.wrap(base, store, **more)

    @model_validator(mode="after")
    def _open(self) -> Self:
        """Open the memory and listen; a store that cannot be opened now is a warning."""
        if not isinstance(self.synapse, Synapse):
            self.synapse = Synapse(self.synapse, must_open=False)
        self._checked()
        if self.seam is None:
            self.seam = Seam.opened(self.synapse, node_kind(self.node), self._collection())
        listen()
        return self

    @property
    def last_trace(self) -> Trace | None:
        """What the last recall of this context moved, and why; None before the first."""
        trace: Trace | None = self.seam.last_trace.get()
        return trace

    def explain(self, query: str, config: RunnableConfig | None = None, **kwargs: Any) -> Trace:
        """What is learned about a query: asks the wrapped retriever, notes and teaches nothing."""
        with named(config):
            documents = self._found(
                query, CallbackManagerForRetrieverRun.get_noop_manager(), kwargs
            )
            trace: Trace = self.seam.explain(*self._call(query, documents, None, kwargs))
        return trace

    def invoke(
        self,
        input: str,  # noqa: A002 - LangChain's name
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> list[Document]:
        """As of any retriever; `config["configurable"]["synapse_namespace"]` names the memory."""
        with named(config):
            return super().invoke(input, config, **kwargs)

    async def ainvoke(
        self,
        input: str,  # noqa: A002 - LangChain's name
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> list[Document]:
        """As of any retriever; `config["configurable"]["synapse_namespace"]` names the memory."""
        with named(config):
            return await super().ainvoke(input, config, **kwargs)

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **kwargs: Any
    ) -> list[Document]:
        documents = self._found(query, run_manager, kwargs)
        return self._noted(*self._recalled(query, documents, run_manager, kwargs))

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, **kwargs: Any
    ) -> list[Document]:
        documents = await self._afound(query, run_manager, kwargs)
        return self._noted(
            *await run_in_executor(None, self._recalled, query, documents, run_manager, kwargs)
        )

    def _found(
        self, query: str, run_manager: CallbackManagerForRetrieverRun, kwargs: dict[str, Any]
    ) -> list[Document]:
        config = RunnableConfig(callbacks=run_manager.get_child(), configurable=configurable())
        found: list[Document] = self.base.invoke(query, config, **self._asked(kwargs))
        return found

    async def _afound(
        self, query: str, run_manager: AsyncCallbackManagerForRetrieverRun, kwargs: dict[str, Any]
    ) -> list[Document]:
        config = RunnableConfig(callbacks=run_manager.get_child(), configurable=configurable())
        found: list[Document] = await self.base.ainvoke(query, config, **self._asked(kwargs))
        return found

    def _asked(self, kwargs: dict[str, Any]) -> dict[str, Any]:
        """The call's own arguments, as the wrapped retriever gets them."""
        return ({} if self.k is None else {"k": self.k}) | kwargs

    def _recalled(
        self, query: str, documents: list[Document], run: BaseRunManager, kwargs: dict[str, Any]
    ) -> tuple[list[Document], Trace | None]:
        """What to return, and the trace; whatever fails, what the wrapped retriever returned."""

        def recall() -> tuple[list[Document], Trace | None]:
            recalled = self.seam.recall(*self._call(query, documents, run, kwargs))
            if recalled is None:
                return documents, None
            return recalled.arrange(documents), recalled.trace

        # Anything else than a list, which no retriever should return, must not even be iterated.
        if not isinstance(documents, list):
            return documents, None
        told: tuple[list[Document], Trace | None] = self.synapse.guarded(recall, (documents, None))
        return told

    def _noted(self, documents: list[Document], trace: Trace | None) -> list[Document]:
        # Here, not where it was made: on the async path that was another thread's context.
        if trace is not None:
            self.seam.last_trace.set(trace)
        return documents

    def _call(
        self,
        query: str,
        documents: list[Document],
        run: BaseRunManager | None,
        kwargs: dict[str, Any],
    ) -> tuple[Call, Callable[[Plan], Found] | None]:
        """What the core has to know of a call, and how it can fetch for it."""
        nodes = Nodes(self.node, self.id_key)
        where = self._shelf(self._asked(kwargs))
        closed = where if isinstance(where, str) else None
        results = [nodes.result_of(one) for one in documents]
        run_id = None if run is None else str(run.run_id)
        call = Call(query, results, namespace=namespace_of(run), run_id=run_id, closed=closed)
        if isinstance(where, str):
            return call, None
        return call, lambda plan: find(plan, where, nodes, documents)

    def _shelf(self, restrictions: dict[str, Any]) -> Any:
        inside = {} if self.fetch is None else restrictions_of(self.base)
        return shelf(None, inside | restrictions, self.fetch)

    def _checked(self) -> None:
        if not isinstance(self.base, Runnable):
            raise TypeError(
                f"base={self.base!r:.100} is no retriever: give a LangChain retriever, or call "
                "SynapseRetriever.from_vectorstore(vectorstore)"
            )

    def _collection(self) -> str:
        return ""


class SynapseVectorStoreRetriever(SynapseRetriever, VectorStoreRetriever):
    """A vector store's retriever that learns; search_type and search_kwargs as before."""

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    def _found(
        self, query: str, run_manager: CallbackManagerForRetrieverRun, kwargs: dict[str, Any]
    ) -> list[Document]:
        return VectorStoreRetriever._get_relevant_documents(  # noqa: SLF001 - it is one
            self, query, run_manager=run_manager, **self._asked(kwargs)
        )

    async def _afound(
        self, query: str, run_manager: AsyncCallbackManagerForRetrieverRun, kwargs: dict[str, Any]
    ) -> list[Document]:
        return await VectorStoreRetriever._aget_relevant_documents(  # noqa: SLF001 - it is one
            self, query, run_manager=run_manager, **self._asked(kwargs)
        )

    def _shelf(self, restrictions: dict[str, Any]) -> Any:
        if self.search_type == "similarity_score_threshold":
            return "a score threshold cannot be checked again"
        return shelf(self.vectorstore, self.search_kwargs | restrictions, self.fetch)

    def _checked(self) -> None:
        """The vector store was checked by its own field."""

    def _collection(self) -> str:
        return collection_of(self.vectorstore)


def _is_plain(retriever: object) -> TypeGuard[VectorStoreRetriever]:
    """Whether it searches as VectorStoreRetriever itself does: then ours may stand for it."""
    return isinstance(retriever, VectorStoreRetriever) and (
        type(retriever)._get_relevant_documents  # noqa: SLF001
        is VectorStoreRetriever._get_relevant_documents  # noqa: SLF001
        and type(retriever)._aget_relevant_documents  # noqa: SLF001
        is VectorStoreRetriever._aget_relevant_documents  # noqa: SLF001
        and type(retriever).invoke is BaseRetriever.invoke
        and type(retriever).ainvoke is BaseRetriever.ainvoke
    )
