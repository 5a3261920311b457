"""LlamaIndex under the retriever suite: around two kinds of retrievers, and behind one."""

import asyncio
import importlib
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from llama_index.core import StorageContext, VectorStoreIndex
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.chat_engine import ContextChatEngine
from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata
from llama_index.core.llms.callbacks import llm_completion_callback
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.retrievers import VectorIndexRetriever
from llama_index.core.schema import (
    NodeRelationship,
    NodeWithScore,
    QueryBundle,
    RelatedNodeInfo,
    TextNode,
)
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters, SimpleVectorStore
from llama_index.vector_stores.chroma import ChromaVectorStore
from llama_index_instrumentation.dispatcher import instrument_tags
from pydantic import PrivateAttr

from llama_index.retrievers.synapse import SynapsePostprocessor, SynapseRetriever
from llama_index.retrievers.synapse.listener import listen
from synapse_retrievers import Synapse
from synapse_retrievers.testing.corpus import CORPUS, QUERY, embed
from synapse_retrievers.testing.harness import Harness
from synapse_retrievers.testing.reins import Wrapped
from tests.integrations.chroma_client import chroma_client

with warnings.catch_warnings(), suppress(ImportError):
    # The first index imports it, and it imports langchain-community, which warns of its end.
    warnings.filterwarnings("ignore", "`langchain-community` is being", DeprecationWarning)
    importlib.import_module("llama_index.core.bridge.langchain")

# Told that there is no loop, LlamaIndex's synchronous code runs and closes one of its own; it
# would make one for the thread otherwise, and leave it open.
asyncio.set_event_loop(None)


class HashEmbedding(BaseEmbedding):
    def _get_text_embedding(self, text):
        return embed(text)

    def _get_query_embedding(self, query):
        return embed(query)

    async def _aget_query_embedding(self, query):
        return embed(query)


class Said(CustomLLM):
    """Says its answers in turn, the last one for ever, and keeps what it was asked."""

    answers: tuple[str, ...]
    window: int = 10_000_000
    _prompts: list[str] = PrivateAttr(default_factory=list)

    @property
    def prompts(self):
        return self._prompts

    @property
    def metadata(self):
        return LLMMetadata(context_window=self.window)

    def _next(self, prompt):
        self._prompts.append(prompt)
        return self.answers[min(len(self._prompts), len(self.answers)) - 1]

    @llm_completion_callback()
    def complete(self, prompt, formatted=False, **_):
        return CompletionResponse(text=self._next(prompt))

    @llm_completion_callback()
    def stream_complete(self, prompt, formatted=False, **_):
        answer = self._next(prompt)

        def parts():
            for end in range(25, len(answer) + 25, 25):
                yield CompletionResponse(text=answer[:end], delta=answer[end - 25 : end])

        return parts()


def said(answer):
    return Said(answers=(answer,))


def node(entry):
    document = RelatedNodeInfo(node_id=f"document of {entry.id}")
    return TextNode(
        id_=entry.id,
        text=entry.text,
        metadata=entry.metadata,
        relationships={NodeRelationship.SOURCE: document},
    )


class ReinedChroma(ChromaVectorStore):
    """Its `get_nodes` is held by the reins; it takes two restrictions that nobody knows."""

    _wrapped: Wrapped = PrivateAttr(default_factory=Wrapped)

    def get_nodes(self, node_ids=None, filters=None):
        return self._wrapped.fetched(lambda: super(ReinedChroma, self).get_nodes(node_ids, filters))

    def query(self, query, *, published=True, score_threshold=0.0, **kwargs):
        return super().query(query, **kwargs)


class ReinedRetriever(VectorIndexRetriever):
    """What it finds in the end, its objects followed, is held by the reins."""

    def __init__(self, index, wrapped, **options):
        super().__init__(index, **options)
        self.wrapped = wrapped

    def _handle_recursive_retrieval(self, query_bundle, nodes):
        find = super()._handle_recursive_retrieval
        return self.wrapped.answer(lambda: find(query_bundle, nodes))

    async def _ahandle_recursive_retrieval(self, query_bundle, nodes):
        return self._handle_recursive_retrieval(query_bundle, nodes)


