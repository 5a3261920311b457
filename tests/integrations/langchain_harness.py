"""LangChain under the retriever suite: three kinds of wrapped retrievers and one RAG chain."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
)
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import FakeListChatModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnablePassthrough
from langchain_core.vectorstores import InMemoryVectorStore

from langchain_synapse_retrievers import SynapseListener, SynapseRetriever
from synapse_retrievers import Synapse
from synapse_retrievers.testing.corpus import CORPUS, embed
from synapse_retrievers.testing.harness import Harness
from synapse_retrievers.testing.reins import Wrapped
from tests.integrations.chroma_client import chroma_client, chroma_settings


class HashEmbeddings(Embeddings):
    def embed_documents(self, texts):
        return [embed(text) for text in texts]

    def embed_query(self, text):
        return embed(text)


def document(entry):
    return Document(id=entry.id, page_content=entry.text, metadata=entry.metadata)


class StubRetriever(BaseRetriever):
    """Ranks by the suite's embedding; takes k, filter (callable), and anything else."""

    documents: Any
    wrapped: Any
    k: int = 6

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,
        k: int | None = None,
        filter: Any = None,  # noqa: A002
        **more: Any,
    ) -> list[Document]:
        return self.wrapped.answer(lambda: self._search(query, k or self.k, filter))

    async def _aget_relevant_documents(
        self,
        query: str,
        *,
        run_manager: AsyncCallbackManagerForRetrieverRun,
        k: int | None = None,
        filter: Any = None,  # noqa: A002
        **more: Any,
    ) -> list[Document]:
        return self.wrapped.answer(lambda: self._search(query, k or self.k, filter))

    def _search(self, query, k, accepts):
        asked = embed(query)

        def far(one):
            likeness = sum(a * b for a, b in zip(asked, embed(one.page_content), strict=True))
            return (-round(likeness, 9), one.id)

        found = [one for one in self.documents.values() if accepts is None or accepts(one)]
        return sorted(found, key=far)[:k]

    def fetch(self, ids):
        return self.wrapped.fetched(
            lambda: {one: self.documents[one] for one in ids if one in self.documents}
        )


class ReinedInMemory(InMemoryVectorStore):
    """Its searches and its `get_by_ids` are held by the reins."""

    wrapped: Any = None

    def similarity_search(self, query, k=4, published=True, **kwargs):
        return self.wrapped.answer(
            lambda: super(ReinedInMemory, self).similarity_search(query, k, **kwargs)
        )

    async def asimilarity_search(self, query, k=4, published=True, **kwargs):
        found = await super().asimilarity_search(query, k, **kwargs)
        return self.wrapped.answer(lambda: found)

    def similarity_search_with_relevance_scores(self, query, k=4, **kwargs):
        found = super().similarity_search_with_relevance_scores(query, k, **kwargs)
        self.wrapped.lists.append([one for one, _ in found])
        return found

    async def asimilarity_search_with_relevance_scores(self, query, k=4, **kwargs):
        found = await super().asimilarity_search_with_relevance_scores(query, k, **kwargs)
        self.wrapped.lists.append([one for one, _ in found])
        return found

    def _select_relevance_score_fn(self):
        return lambda score: score

    def get_by_ids(self, ids):
        return self.wrapped.fetched(lambda: super(ReinedInMemory, self).get_by_ids(ids))


@cache
def reined_chroma():
    """The class, made when first needed: chromadb takes seconds to import."""
    from langchain_chroma import Chroma

    class ReinedChroma(Chroma):
        wrapped: Any = None

        def similarity_search(self, query, k=4, filter=None, published=True, **kwargs):  # noqa: A002
            return self.wrapped.answer(
                lambda: super(ReinedChroma, self).similarity_search(query, k, filter, **kwargs)
            )

        def similarity_search_with_relevance_scores(self, query, k=4, **kwargs):
            found = super().similarity_search_with_relevance_scores(query, k, **kwargs)
            self.wrapped.lists.append([one for one, _ in found])
            return found

        def _select_relevance_score_fn(self):
            # Chroma's own reads a configuration that warns of itself.
            return lambda distance: 1.0 - distance

        def get(self, ids=None, **kwargs):
            return self.wrapped.fetched(lambda: super(ReinedChroma, self).get(ids, **kwargs))

    return ReinedChroma


def chroma(entries=CORPUS, wrapped=None, name="corpus"):
    store = reined_chroma()(
        name,
        HashEmbeddings(),
        client=chroma_client(),
        client_settings=chroma_settings(),
        collection_configuration={"hnsw": {"space": "cosine"}},
    )
    store.wrapped = wrapped or Wrapped()
    if entries:
        store.add_documents([document(entry) for entry in entries])
    return store


def in_memory(entries=CORPUS, wrapped=None):
    store = ReinedInMemory(HashEmbeddings())
    store.wrapped = wrapped or Wrapped()
    store.add_documents([document(entry) for entry in entries])
    return store


