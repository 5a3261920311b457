"""Inputs that broke other LangChain retrievers and wrappers (cases.md)."""

import asyncio
import copy
import gc
import math
import tracemalloc
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda, RunnablePassthrough

from langchain_synapse_retrievers import SynapseListener, SynapseRetriever
from synapse_retrievers import LEDGER, TREE, Synapse
from synapse_retrievers.learning.lesson import Lesson
from synapse_retrievers.testing.corpus import CORPUS, QUERY, Entry
from tests.integrations.langchain_harness import (
    LangChainHarness,
    chroma,
    document,
    in_memory,
    rag,
    stub,
)

BY_ID = {entry.id: entry for entry in CORPUS}


class Fixed(BaseRetriever):
    """Returns the same objects whatever is asked."""

    documents: Any

    def _get_relevant_documents(self, query, *, run_manager):
        return self.documents


def ids(documents):
    return [one.id for one in documents]


def lessons():
    told = []
    return told, lambda event: told.append(event) if isinstance(event, Lesson) else None


@pytest.fixture(params=[chroma, in_memory])
def vectorstore(request):
    return request.param()


# 1: langchain #27920


@pytest.mark.parametrize("taught", [0, 3])
def test_case_1_every_way_gives_the_same_five(vectorstore, taught):
    base = vectorstore.as_retriever(search_kwargs={"k": 10})
    ours = SynapseRetriever.wrap(base, "memory:")
    ours.k = 5
    for number in range(taught):
        ours.synapse.reinforce([CORPUS[number].id, CORPUS[-1].id], query=QUERY)
    harness = LangChainHarness(ours, (ours, {}), vectorstore.wrapped, vectorstore)
    found = {way: ids(harness.ask(QUERY, way=way)) for way in harness.ways}
    assert {len(one) for one in found.values()} == {5}
    assert all(one == found["sync"] for one in found.values())


# 2: langchain #7290


@pytest.mark.parametrize("how", ["config", "with_config", "automatic", "all", "the retriever"])
@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_case_2_one_lesson_with_the_query_however_we_listen(how, way):
    told, note = lessons()
    ours = SynapseRetriever.from_vectorstore(in_memory(), "memory:", k=4, on_event=note)
    used = [BY_ID[one.id].text for one in ours.invoke(QUERY)[:2]]
    told.clear()
    retriever = ours
    if how in {"the retriever", "all"}:
        retriever = ours.with_config(callbacks=[SynapseListener()])
    chain = {"context": retriever, "q": RunnablePassthrough()} | (
        RunnablePassthrough() | RunnableLambda(str) | _model(" ".join(used))
    )
    config = {"callbacks": [SynapseListener()]} if how in {"config", "all"} else None
    if how in {"with_config", "all"}:
        chain = chain.with_config(callbacks=[SynapseListener(), SynapseListener()])
    if way == "invoke":
        chain.invoke(QUERY, config)
    else:
        asyncio.run(chain.ainvoke(QUERY, config))
    (lesson,) = told
    assert [query.key for query, _ in lesson.episodes] == [QUERY]
    assert len(lesson.used) == 2


def _model(answer):
    from langchain_core.language_models import FakeListChatModel

    return FakeListChatModel(responses=[answer])


# 3: langchain #25528


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_case_3_per_call_arguments_reach_the_base_and_do_not_stay(way):
    base = stub(k=6)
    ours = SynapseRetriever.wrap(base, "memory:", fetch=base.fetch)
    ours.synapse.reinforce([CORPUS[0].id, CORPUS[-1].id], query=QUERY)

    def ask(**kwargs):
        if way == "invoke":
            return ours.invoke(QUERY, **kwargs)
        return asyncio.run(ours.ainvoke(QUERY, **kwargs))

    usual = ids(ask())
    assert len(ask(k=2)) == 2
    filtered = ask(filter=lambda one: one.metadata["tenant"] == "a")
    assert {one.metadata["tenant"] for one in filtered} == {"a"}
    assert ids(ask()) == usual
    assert len(usual) == 6


def test_case_3_over_chroma_with_its_own_filters(vectorstore):
    ours = SynapseRetriever.from_vectorstore(vectorstore, "memory:", k=6)
    where = (
        {"tenant": "a"}
        if hasattr(vectorstore, "_collection")
        else (lambda one: one.metadata["tenant"] == "a")
    )
    ours.synapse.reinforce([one.id for one in CORPUS[-4:]], query=QUERY)
    usual = ids(ours.invoke(QUERY))
    assert len(ours.invoke(QUERY, k=2)) == 2
    assert {one.metadata["tenant"] for one in ours.invoke(QUERY, filter=where)} == {"a"}
    assert ids(ours.invoke(QUERY)) == usual
    assert ours.search_kwargs == {"k": 6}