class StubRetriever(BaseRetriever):
    """Ranks by the suite's embedding, with an async path of its own; has no index."""

    def __init__(self, nodes, wrapped=None, k=6, filters=None, vector_store_kwargs=None):
        super().__init__()
        self.nodes = nodes
        self.wrapped = wrapped or Wrapped()
        self.k = k
        self._filters = filters
        self._kwargs = vector_store_kwargs

    def _retrieve(self, query_bundle):
        asked = embed(query_bundle.query_str)

        def likeness(one):
            return round(sum(a * b for a, b in zip(asked, embed(one.text), strict=True)), 9)

        wanted = {one.key: one.value for one in self._filters.filters} if self._filters else {}
        found = [one for one in self.nodes.values() if wanted.items() <= one.metadata.items()]
        ranked = sorted(found, key=lambda one: (-likeness(one), one.node_id))
        return [NodeWithScore(node=one, score=likeness(one)) for one in ranked[: self.k]]

    async def _aretrieve(self, query_bundle):
        return self._retrieve(query_bundle)

    def _handle_recursive_retrieval(self, query_bundle, nodes):
        return self.wrapped.answer(lambda: nodes)

    async def _ahandle_recursive_retrieval(self, query_bundle, nodes):
        return self.wrapped.answer(lambda: nodes)

    def fetch(self, ids):
        return self.wrapped.fetched(
            lambda: {one: self.nodes[one] for one in ids if one in self.nodes}
        )


def indexed(vector_store, entries=CORPUS):
    context = StorageContext.from_defaults(vector_store=vector_store)
    nodes = [node(entry) for entry in entries]
    return VectorStoreIndex(nodes, storage_context=context, embed_model=HashEmbedding())


def chroma(entries=CORPUS, wrapped=None):
    """An index whose vector store holds the text; its docstore is empty."""
    configuration = {"hnsw": {"space": "cosine"}}
    collection = chroma_client().create_collection("corpus", configuration=configuration)
    store = ReinedChroma(chroma_collection=collection)
    store._wrapped = wrapped or Wrapped()
    return indexed(store, entries)


def simple(entries=CORPUS):
    """An index whose text lies in the docstore."""
    return indexed(SimpleVectorStore(), entries)


def only(key, value, operator="=="):
    return MetadataFilters(filters=[MetadataFilter(key=key, value=value, operator=operator)])


RESTRICTIONS = {
    None: {},
    "tenant a": {"filters": only("tenant", "a")},
    "threshold": {"vector_store_kwargs": {"score_threshold": 0.001}},
    "unknown": {"vector_store_kwargs": {"published": True}},
}


class LlamaIndexHarness(Harness):
    """`retrievers` maps a restriction to a retriever: LlamaIndex restricts no calls."""

    runs = ("sync", "async", "stream", "astream", "chat", "achat", "stream chat", "thread")

    def __init__(self, retrievers, wrapped, held):
        self.retrievers = retrievers
        self.retriever = self._asked = retrievers[None]
        self.wrapped = wrapped
        self._held = held

    @property
    def synapse(self) -> Synapse:
        return self.retriever.synapse

    def ask(self, query, *, way="sync", namespace=None, restriction=None):
        self._asked = self.retrievers[restriction]
        with tagged(namespace):
            if way == "sync":
                return self._retrieve(query)
            return asyncio.run(self._aretrieve(query))

    def _retrieve(self, query):
        return self._asked.retrieve(query)

    async def _aretrieve(self, query):
        return await self._asked.aretrieve(query)

    def run_chain(self, query, answer, *, way="sync", namespace=None, listeners=0):
        for _ in range(listeners):
            listen()
        self._asked = self.retriever
        with tagged(namespace):
            return WAYS[way](query, answer, self.parts())

    def parts(self):
        """What an engine is made of."""
        return {"retriever": self.retriever}

    def result(self, entry):
        return NodeWithScore(node=node(entry), score=0.5)

    def id_of(self, result):
        return result.node_id

    def node_of(self, result):
        return result.node

    def stored(self, id):  # noqa: A002
        if isinstance(self._held, StubRetriever):
            return NodeWithScore(node=self._held.nodes[id])
        return NodeWithScore(node=self._held.vector_store.get_nodes([id])[0])

    def delete(self, ids):
        if isinstance(self._held, StubRetriever):
            for one in ids:
                self._held.nodes.pop(one, None)
        else:
            self._held.vector_store.delete_nodes(list(ids))

    def add(self, entries):
        if isinstance(self._held, StubRetriever):
            self._held.nodes.update({one.id: node(one) for one in entries})
        else:
            self._held.insert_nodes([node(entry) for entry in entries])

    def last_trace(self):
        return self._asked.last_trace

    def explain(self, query):
        return self.retriever.explain(query)

    def nested(self):
        inner, index = self.retriever, None
        fetch = inner.base.fetch if isinstance(inner.base, StubRetriever) else None
        if fetch is None:
            index = self._held
        outer = SynapseRetriever(inner, self.synapse, index=index, fetch=fetch)
        return LlamaIndexHarness({None: outer}, self.wrapped, self._held)