def stub(entries=CORPUS, wrapped=None, k=6):
    documents = {entry.id: document(entry) for entry in entries}
    return StubRetriever(documents=documents, wrapped=wrapped or Wrapped(), k=k)


def rag(retriever, answers, listeners=0):
    """The chain that everybody writes, with a model that says these answers in turn."""
    prompt = ChatPromptTemplate.from_template("Context:\n{context}\n\nQuestion: {question}")
    model = FakeListChatModel(responses=list(answers))
    context = retriever | (lambda found: "\n\n".join(one.page_content for one in found))
    chain = {"context": context, "question": RunnablePassthrough()} | prompt | model
    chain |= StrOutputParser()
    if listeners:
        chain = chain.with_config(callbacks=[SynapseListener() for _ in range(listeners)])
    return chain


async def _joined(stream):
    return "".join([part async for part in stream])


async def _events(chain, query, config):
    async for event in chain.astream_events(query, config, version="v2"):
        if event["event"] == "on_chain_end" and not event["parent_ids"]:
            return event["data"]["output"]
    raise AssertionError("no end")


class LangChainHarness(Harness):
    ways = ("sync", "async", "batch", "abatch", "stream", "astream")
    runs = ("sync", "async", "batch", "abatch", "stream", "astream", "astream_events", "thread")

    def __init__(self, retriever, threshold, wrapped, vectorstore):
        self.retriever = retriever
        self.wrapped = wrapped
        self._threshold = threshold
        self._vectorstore = vectorstore
        self._asked = retriever

    @property
    def synapse(self) -> Synapse:
        return self.retriever.synapse

    def ask(self, query, *, way="sync", namespace=None, restriction=None):
        kwargs, self._asked = {}, self.retriever
        if restriction == "tenant a":
            kwargs = {"filter": self._tenant("a")}
        elif restriction == "unknown":
            kwargs = {"published": True}
        elif restriction == "threshold":
            self._asked, kwargs = self._threshold
        config = self._config(namespace)
        return _ask(self._asked, query, config, way, kwargs)

    def run_chain(self, query, answer, *, way="sync", namespace=None, listeners=0):
        self._asked = self.retriever
        return _run(rag(self.retriever, [answer], listeners), query, self._config(namespace), way)

    def result(self, entry):
        return document(entry)

    def id_of(self, result):
        return result.id

    def stored(self, id):  # noqa: A002
        if isinstance(self._vectorstore, StubRetriever):
            return self._vectorstore.documents[id]
        return self._vectorstore.get_by_ids([id])[0]

    def delete(self, ids):
        if isinstance(self._vectorstore, StubRetriever):
            for one in ids:
                self._vectorstore.documents.pop(one, None)
        else:
            self._vectorstore.delete(list(ids))

    def add(self, entries):
        if isinstance(self._vectorstore, StubRetriever):
            self._vectorstore.documents.update({one.id: document(one) for one in entries})
        else:
            self._vectorstore.add_documents([document(entry) for entry in entries])

    def last_trace(self):
        return self._asked.last_trace

    def explain(self, query):
        return self.retriever.explain(query)

    def nested(self):
        outer = SynapseRetriever.wrap(self.retriever, self.synapse)
        return LangChainHarness(outer, (outer, {}), self.wrapped, self._vectorstore)

    def _config(self, namespace):
        return {} if namespace is None else {"configurable": {"synapse_namespace": namespace}}

    def _tenant(self, tenant):
        if hasattr(self._vectorstore, "_collection"):
            return {"tenant": tenant}
        return lambda one: one.metadata["tenant"] == tenant


def _ask(retriever, query, config, way, kwargs):
    if way == "sync":
        return retriever.invoke(query, config, **kwargs)
    if way == "async":
        return asyncio.run(retriever.ainvoke(query, config, **kwargs))
    if way == "batch":
        return retriever.batch([query, query], config, **kwargs)[1]
    if way == "abatch":
        return asyncio.run(retriever.abatch([query, query], config, **kwargs))[0]
    if way == "stream":
        return next(iter(retriever.stream(query, config, **kwargs)))
    return asyncio.run(_first(retriever.astream(query, config, **kwargs)))


async def _first(stream):
    async for one in stream:
        return one
    raise AssertionError("no result")


def _run(chain, query, config, way):  # noqa: PLR0911 - one a way
    if way == "sync":
        return chain.invoke(query, config)
    if way == "async":
        return asyncio.run(chain.ainvoke(query, config))
    if way == "batch":
        return chain.batch([query], config)[0]
    if way == "abatch":
        return asyncio.run(chain.abatch([query], config))[0]
    if way == "stream":
        return "".join(chain.stream(query, config))
    if way == "astream":
        return asyncio.run(_joined(chain.astream(query, config)))
    if way == "astream_events":
        return asyncio.run(_events(chain, query, config))
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(chain.invoke, query, config).result()
