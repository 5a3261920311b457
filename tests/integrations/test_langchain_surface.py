"""The rest of LangChain: agents with several turns, and every kind of retriever inside ours."""

import asyncio
import importlib
import warnings

import pytest
from langchain.agents import create_agent
from langchain_classic.retrievers import (
    ContextualCompressionRetriever,
    EnsembleRetriever,
    MultiQueryRetriever,
    ParentDocumentRetriever,
)
from langchain_classic.storage import InMemoryStore
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.language_models import FakeListLLM, GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolCall
from langchain_core.runnables import ConfigurableField, RunnableLambda, RunnableParallel
from langchain_core.tools import create_retriever_tool, tool
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_text_splitters import CharacterTextSplitter

from langchain_synapse_retrievers import SynapseRetriever
from langchain_synapse_retrievers.middleware import SynapseMiddleware
from synapse_retrievers.testing.corpus import CORPUS, QUERY
from tests.integrations.langchain_harness import HashEmbeddings, document, in_memory


def community(module, name):
    """Out of langchain-community, which warns of its own end when it is imported."""
    pytest.importorskip("langchain_community")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return getattr(importlib.import_module(f"langchain_community.{module}"), name)


def ids(documents):
    return [one.id for one in documents]


class Scripted(GenericFakeChatModel):
    def bind_tools(self, tools, **_):
        return self


@tool
def read_file(path: str) -> str:
    """Read a file."""
    return f"content of {path}"


def script(found):
    """Search, say what the first hit says and read the third one's file, then say the second's."""
    search = ToolCall(name="search", args={"query": QUERY}, id="1")
    read = ToolCall(name="read_file", args={"path": found[2].metadata["source"]}, id="2")
    return iter(
        [
            AIMessage("", tool_calls=[search]),
            AIMessage(found[0].page_content, tool_calls=[read]),
            AIMessage(f"{found[0].page_content} {found[1].page_content}"),
        ]
    )


def run(agent, way):
    asked = {"messages": [("user", "how often?")]}
    if way == "sync":
        agent.invoke(asked)
    elif way == "async":
        asyncio.run(agent.ainvoke(asked))
    elif way == "stream":
        list(agent.stream(asked))
    else:

        async def all_of_it():
            return [part async for part in agent.astream(asked)]

        asyncio.run(all_of_it())


@pytest.mark.parametrize("way", ["sync", "async", "stream", "astream"])
@pytest.mark.parametrize("has_middleware", [False, True])
def test_an_agent_of_several_turns_teaches_each_pair_once(way, has_middleware):
    ours = SynapseRetriever.from_vectorstore(in_memory(), "memory:", k=4)
    found = in_memory().similarity_search(QUERY, k=4)
    model = Scripted(messages=script(found))
    if has_middleware:
        agent = create_agent(model, [read_file], middleware=[SynapseMiddleware(ours)])
    else:
        search = create_retriever_tool(ours, "search", "Searches.")
        agent = create_agent(model, [read_file, search])
    run(agent, way)
    used = ids(found[:3])
    assert {edge.pair: edge.activations for edge in ours.synapse.edges()} == {
        tuple(sorted([one, other])): 1 for one in used for other in used if one < other
    }
    (episode,) = ours.synapse.episodes()
    assert episode.query == QUERY
    assert {node: use.strength for node, use in episode.used.items()} == dict(
        zip(used, [0.6, 0.6, 0.5], strict=True)
    )
    ours.synapse.close()


def ensemble():
    store = in_memory()
    parts = [store.as_retriever(search_kwargs={"k": k}) for k in (4, 5)]
    return EnsembleRetriever(retrievers=parts, weights=[0.5, 0.5])


def multi_query():
    return MultiQueryRetriever.from_llm(
        in_memory().as_retriever(search_kwargs={"k": 3}),
        FakeListLLM(responses=["backups of the ledger\nrate limits per account"]),
    )


class Shortened(BaseDocumentCompressor):
    """Leaves the last one out, and new objects around the rest."""

    def compress_documents(self, documents, query, callbacks=None):
        return [one.model_copy() for one in documents[:-1]]


def compression():
    return ContextualCompressionRetriever(
        base_compressor=Shortened(),
        base_retriever=in_memory().as_retriever(search_kwargs={"k": 5}),
    )


def parent(vectorstore=None):
    retriever = ParentDocumentRetriever(
        vectorstore=vectorstore or InMemoryVectorStore(HashEmbeddings()),
        docstore=InMemoryStore(),
        child_splitter=CharacterTextSplitter(separator=" ", chunk_size=40, chunk_overlap=0),
    )
    documents = [document(one) for one in CORPUS]
    retriever.add_documents(documents, ids=[one.id for one in CORPUS])
    return retriever


def bm25():
    found = community("retrievers", "BM25Retriever")
    return found.from_documents([document(one) for one in CORPUS], k=5)


@pytest.mark.parametrize("make", [ensemble, multi_query, parent, bm25])
def test_any_retriever_keeps_its_count_and_objects_and_brings_in_through_fetch(make):
    base = make()
    plain = base.invoke(QUERY)
    library = {one.id: document(one) for one in CORPUS}
    ours = SynapseRetriever.wrap(
        base, "memory:", fetch=lambda asked: {one: library[one] for one in asked if one in library}
    )
    assert ids(ours.invoke(QUERY)) == ids(plain)
    absent = next(one.id for one in CORPUS if one.id not in ids(plain))
    ours.synapse.reinforce([plain[-1].id, absent], query=QUERY)
    for after in (ours.invoke(QUERY), asyncio.run(ours.ainvoke(QUERY))):
        assert len(after) == len(plain)
        assert (absent in ids(after)) is (len(plain) > 1)