class PostprocessorHarness(LlamaIndexHarness):
    """A retriever that nobody wraps, and a postprocessor behind it, in one engine."""

    def __init__(self, processors, retrievers, wrapped, held):
        super().__init__(processors, wrapped, held)
        self._fronts = retrievers

    def _engine(self):
        restriction = next(key for key, one in self.retrievers.items() if one is self._asked)
        return engine("", retriever=self._fronts[restriction], node_postprocessors=[self._asked])

    def _retrieve(self, query):
        return self._engine().retrieve(QueryBundle(query))

    async def _aretrieve(self, query):
        return await self._engine().aretrieve(QueryBundle(query))

    def parts(self):
        return {"retriever": self._fronts[None], "node_postprocessors": [self.retriever]}

    def explain(self, query):
        return self.retriever.explain(self._fronts[None].retrieve(query), query)

    def nested(self):
        processors = {None: SynapsePostprocessor(self.synapse, index=self._held)}
        fronts = {None: SynapseRetriever(self._fronts[None], self.synapse)}
        return PostprocessorHarness(processors, fronts, self.wrapped, self._held)


def tagged(namespace):
    return instrument_tags({} if namespace is None else {"synapse_namespace": namespace})


def engine(answer, *, llm=None, **parts):
    return RetrieverQueryEngine.from_args(llm=llm or said(answer), **parts)


def chat_engine(answer, *, llm=None, **parts):
    # Its own memory opens a database and never closes it.
    memory = ChatMemoryBuffer.from_defaults(token_limit=10_000_000)
    return ContextChatEngine.from_defaults(llm=llm or said(answer), memory=memory, **parts)


async def _astream(query, answer, parts):
    response = await engine(answer, streaming=True, **parts).aquery(query)
    return "".join([part async for part in response.async_response_gen()])


async def _aquery(query, answer, parts):
    return (await engine(answer, **parts).aquery(query)).response


async def _achat(query, answer, parts):
    return (await chat_engine(answer, **parts).achat(query)).response


def _stream(query, answer, parts):
    return "".join(engine(answer, streaming=True, **parts).query(query).response_gen)


def _query(query, answer, parts):
    return engine(answer, **parts).query(query).response


def _thread(query, answer, parts):
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(_query, query, answer, parts).result()


WAYS: dict[str, Callable[[str, str, dict[str, Any]], str]] = {
    "sync": _query,
    "async": lambda *run: asyncio.run(_aquery(*run)),
    "stream": _stream,
    "astream": lambda *run: asyncio.run(_astream(*run)),
    "chat": lambda query, answer, parts: chat_engine(answer, **parts).chat(query).response,
    "achat": lambda *run: asyncio.run(_achat(*run)),
    "stream chat": lambda query, answer, parts: "".join(
        chat_engine(answer, **parts).stream_chat(query).response_gen
    ),
    "thread": _thread,
}


def quoting(nodes):
    return " ".join(node.text for node in nodes)


def learned(synapse):
    """Pair -> activations, and the queries that are remembered."""
    synapse.flush()
    pairs = {edge.pair: edge.activations for edge in synapse.edges()}
    return pairs, [episode.query for episode in synapse.episodes()]


def once(nodes):
    return {tuple(sorted(node.node_id for node in nodes)): 1}, [QUERY]