# 4: langchain #26860


def test_case_4_documents_without_ids_are_passed_through_and_counted(tmp_path):
    same = "the same text twice"
    documents = [
        Document(page_content=same, metadata={"page": 1}),
        Document(page_content=same, metadata={"page": 2}),
        Document(page_content=CORPUS[0].text),
    ]
    base = Fixed(documents=documents)
    ours = SynapseRetriever.wrap(base, tmp_path / "synapse.db")
    assert ours.invoke(QUERY) is documents
    rag(ours, [CORPUS[0].text]).invoke(QUERY)
    assert list(ours.synapse.episodes()) == []
    assert ours.synapse.stats().unidentified == 6


def test_case_4_ids_in_metadata_are_ids(tmp_path):
    documents = [
        Document(page_content="one two three four", metadata={"_id": "q1"}),
        Document(page_content=CORPUS[0].text, metadata={"key": "q2"}),
        Document(page_content=CORPUS[1].text, metadata={"key": 7}),
        Document(id="", page_content=CORPUS[2].text, metadata={"key": "q3"}),
    ]
    ours = SynapseRetriever.wrap(Fixed(documents=documents), tmp_path / "synapse.db", id_key="key")
    rag(ours, [CORPUS[0].text + CORPUS[1].text + CORPUS[2].text]).invoke(QUERY)
    ours.synapse.close()
    again = SynapseRetriever.wrap(Fixed(documents=documents), tmp_path / "synapse.db", id_key="key")
    (episode,) = again.synapse.episodes()
    assert set(episode.used) == {"q2", "q3"}
    assert ids(again.invoke(QUERY)) == ids([documents[1], documents[3], documents[0], documents[2]])


# 5: langchain #10864


def test_case_5_negative_relevance_scores_and_empty_threshold_searches():
    store = in_memory()
    store._select_relevance_score_fn = lambda: lambda score: score - 1.5
    ours = SynapseRetriever.from_vectorstore(
        store,
        "memory:",
        search_type="similarity_score_threshold",
        search_kwargs={"k": 3, "score_threshold": -2.0},
    )
    with pytest.warns(UserWarning, match="Relevance scores"):
        cold = ours.invoke(QUERY)
    ours.synapse.reinforce([cold[-1].id, CORPUS[-1].id], query=QUERY)
    with pytest.warns(UserWarning, match="Relevance scores"):
        warm = ours.invoke(QUERY)
    assert ids(warm)[0] == cold[-1].id
    assert sorted(ids(warm)) == sorted(ids(cold))
    ours.search_kwargs["score_threshold"] = 2.0
    with pytest.warns(UserWarning, match="No relevant docs|Relevance scores"):
        assert ours.invoke(QUERY) == []


# 9: mcp-memory-service #632


@pytest.mark.parametrize("way", ["sync", "async"])
def test_case_9_a_deleted_document_is_dead_under_its_old_id(vectorstore, way):
    ours = SynapseRetriever.from_vectorstore(vectorstore, "memory:", k=6)
    harness = LangChainHarness(ours, (ours, {}), vectorstore.wrapped, vectorstore)
    hits = ids(harness.ask(QUERY))
    absent = next(entry for entry in CORPUS if entry.id not in hits)
    for turn in range(5):
        ours.synapse.reinforce([hits[0], absent.id], query=f"{QUERY} {turn}")
    assert absent.id in ids(harness.ask(QUERY, way=way))
    vectorstore.delete([absent.id])
    vectorstore.add_documents([document(Entry("again", absent.text, "a", absent.source))])
    for _ in range(3):
        found = harness.ask(QUERY, way=way)
        assert absent.id not in ids(found)
        assert len(found) == 6
    assert "again" not in {node for edge in ours.synapse.edges() for node in edge.pair}


# 10: graph-rag #170


@pytest.mark.parametrize("form", ["dict", "and", "in", "search_kwargs", "where_document", "ids"])
@pytest.mark.parametrize("way", ["sync", "async"])
def test_case_10_no_document_of_another_tenant_over_chroma(form, way):
    store = chroma()
    ours = SynapseRetriever.from_vectorstore(store, "memory:", k=4)
    others = [entry.id for entry in CORPUS if entry.tenant == "b"]
    own = [entry.id for entry in CORPUS if entry.tenant == "a"]
    ours.synapse.reinforce(others[-3:], query=QUERY)
    kwargs = {
        "dict": {"filter": {"tenant": "a"}},
        "and": {"filter": {"$and": [{"tenant": "a"}, {"source": {"$ne": "x"}}]}},
        "in": {"filter": {"tenant": {"$in": ["a", "c"]}}},
        "search_kwargs": {},
        "where_document": {"where_document": {"$contains": "keys"}},
        "ids": {"ids": own},
    }[form]
    if form == "search_kwargs":
        ours.search_kwargs["filter"] = {"tenant": "a"}
    found = (
        ours.invoke(QUERY, **kwargs)
        if way == "sync"
        else asyncio.run(ours.ainvoke(QUERY, **kwargs))
    )
    assert len(found) == len(store.wrapped.lists[-1])
    assert not {one.id for one in found} & set(others[-3:])
    if len(found) > 1:
        assert set(ours.last_trace.refused) >= set(others[-3:])
    assert ours.synapse.prune().nodes == 0


