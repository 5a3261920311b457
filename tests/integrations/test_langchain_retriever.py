"""One retriever in many shapes: what it returns, and what it knows of it."""

import asyncio
import copy
import threading
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import (
    ConfigurableField,
    RunnableLambda,
)
from langchain_core.vectorstores import VectorStoreRetriever
from pydantic import ValidationError

from langchain_synapse_retrievers import (
    SynapseRetriever,
    SynapseVectorStoreRetriever,
)
from synapse_retrievers import LEDGER, Synapse
from synapse_retrievers.learning.lesson import Lesson
from synapse_retrievers.testing.corpus import CORPUS, QUERY
from tests.integrations.langchain_harness import chroma, document, in_memory, rag, stub

BY_ID = {entry.id: entry for entry in CORPUS}
PROMPT = ChatPromptTemplate.from_template("Context:\n{context}\n\nQuestion: {input}")


@pytest.fixture(autouse=True)
def _fresh_ledger():
    """No retrieval of another test may be taken for this one's."""
    LEDGER.clear()


@pytest.fixture
def told():
    return []


@pytest.fixture
def ours(told):
    """Over a vector store, four results, every lesson noted."""
    return SynapseRetriever.from_vectorstore(
        in_memory(),
        "memory:",
        k=4,
        on_event=lambda event: told.append(event) if isinstance(event, Lesson) else None,
    )


def ids(documents):
    return [one.id for one in documents]


def texts(documents):
    return "\n\n".join(one.page_content for one in documents)


def using(retriever, query=QUERY, count=2):
    """An answer that uses the first results; asked of the wrapped retriever, so not noted."""
    found = retriever.vectorstore.similarity_search(query, 4)
    return texts(found[:count])


def model(*answers):
    return FakeListChatModel(responses=list(answers))


def one_lesson(told, query=QUERY, count=2):
    (lesson,) = told
    assert [known.key for known, _ in lesson.episodes] == [query]
    assert len(lesson.used) == count


def named(namespace):
    return {"configurable": {"synapse_namespace": namespace}}


# The last trace.


def test_the_last_trace_is_there_after_a_chain(ours):
    ours.invoke("another question")
    for run in (
        lambda chain: chain.invoke(QUERY),
        lambda chain: list(chain.stream(QUERY)),
        lambda chain: chain.batch([QUERY]),
        lambda chain: asyncio.run(chain.ainvoke(QUERY)),
    ):
        ours.invoke("another question")
        run(rag(ours, ["no"]))
        assert ours.last_trace.query == QUERY


@pytest.mark.parametrize("shape", ["retriever", "chain"])
def test_the_last_trace_is_each_threads_own(ours, shape):
    gate = threading.Barrier(4)

    def ask(number):
        (ours if shape == "retriever" else rag(ours, ["no"])).invoke(f"question {number}")
        gate.wait()
        return ours.last_trace.query

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(ask, range(4))) == [f"question {number}" for number in range(4)]


@pytest.mark.parametrize("shape", ["retriever", "chain"])
def test_the_last_trace_is_each_tasks_own(ours, shape):
    done = []

    async def ask(number, gate):
        await (ours if shape == "retriever" else rag(ours, ["no"])).ainvoke(f"question {number}")
        done.append(number)
        if len(done) == 4:
            gate.set()
        await gate.wait()
        return ours.last_trace.query

    async def all_of_them():
        gate = asyncio.Event()
        return await asyncio.gather(*(ask(number, gate) for number in range(4)))

    assert asyncio.run(all_of_them()) == [f"question {number}" for number in range(4)]


def test_two_retrievers_have_each_their_own_last_trace(ours):
    other = SynapseRetriever.from_vectorstore(in_memory(), ours.synapse, k=2)
    ours.invoke("one")
    assert other.last_trace is None
    other.invoke("two")
    assert (ours.last_trace.query, other.last_trace.query) == ("one", "two")
    assert (ours.last_trace.budget, other.last_trace.budget) == (4, 2)