def limited(**more):
    return in_memory().as_retriever(search_kwargs={"k": 3, "filter": lambda one: True, **more})


def threshold():
    return in_memory().as_retriever(
        search_type="similarity_score_threshold", search_kwargs={"k": 3, "score_threshold": -2.0}
    )


def kept_in():
    """Retrievers with something inside that keeps documents out, however deep it lies."""
    plain = in_memory().as_retriever(search_kwargs={"k": 3})
    field = ConfigurableField(id="search_kwargs")
    parents = parent()
    parents.search_kwargs = {"filter": lambda one: True}
    held = limited()
    thresholds = parent(in_memory([]))
    thresholds.search_type = "similarity_score_threshold"
    thresholds.search_kwargs = {"score_threshold": -2.0}
    return {
        "ensemble": EnsembleRetriever(retrievers=[plain, limited()], weights=[0.5, 0.5]),
        "threshold in an ensemble": EnsembleRetriever(retrievers=[threshold(), plain]),
        "bound": plain.bind(filter=lambda one: True),
        "alternatives": plain.configurable_alternatives(
            ConfigurableField(id="which"), default_key="plain", limited=limited()
        ),
        "alternatives made later": plain.configurable_alternatives(
            ConfigurableField(id="which"), default_key="plain", limited=limited
        ),
        "fields": plain.configurable_fields(search_kwargs=field),
        "fallback": plain.with_fallbacks([limited()]),
        "retry": limited().with_retry(),
        "parents": parents,
        "thresholds of parents": thresholds,
        "compression": compression(),
        "a function that asks": RunnableLambda(lambda query: held.invoke(query, {"tags": ["a"]})),
        "a function behind": plain | RunnableLambda(lambda found: found[:]),
        "parallel": RunnableParallel(one=limited()) | RunnableLambda(lambda found: found["one"]),
    }


@pytest.mark.parametrize("name", kept_in())
def test_what_keeps_documents_out_inside_of_a_retriever_closes_its_fetch(name):
    base = kept_in()[name]
    plain = base.invoke(QUERY)
    library = {one.id: document(one) for one in CORPUS}
    ours = SynapseRetriever.wrap(
        base, "memory:", fetch=lambda asked: {one: library[one] for one in asked}
    )
    absent = next(one.id for one in CORPUS if one.id not in ids(plain))
    ours.synapse.reinforce([plain[-1].id, absent], query=QUERY)
    for after in (ours.invoke(QUERY), asyncio.run(ours.ainvoke(QUERY))):
        assert sorted(ids(after)) == sorted(ids(plain))
        assert "cannot" in ours.last_trace.reason


@pytest.mark.parametrize("way", ["sync", "async"])
@pytest.mark.parametrize("outside", [EnsembleRetriever, MultiQueryRetriever, None])
def test_metadata_names_the_namespace_of_retrievers_in_others(outside, way):
    ours = SynapseRetriever.from_vectorstore(in_memory(), "memory:", k=3, namespace=None)
    plain = ours.invoke(QUERY)
    absent = next(one.id for one in CORPUS if one.id not in ids(plain))
    ours.synapse.reinforce([plain[0].id, absent], query=QUERY, namespace="team-a")
    asked = {
        EnsembleRetriever: EnsembleRetriever(retrievers=[ours]),
        MultiQueryRetriever: MultiQueryRetriever.from_llm(ours, FakeListLLM(responses=[QUERY])),
        None: ours,
    }[outside]
    for name, is_in in [("team-a", True), ("team-b", False)]:
        config = {"metadata": {"synapse_namespace": name}}
        if way == "sync":
            found = asked.invoke(QUERY, config)
        else:
            found = asyncio.run(asked.ainvoke(QUERY, config))
        assert (absent in ids(found)) is is_in
    assert absent not in ids(asked.invoke(QUERY))


def test_without_fetch_a_retriever_of_retrievers_is_only_reordered():
    base = ensemble()
    plain = base.invoke(QUERY)
    ours = SynapseRetriever.wrap(base, "memory:")
    absent = next(one.id for one in CORPUS if one.id not in ids(plain))
    ours.synapse.reinforce([plain[-1].id, absent], query=QUERY)
    after = ours.invoke(QUERY)
    assert sorted(ids(after)) == sorted(ids(plain))
    assert ids(after) != ids(plain)
    assert "fetch=" in ours.last_trace.reason


def test_texts_without_ids_pass_through_and_are_counted():
    base = community("retrievers", "BM25Retriever").from_texts([one.text for one in CORPUS], k=4)
    ours = SynapseRetriever.wrap(base, "memory:")
    plain = base.invoke(QUERY)
    after = ours.invoke(QUERY)
    assert len(after) == len(plain)
    assert all(one is other for one, other in zip(after, plain, strict=True))
    assert ours.synapse.stats().unidentified == 4


def test_faiss_hands_out_its_own_documents_and_they_are_never_written():
    faiss = community("vectorstores", "FAISS").from_documents(
        [document(one) for one in CORPUS], HashEmbeddings(), ids=[one.id for one in CORPUS]
    )
    ours = SynapseRetriever.wrap(faiss.as_retriever(search_kwargs={"k": 4}), "memory:")
    plain = faiss.similarity_search(QUERY, k=4)
    absent = next(one.id for one in CORPUS if one.id not in ids(plain))
    ours.synapse.reinforce([plain[-1].id, absent], query=QUERY)
    after = ours.invoke(QUERY)
    assert absent in ids(after)
    for one in after:
        (kept,) = faiss.get_by_ids([one.id])
        assert isinstance(kept, Document)
        assert set(kept.metadata) == {"tenant", "source"}