def test_case_10_no_document_of_another_tenant_by_a_function():
    store = in_memory()
    ours = SynapseRetriever.from_vectorstore(store, "memory:", k=4)
    others = [entry.id for entry in CORPUS if entry.tenant == "b"]
    ours.synapse.reinforce(others[-3:], query=QUERY)
    found = ours.invoke(QUERY, filter=lambda one: one.metadata["tenant"] == "a")
    assert {one.metadata["tenant"] for one in found} == {"a"}
    assert len(found) == 4
    assert set(ours.last_trace.refused) == set(others[-3:])


# 12: opik #7516


class Flaky(BaseRetriever):
    """Fails, hangs or answers, as the query says."""

    def _get_relevant_documents(self, query, *, run_manager):
        if query.startswith("fail"):
            raise LookupError(query)
        return [document(entry) for entry in CORPUS[:2]]

    async def _aget_relevant_documents(self, query, *, run_manager):
        if query.startswith("hang"):
            await asyncio.Event().wait()
        return self._get_relevant_documents(query, run_manager=run_manager)


async def cancelled(retriever, count):
    for number in range(count):
        task = asyncio.create_task(retriever.ainvoke(f"hang {number}"))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


@pytest.mark.parametrize("scale", [1, pytest.param(50, marks=pytest.mark.stress)])
def test_case_12_failing_and_cancelled_calls_leave_bounded_maps(scale):
    ours = SynapseRetriever.wrap(Flaky(), "memory:")
    listener = {"callbacks": [SynapseListener()]}
    LEDGER.clear()

    def work():
        for number in range(150 * scale):
            ours.invoke(f"ask {number % 7}", listener)
        for number in range(20 * scale):
            with pytest.raises(LookupError):
                ours.invoke(f"fail {number}", listener)
        asyncio.run(cancelled(ours, 20 * scale))

    if scale > 1:
        work()
    gc.collect()
    tracemalloc.start()
    try:
        work()
        gc.collect()
        grown, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert grown < 20_000_000
    assert len(LEDGER._pending) <= 256
    assert len(LEDGER._asked) == 0
    assert len(LEDGER) <= 10_256
    assert len(TREE) <= 10_000


# From trials: scores, identity, objects.


@pytest.mark.parametrize("word", ["false", "0", "no", ""])
def test_the_kill_switch_set_to_no_is_not_on(word, monkeypatch):
    monkeypatch.setenv("SYNAPSE_RETRIEVERS_DISABLED", word)
    assert Synapse("memory:").is_on


def test_building_an_index_injects_nothing(vectorstore):
    ours = SynapseRetriever.from_vectorstore(vectorstore, "memory:", k=6)
    ours.add_documents([document(Entry("late", "a late text of its own", "a", "late.md"))])
    found = ours.invoke(QUERY)
    assert found is vectorstore.wrapped.lists[-1]


def test_shared_objects_of_the_wrapped_retriever_are_never_written():
    documents = [document(entry) for entry in CORPUS[:6]]
    documents[0].metadata["nested"] = {"score": math.nan, "list": [1, 2]}
    ours = SynapseRetriever.wrap(Fixed(documents=documents), "memory:")
    ours.synapse.reinforce([CORPUS[4].id, CORPUS[5].id], query=QUERY)
    before = copy.deepcopy(documents)
    for _ in range(5):
        rag(ours, [CORPUS[4].text]).invoke(QUERY)
    assert repr(documents) == repr(before)
    assert ids(documents) == [entry.id for entry in CORPUS[:6]]


def test_a_retriever_that_returns_a_tuple_or_nothing_fails_no_call():
    for result in ((), tuple(document(entry) for entry in CORPUS[:4])):
        ours = SynapseRetriever.wrap(Fixed(documents=result), "memory:")
        ours.synapse.reinforce([CORPUS[3].id, CORPUS[2].id], query=QUERY)
        assert sorted(ids(ours.invoke(QUERY))) == sorted(ids(result))