def test_another_context_sees_the_newest(ours):
    copy_context().run(ours.invoke, "asked elsewhere")
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(lambda: ours.last_trace.query).result() == "asked elsewhere"


# One object, many shapes.


def warm(retriever):
    shown = ids(retriever.vectorstore.similarity_search(QUERY, 4))
    absent = next(entry.id for entry in CORPUS if entry.id not in shown)
    retriever.synapse.reinforce([shown[0], absent], query=QUERY)
    return absent


@pytest.mark.parametrize(
    "copied",
    [copy.copy, copy.deepcopy, lambda one: one.model_copy(), lambda one: one.model_copy(deep=True)],
)
def test_a_copy_shares_the_memory(ours, copied):
    twin = copied(ours)
    absent = warm(ours)
    assert twin.synapse is ours.synapse
    assert absent in ids(twin.invoke(QUERY))


def test_configurable_fields_keep_the_memory(ours, told):
    absent = warm(ours)
    told.clear()
    field = ConfigurableField(id="search_kwargs")
    configured = ours.configurable_fields(search_kwargs=field)
    found = configured.invoke(QUERY, {"configurable": {"search_kwargs": {"k": 3}}})
    assert len(found) == 3
    assert absent in ids(configured.invoke(QUERY))
    rag(configured, [using(ours)]).invoke(QUERY, {"configurable": {"search_kwargs": {"k": 4}}})
    assert len(told) == 1
    assert ours.last_trace.query == QUERY


def test_configurable_alternatives_of_the_base_and_ours(ours):
    plain = ours.vectorstore.as_retriever(search_kwargs={"k": 4})
    either = plain.configurable_alternatives(
        ConfigurableField(id="memory"), default_key="off", on=ours
    )
    absent = warm(ours)
    assert absent not in ids(either.invoke(QUERY))
    assert absent in ids(either.invoke(QUERY, {"configurable": {"memory": "on"}}))


@pytest.mark.parametrize("kind", [SynapseRetriever, SynapseVectorStoreRetriever])
def test_options_that_do_not_exist_are_refused(kind):
    known = {"base": stub()} if kind is SynapseRetriever else {"vectorstore": in_memory()}
    with pytest.raises(ValidationError, match="typo"):
        kind(synapse="memory:", typo=1, **known)
    with pytest.raises(ValidationError, match="callbacks"):
        kind(synapse="memory:", callbacks=[], **known)
    with pytest.raises(TypeError):
        SynapseRetriever.wrap(stub(), "memory:", typo=1)
    with pytest.raises(TypeError, match="namespace"):
        SynapseRetriever.wrap(stub(), Synapse("memory:"), namespace="acme")
    with pytest.raises((TypeError, ValueError), match="retriever"):
        SynapseRetriever.wrap("no retriever", "memory:")
    with pytest.raises(ValueError, match="node"):
        SynapseRetriever.wrap(stub(), "memory:", node="nonsense")


def test_it_is_a_vector_store_retriever_in_every_way():
    store = chroma()
    base = store.as_retriever(tags=["mine"], metadata={"team": "search"}, search_kwargs={"k": 3})
    wrapped = SynapseRetriever.wrap(base, "memory:")
    assert isinstance(wrapped, VectorStoreRetriever)
    assert wrapped.tags == base.tags
    assert wrapped.metadata == base.metadata
    theirs, mine = base._get_ls_params(), wrapped._get_ls_params()
    for key in ("ls_vector_store_provider", "ls_embedding_provider"):
        assert mine.get(key) == theirs.get(key)
    (added,) = wrapped.add_documents([document(CORPUS[0]).model_copy(update={"id": "new"})])
    assert added == "new"
    assert base.search_kwargs == {"k": 3}
    wrapped.search_kwargs["k"] = 5
    assert len(wrapped.invoke(QUERY)) == 5
    assert len(base.invoke(QUERY)) in {3, 5}


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_mmr_keeps_its_arguments_and_its_count(way):
    store = chroma()
    base = store.as_retriever(search_type="mmr", search_kwargs={"k": 4, "fetch_k": 8})
    wrapped = SynapseRetriever.wrap(base, "memory:")

    def ask(one, **kwargs):
        return (
            one.invoke(QUERY, **kwargs)
            if way == "invoke"
            else asyncio.run(one.ainvoke(QUERY, **kwargs))
        )

    assert ids(ask(wrapped)) == ids(ask(base))
    absent = next(one.id for one in CORPUS if one.id not in ids(ask(base)))
    wrapped.synapse.reinforce([ids(ask(base))[0], absent], query=QUERY)
    assert absent in ids(ask(wrapped))
    assert len(ask(wrapped)) == 4
    assert len(ask(wrapped, k=2)) == 2


def test_an_unknown_argument_fails_as_it_fails_without_us():
    store = chroma()
    base = store.as_retriever()
    wrapped = SynapseRetriever.wrap(base, "memory:")
    for kwargs in ({"nonsense": 1}, {"filter": {}}):
        with pytest.raises(Exception) as theirs:  # noqa: PT011
            base.invoke(QUERY, **kwargs)
        with pytest.raises(type(theirs.value)) as mine:
            wrapped.invoke(QUERY, **kwargs)
        assert str(mine.value) == str(theirs.value)


def test_the_wrapped_search_is_asked_once_with_the_users_arguments():
    asked = []

    class Noting(BaseRetriever):
        def _get_relevant_documents(self, query, *, run_manager, **kwargs):
            asked.append((query, kwargs))
            return [document(entry) for entry in CORPUS[:3]]

        async def _aget_relevant_documents(self, query, *, run_manager, **kwargs):
            return self._get_relevant_documents(query, run_manager=run_manager, **kwargs)

    wrapped = SynapseRetriever.wrap(Noting(), "memory:")
    wrapped.synapse.reinforce([CORPUS[0].id, CORPUS[-1].id], query=QUERY)
    wrapped.invoke(QUERY)
    wrapped.invoke(QUERY, filter="x", k=9)
    asyncio.run(wrapped.ainvoke(QUERY, other=1))
    assert asked == [(QUERY, {}), (QUERY, {"filter": "x", "k": 9}), (QUERY, {"other": 1})]


def test_a_retriever_without_kwargs_and_a_runnable_are_wrapped():
    class Old(BaseRetriever):
        def _get_relevant_documents(self, query):
            return [document(entry) for entry in CORPUS[:3]]

    assert len(SynapseRetriever.wrap(Old(), "memory:").invoke(QUERY)) == 3
    wrapped = SynapseRetriever.wrap(
        RunnableLambda(lambda query: [document(entry) for entry in CORPUS[:3]]), "memory:"
    )
    assert len(wrapped.invoke(QUERY)) == len(asyncio.run(wrapped.ainvoke(QUERY))) == 3


def test_a_bound_base_keeps_what_is_bound():
    base = stub(k=6).bind(k=2)
    assert len(SynapseRetriever.wrap(base, "memory:").invoke(QUERY)) == 2


def test_a_subclass_with_its_own_search_is_not_taken_for_a_plain_one():
    class Own(VectorStoreRetriever):
        def _get_relevant_documents(self, query, *, run_manager, **kwargs):
            return [document(CORPUS[3])]

    wrapped = SynapseRetriever.wrap(Own(vectorstore=in_memory()), "memory:")
    assert ids(wrapped.invoke(QUERY)) == [CORPUS[3].id]


# node="source" and others.


def chunks():
    return [
        Document(
            id=f"{entry.source}#{part}",
            page_content=" ".join(entry.text.split()[part * 6 : part * 6 + 8]) + f" part {part}",
            metadata={"source": entry.source, "page": part},
        )
        for entry in CORPUS
        for part in range(2)
    ]


@pytest.mark.parametrize("node", ["source", "metadata:source", lambda one: one.metadata["source"]])
@pytest.mark.parametrize("store", [chroma, in_memory])
def test_documents_can_be_nodes(node, store):
    vectors = store(())
    vectors.add_documents(chunks())
    mine = SynapseRetriever.from_vectorstore(vectors, "memory:", k=4, node=node)
    cold = mine.invoke(QUERY)
    shown = {one.metadata["source"] for one in cold}
    used = cold[1]
    rag(mine, [used.page_content * 2]).invoke(QUERY)
    (episode,) = mine.synapse.episodes()
    assert episode.used[used.metadata["source"]].chunk == used.id
    absent = next(entry.source for entry in CORPUS if entry.source not in shown)
    mine.synapse.reinforce([used.metadata["source"], absent], query=QUERY)
    warm = mine.invoke(QUERY)
    assert len(warm) == len({one.id for one in warm}) == 4
    if store is chroma and isinstance(node, str):
        assert absent in {one.metadata["source"] for one in warm}


@pytest.mark.parametrize("asyncs", [False, True])
def test_the_chunk_that_was_used_is_the_one_that_comes_in(asyncs):
    vectors = chroma(())
    vectors.add_documents(chunks())
    mine = SynapseRetriever.from_vectorstore(vectors, "memory:", k=4, node="source")
    far = "webhook deliveries retry exponential backoff"
    for part in (0, 1):
        chunk = next(one for one in chunks() if one.id == f"docs/10/guide.md#{part}")
        vectors.wrapped.forced = [chunk]
        rag(mine, [chunk.page_content]).invoke(f"{far} {part}")
        vectors.wrapped.forced = chunks()[:4]
        found = (
            asyncio.run(mine.ainvoke(f"{far} {part}")) if asyncs else mine.invoke(f"{far} {part}")
        )
        assert chunk.id in ids(found)
        mine.synapse.forget(query=f"{far} {part}")


def test_chunks_of_a_present_document_are_not_brought_in_twice():
    vectors = chroma(())
    vectors.add_documents(chunks())
    mine = SynapseRetriever.from_vectorstore(vectors, "memory:", k=4, node="source")
    vectors.wrapped.forced = chunks()[:5:2] * 2
    mine.synapse.reinforce([entry.source for entry in CORPUS[:6]], query=QUERY)
    found = mine.invoke(QUERY)
    assert len(found) == 6
    assert max(ids(found).count(one) for one in ids(found)) == 2


# What the authors may not have thought of.


class Returning(BaseRetriever):
    result: Any

    def _get_relevant_documents(self, query, *, run_manager):
        return self.result()


@pytest.mark.parametrize("asyncs", [False, True])
@pytest.mark.parametrize("kind", ["none", "strings", "bad ids", "iterator", "no list"])
def test_what_no_retriever_should_return_reaches_the_caller_as_it_is(kind, asyncs):
    documents = [document(entry) for entry in CORPUS[:4]]
    made = {
        "none": lambda: None,
        "strings": lambda: ["a", "b"],
        "bad ids": lambda: [Document(id="\ud800", page_content="x"), *documents],
        "iterator": lambda: iter(documents),
        "no list": lambda: {"documents": documents},
    }[kind]
    results = []

    def result():
        results.append(made())
        return results[-1]

    wrapped = SynapseRetriever.wrap(Returning(result=result), "memory:")
    wrapped.synapse.reinforce([CORPUS[0].id, CORPUS[2].id], query=QUERY)
    found = asyncio.run(wrapped.ainvoke(QUERY)) if asyncs else wrapped.invoke(QUERY)
    if kind == "bad ids":
        assert sorted(map(id, found)) == sorted(map(id, results[-1]))
    else:
        assert found is results[-1]
    if kind == "iterator":
        assert list(found) == documents


def test_a_fetch_that_gives_another_document_lets_it_not_in():
    base = stub()
    shown = ids(base.invoke(QUERY))
    absent = next(entry for entry in CORPUS if entry.id not in shown)
    for given in (
        document(CORPUS[int(shown[0][1:])]),
        document(absent).model_copy(update={"id": None}),
        "text",
    ):
        wrapped = SynapseRetriever.wrap(
            base, "memory:", fetch=lambda ids, one=given: dict.fromkeys(ids, one)
        )
        wrapped.synapse.reinforce([shown[0], absent.id], query=QUERY)
        found = ids(wrapped.invoke(QUERY))
        assert sorted(found) == sorted(shown)
        wrapped.fetch = base.fetch
        assert absent.id in ids(wrapped.invoke(QUERY)), "it was there all the time"


def test_a_filter_that_is_bound_to_the_base_keeps_its_door_shut():
    base = stub()
    own = base.bind(filter=lambda one: one.metadata["tenant"] == "a")
    wrapped = SynapseRetriever.wrap(own, "memory:", fetch=base.fetch)
    shown = ids(own.invoke(QUERY))
    other = next(entry.id for entry in CORPUS if entry.tenant == "b")
    wrapped.synapse.reinforce([shown[0], other], query=QUERY)
    assert other not in ids(wrapped.invoke(QUERY))


def test_a_store_without_ids_only_reorders():
    from langchain_core.vectorstores import VectorStore

    class Bare(VectorStore):
        def similarity_search(self, query, k=4, **kwargs):
            return [document(entry) for entry in CORPUS[:k]]

        @classmethod
        def from_texts(cls, *args, **kwargs):
            return cls()

    wrapped = SynapseRetriever.from_vectorstore(Bare(), "memory:", k=4)
    wrapped.synapse.reinforce([CORPUS[3].id, CORPUS[9].id], query=QUERY)
    assert ids(wrapped.invoke(QUERY))[0] == CORPUS[3].id
    assert sorted(ids(wrapped.invoke(QUERY))) == [entry.id for entry in CORPUS[:4]]
    assert "fetch" in wrapped.last_trace.reason


def test_one_retriever_may_explain_for_a_tenant(ours):
    absent = warm(ours)
    ours.synapse.forget(namespace="personal")
    ours.synapse.reinforce([CORPUS[0].id, absent], query=QUERY, namespace="acme")
    ours.invoke(QUERY, named("acme"))
    asked = ours.last_trace
    told = ours.explain(QUERY, config=named("acme")).reached
    assert [(one.node, one.energy) for one in told] == [
        (one.node, one.energy) for one in asked.reached
    ]
    assert told


def test_an_override_of_the_filter_opens_the_door_again():
    ours = SynapseRetriever.from_vectorstore(
        chroma(), "memory:", search_kwargs={"k": 4, "filter": {"tenant": "a"}}
    )
    other = [entry.id for entry in CORPUS if entry.tenant == "b"]
    ours.synapse.reinforce([CORPUS[0].id, *other], query=QUERY)
    assert not set(other) & set(ids(ours.invoke(QUERY)))
    assert set(other) & set(ids(ours.invoke(QUERY, filter=None)))
    assert not set(other) & set(ids(ours.invoke(QUERY, filter={"tenant": {"$eq": "a"}})))


def test_the_calls_own_configuration_reaches_the_wrapped_retriever():
    asked = []

    def search(query, config):
        asked.append(config["configurable"]["tenant"])
        return []

    ours = SynapseRetriever.wrap(RunnableLambda(search), "memory:")
    config = {"configurable": {"tenant": "a"}}
    ours.invoke(QUERY, config)
    asyncio.run(ours.ainvoke(QUERY, config))
    assert asked == ["a", "a"]


def test_two_retrievers_on_one_file_teach_one_run_together(tmp_path):
    path = tmp_path / "synapse.db"
    first, second = (
        SynapseRetriever.from_vectorstore(chroma(), path, k=2),
        SynapseRetriever.from_vectorstore(chroma(), path, k=4),
    )
    with first.synapse.run() as run:
        few = ids(first.invoke(QUERY))
        more = ids(second.invoke("another " + QUERY))
        run.used({*few, *more})
    assert len([*second.synapse.episodes()]) == 2
    assert second.synapse.feedback(run.id, used=[CORPUS[13].id]) > 0
