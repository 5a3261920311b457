"""LangChain's ways to run a chain: each teaches once."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from langchain_classic.chains import create_retrieval_chain
from langchain_classic.chains.combine_documents import create_stuff_documents_chain
from langchain_classic.retrievers import EnsembleRetriever
from langchain_core.language_models import FakeListChatModel
from langchain_core.language_models.fake import FakeListLLM
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import (
    RunnableLambda,
    RunnableParallel,
    RunnablePassthrough,
)
from langchain_core.runnables.config import ContextThreadPoolExecutor
from langchain_core.tools import create_retriever_tool, tool

from langchain_synapse_retrievers import (
    SynapseListener,
    SynapseRetriever,
)
from synapse_retrievers import LEDGER, NamespaceClaimedError, UnknownRunError
from synapse_retrievers.learning.lesson import Lesson
from synapse_retrievers.testing.corpus import CORPUS, QUERY
from synapse_retrievers.testing.reins import ReinedStore
from tests.integrations.langchain_harness import chroma, in_memory, rag, stub

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


def warm(retriever):
    shown = ids(retriever.vectorstore.similarity_search(QUERY, 4))
    absent = next(entry.id for entry in CORPUS if entry.id not in shown)
    retriever.synapse.reinforce([shown[0], absent], query=QUERY)
    return absent


# Chains.


@pytest.mark.parametrize(
    "way", ["invoke", "ainvoke", "stream", "astream", "astream_events", "transform"]
)
def test_a_chain_teaches_once_however_it_is_run(ours, told, way):
    chain = rag(ours, [using(ours)])

    async def drained(stream):
        async for _ in stream:
            pass

    if way == "invoke":
        chain.invoke(QUERY)
    elif way == "ainvoke":
        asyncio.run(chain.ainvoke(QUERY))
    elif way == "stream":
        assert "".join(chain.stream(QUERY)) == using(ours)
    elif way == "transform":
        assert "".join(chain.transform(iter([QUERY[:5], QUERY[5:]]))) == using(ours)
    elif way == "astream_events":
        asyncio.run(drained(chain.astream_events(QUERY, version="v2")))
    else:
        asyncio.run(drained(chain.astream(QUERY)))
    one_lesson(told)


@pytest.mark.parametrize("way", ["invoke", "ainvoke", "stream", "astream"])
def test_create_retrieval_chain_teaches_once(ours, told, way):
    chain = create_retrieval_chain(ours, create_stuff_documents_chain(model(using(ours)), PROMPT))

    async def drained():
        return [part async for part in chain.astream({"input": QUERY})]

    if way == "invoke":
        assert chain.invoke({"input": QUERY})["answer"] == using(ours)
    elif way == "ainvoke":
        asyncio.run(chain.ainvoke({"input": QUERY}))
    elif way == "stream":
        list(chain.stream({"input": QUERY}))
    else:
        asyncio.run(drained())
    one_lesson(told)


def test_a_completion_model_teaches_as_a_chat_model_does(ours, told):
    chain = {"context": ours | texts, "input": RunnablePassthrough()} | PROMPT
    (chain | FakeListLLM(responses=[using(ours)])).invoke(QUERY)
    one_lesson(told)


@pytest.mark.parametrize("way", ["batch", "abatch", "batch_as_completed"])
def test_a_batch_teaches_each_question_its_own(ours, told, way):
    queries = [f"{QUERY} {number}" for number in range(6)]
    chain = rag(ours, [using(ours)])
    if way == "batch":
        chain.batch(queries)
    elif way == "abatch":
        asyncio.run(chain.abatch(queries))
    else:
        list(chain.batch_as_completed(queries))
    assert sorted(known.key for one in told for known, _ in one.episodes) == queries
    assert len(told) == 6


@pytest.mark.parametrize("kind", ["threads", "pool", "context pool", "raw thread in a run"])
def test_threads_teach_each_question_its_own(ours, told, kind):
    queries = [f"{QUERY} {number}" for number in range(4)]
    chain = rag(ours, [using(ours)])
    if kind == "threads":
        threads = [threading.Thread(target=chain.invoke, args=(query,)) for query in queries]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    elif kind == "pool":
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(chain.invoke, queries))
    elif kind == "context pool":
        with ContextThreadPoolExecutor(4) as pool:
            list(pool.map(chain.invoke, queries))
    else:

        def inside(query):
            found = []
            thread = threading.Thread(target=lambda: found.append(ours.invoke(query)))
            thread.start()
            thread.join()
            return {"context": texts(found[0]), "input": query}

        for query in queries:
            (RunnableLambda(inside) | PROMPT | model(using(ours))).invoke(query)
    assert sorted(known.key for one in told for known, _ in one.episodes) == queries


def test_two_roots_are_joined_by_what_the_prompt_holds(ours, told):
    found = ours.invoke(QUERY)
    model(using(ours)).invoke([HumanMessage(f"{texts(found)}\n\n{QUERY}")])
    one_lesson(told)


@pytest.mark.parametrize("asyncs", [True, False])
def test_interleaved_roots_are_joined_to_their_own_questions(ours, told, asyncs):
    first, second = f"{QUERY} one", "which hashes chain the entries of an audit trail"
    found = [ours.invoke(first), ours.invoke(second)]
    answers = [using(ours, first), using(ours, second)]
    for place in (1, 0):
        prompt = [HumanMessage(texts(found[place]))]
        if asyncs:
            asyncio.run(model(answers[place]).ainvoke(prompt))
        else:
            model(answers[place]).invoke(prompt)
    learned = {known.key: set(used) for one in told for known, used in one.episodes}
    assert learned[second] <= {one.id for one in found[1]}
    assert set(learned) <= {first, second}


def test_a_prompt_of_two_memories_teaches_neither(ours, told):
    before = ours.synapse.stats().ambiguous
    other = SynapseRetriever.from_vectorstore(in_memory(), "memory:", k=4)
    found = ours.invoke(QUERY) + other.invoke(QUERY)
    model(using(ours)).invoke(texts(found))
    assert told == []
    assert list(other.synapse.episodes()) == []
    assert ours.synapse.stats().ambiguous == before + 1


def test_a_prompt_of_two_namespaces_teaches_neither(ours, told):
    for namespace in ("acme", "umbrella"):
        ours.invoke(QUERY, {"configurable": {"synapse_namespace": namespace}})
    model(using(ours)).invoke(texts(ours.vectorstore.similarity_search(QUERY, 4)))
    assert told == []


def test_a_prompt_without_our_texts_teaches_nothing(ours, told):
    ours.invoke(QUERY)
    model(using(ours)).invoke(QUERY)
    assert told == []


def test_branches_of_one_question_teach_one_episode_each(ours, told):
    other = f"{QUERY} again"
    chain = RunnableParallel(
        one=ours | texts,
        two=RunnableLambda(lambda _: other) | ours | texts,
        q=RunnablePassthrough(),
    ) | (lambda given: f"{given['one']}\n{given['two']}\n{given['q']}")
    (chain | model(using(ours))).invoke(QUERY)
    (lesson,) = told
    assert {known.key for known, _ in lesson.episodes} == {QUERY, other}
    assert {edge.activations for edge in ours.synapse.edges()} == {1}


def test_several_turns_of_one_run_teach_each_node_once(ours, told):
    first, both = using(ours, count=1), using(ours)

    def turns(query):
        context = texts(ours.invoke(query))
        for answer in (first, both, both, first):
            model(answer).invoke(f"{context}\n{query}")
        return "done"

    RunnableLambda(turns).invoke(QUERY)
    assert [len(one.new) for one in told] == [1, 1]
    (edge,) = ours.synapse.edges()
    assert edge.activations == 1


def test_an_abandoned_stream_breaks_nothing_and_doubles_nothing(ours, told):
    chain = rag(ours, [using(ours)])
    stream = chain.stream(QUERY)
    next(stream)
    stream.close()

    async def abandoned():
        stream = chain.astream(QUERY)
        async for _ in stream:
            break
        await stream.aclose()

    asyncio.run(abandoned())
    assert len(told) <= 1
    chain.invoke(QUERY)
    assert {edge.activations for edge in ours.synapse.edges()} == {1}


def test_a_failing_model_teaches_nothing(ours, told):
    def fail(_):
        raise ConnectionError("model away")

    with pytest.raises(ConnectionError):
        (ours | texts | RunnableLambda(fail)).invoke(QUERY)
    assert told == []


@pytest.mark.parametrize("how", ["with_config", "bind", "with_retry", "with_fallbacks", "map"])
def test_what_wraps_a_retriever_of_ours_changes_nothing(ours, told, how):
    bound = {
        "with_config": lambda: ours.with_config(tags=["mine"], run_name="mine"),
        "bind": lambda: ours.bind(k=4),
        "with_retry": ours.with_retry,
        "with_fallbacks": lambda: ours.with_fallbacks([ours]),
        "map": lambda: (
            RunnableLambda(lambda query: [query]) | ours.map() | (lambda found: found[0])
        ),
    }[how]()
    rag(bound, [using(ours)]).invoke(QUERY)
    one_lesson(told)


def test_an_ensemble_over_ours_teaches_once(ours, told):
    other = SynapseRetriever.wrap(
        ours.vectorstore.as_retriever(search_kwargs={"k": 4}), ours.synapse
    )
    both = EnsembleRetriever(retrievers=[ours, other], weights=[0.5, 0.5], id_key=None)
    rag(both, [using(ours)]).invoke(QUERY)
    assert {edge.activations for edge in ours.synapse.edges()} == {1}


def test_ours_around_an_ensemble_keeps_its_count(ours):
    bases = [ours.vectorstore.as_retriever(search_kwargs={"k": k}) for k in (2, 5)]
    ensemble = EnsembleRetriever(retrievers=bases, weights=[0.5, 0.5])
    outer = SynapseRetriever.wrap(ensemble, "memory:", fetch=stub().fetch)
    count = len(ensemble.invoke(QUERY))
    assert len(outer.invoke(QUERY)) == count
    outer.synapse.reinforce([CORPUS[0].id, CORPUS[-1].id, CORPUS[-2].id], query=QUERY)
    assert len(outer.invoke(QUERY)) == len(asyncio.run(outer.ainvoke(QUERY))) == count


# Tools.


@tool
def read_file(path: str) -> str:
    """Read a file."""
    return path


@tool
def edit_file(path: str, new_string: str) -> str:
    """Edit a file."""
    return path


@tool
def fail_file(path: str) -> str:
    """Fail."""
    raise FileNotFoundError(path)


def _tool_run(ours, use, inputs):
    def work(query):
        found = ours.invoke(query)
        return use.invoke(inputs(found))

    return RunnableLambda(work)


@pytest.mark.parametrize("asyncs", [False, True])
@pytest.mark.parametrize(
    ("use", "inputs", "strength"),
    [
        (read_file, lambda path: {"path": path}, 0.5),
        (read_file, lambda path: {"path": f"/repo/{path}:12"}, 0.5),
        (edit_file, lambda path: {"path": path, "new_string": "x"}, 1.0),
    ],
)
def test_a_tool_that_touches_a_source_teaches_it(ours, told, use, inputs, strength, asyncs):
    chain = _tool_run(ours, use, lambda found: inputs(found[1].metadata["source"]))
    if asyncs:
        asyncio.run(chain.ainvoke(QUERY))
    else:
        chain.invoke(QUERY)
    (episode,) = ours.synapse.episodes()
    assert [use.strength for use in episode.used.values()] == [strength]
    assert len(told) == 1


def test_a_tool_call_of_an_agent_teaches_too(ours):
    def call(found):
        path = found[0].metadata["source"]
        return {"name": "read_file", "args": {"path": path}, "id": "1", "type": "tool_call"}

    result = _tool_run(ours, read_file, call).invoke(QUERY)
    assert isinstance(result, ToolMessage)
    assert len(list(ours.synapse.episodes())) == 1


def test_a_tool_that_fails_or_touches_another_file_teaches_nothing(ours):
    _tool_run(ours, read_file, lambda _: {"path": "elsewhere/guide.md"}).invoke(QUERY)
    with pytest.raises(FileNotFoundError):
        _tool_run(ours, fail_file, lambda found: {"path": found[0].metadata["source"]}).invoke(
            QUERY
        )
    assert list(ours.synapse.episodes()) == []


def test_a_retriever_tool_touches_nothing_by_what_it_asks(ours, told):
    search = create_retriever_tool(ours, "search", "Searches the docs.")
    path = ours.vectorstore.similarity_search(QUERY, 1)[0].metadata["source"]

    def work(query):
        return search.invoke({"query": f"{query} {path}"})

    answer = RunnableLambda(work).invoke(QUERY)
    assert isinstance(answer, str)
    assert told == []


# Namespaces by config["configurable"].


def named(namespace):
    return {"configurable": {"synapse_namespace": namespace}}


@pytest.mark.parametrize("way", ["chain", "achain", "with_config", "batch"])
def test_a_chain_names_the_namespace_of_its_retrievers(ours, told, way):
    chain = rag(ours, [using(ours)])
    if way == "chain":
        chain.invoke(QUERY, named("acme"))
    elif way == "achain":
        asyncio.run(chain.ainvoke(QUERY, named("acme")))
    elif way == "with_config":
        chain.with_config(named("acme")).invoke(QUERY)
    else:
        chain.batch([QUERY], named("acme"))
    assert [one.namespace for one in told] == ["acme"]
    ours.invoke(QUERY)
    assert ours.last_trace.namespace == "personal"


def test_a_batch_may_name_a_namespace_for_each(ours, told):
    names = ["acme", "umbrella", "acme", "personal"]
    queries = [f"{QUERY} {number}" for number in range(4)]
    rag(ours, [using(ours)]).batch(queries, [named(name) for name in names])
    learned = {known.key: one.namespace for one in told for known, _ in one.episodes}
    assert learned == dict(zip(queries, names, strict=True))


def test_concurrent_tasks_keep_their_namespaces(ours):
    async def ask(name):
        await ours.ainvoke(QUERY, named(name))
        return ours.last_trace.namespace

    async def both():
        return await asyncio.gather(*(ask(name) for name in ("a", "b", "c", "d")))

    assert asyncio.run(both()) == ["a", "b", "c", "d"]


def test_no_namespace_at_construction_waits_for_one(told):
    waiting = SynapseRetriever.from_vectorstore(in_memory(), "memory:", k=4, namespace=None)
    rag(waiting, [using(waiting)]).invoke(QUERY)
    assert list(waiting.synapse.episodes()) == []
    rag(waiting, [using(waiting)]).invoke(QUERY, named("acme"))
    assert {one.namespace for one in waiting.synapse.episodes()} == {"acme"}


def test_feedback_finds_a_run_by_its_id_in_its_namespace(ours):
    import uuid

    run_id = uuid.uuid4()
    rag(ours, ["nothing to say"]).invoke(QUERY, named("acme") | {"run_id": run_id})
    shown = ids(ours.vectorstore.similarity_search(QUERY, 4))
    assert ours.synapse.feedback(run_id, used=shown[:2]) == 1
    assert {edge.namespace for edge in ours.synapse.edges()} == {"acme"}
    with pytest.raises(UnknownRunError):
        ours.synapse.feedback(uuid.uuid4(), used=shown[:2])


def test_one_namespace_serves_one_collection(tmp_path):
    path = tmp_path / "synapse.db"
    SynapseRetriever.wrap(chroma(name="first").as_retriever(), path)
    with pytest.raises(NamespaceClaimedError, match="namespace="):
        SynapseRetriever.wrap(chroma(name="second").as_retriever(), path)
    SynapseRetriever.wrap(chroma(name="second").as_retriever(), path, namespace="second")
    with pytest.raises(NamespaceClaimedError):
        SynapseRetriever.wrap(chroma(name="first").as_retriever(), path, node="source")


# Callbacks.


def test_one_event_pair_for_a_vector_store_and_results_are_the_callers(ours):
    from langchain_core.callbacks import BaseCallbackHandler

    class Noting(BaseCallbackHandler):
        def __init__(self):
            self.started, self.ended = [], []

        def on_retriever_start(self, serialized, query, **kwargs):
            self.started.append(kwargs["metadata"])

        def on_retriever_end(self, documents, **kwargs):
            self.ended.append(documents)

    noting = Noting()
    absent = warm(ours)
    found = ours.invoke(QUERY, {"callbacks": [noting], "metadata": {"a": 1}, "tags": ["t"]})
    assert len(noting.started) == len(noting.ended) == 1
    assert noting.started[0]["a"] == 1
    assert noting.ended[0] is found
    assert absent in ids(found)


def test_the_listener_has_no_part_in_a_failure(ours, told):
    class AwayError(Exception):
        pass

    store = ReinedStore()
    broken = SynapseRetriever.from_vectorstore(in_memory(), store, k=4)
    answer = using(broken)
    broken.invoke(QUERY)
    store.fault = AwayError()
    assert rag(broken, [answer]).invoke(QUERY, {"callbacks": [SynapseListener()]}) == answer


def test_a_listener_in_the_config_of_the_chain_is_enough_and_not_double(ours, told):
    chain = rag(ours, [using(ours)], listeners=2)
    chain.invoke(QUERY, {"callbacks": [SynapseListener()]})
    one_lesson(told)


def test_reloading_the_listener_doubles_nothing(ours, told):
    import importlib

    from langchain_synapse_retrievers import listener

    importlib.reload(listener)
    again = SynapseRetriever.from_vectorstore(in_memory(), ours.synapse, k=4)
    rag(again, [using(again)]).invoke(QUERY, {"callbacks": [listener.SynapseListener()]})
    one_lesson(told)


# The loop's thread (P13).


def test_no_store_call_runs_on_the_loop_whatever_is_awaited():
    store = ReinedStore()
    mine = SynapseRetriever.from_vectorstore(in_memory(), store, k=4)
    absent = warm(mine)
    store.blocking.clear()

    async def everything():
        chain = rag(mine, [using(mine)])
        await chain.ainvoke(QUERY)
        await chain.abatch([QUERY, f"{QUERY} 2"])
        async for _ in chain.astream(QUERY):
            pass
        async for _ in chain.astream_events(QUERY, version="v2"):
            pass
        await asyncio.gather(*(mine.ainvoke(f"{QUERY} {n}", named(f"ns{n}")) for n in range(5)))
        mine.vectorstore.delete([absent])
        await mine.ainvoke(QUERY)
        await mine.synapse.aflush()

    asyncio.run(everything())
    assert store.calls
    assert store.blocking == []


def test_awaiting_inside_a_declared_run_belongs_to_it(ours, told):
    async def work():
        with ours.synapse.run(QUERY) as run:
            found = await ours.ainvoke(f"{QUERY} more")
            run.retrieved(ids(found))
            return await asyncio.to_thread(run.used, ids(found)[:2])

    assert asyncio.run(work()) == 1
    assert {known.key for one in told for known, _ in one.episodes} == {QUERY, f"{QUERY} more"}


def test_a_used_node_of_the_run_seeds_the_next_question_and_is_not_brought_back(ours):
    absent = warm(ours)
    shown = ids(ours.vectorstore.similarity_search("invoices rendered by which worker", 4))
    partner = next(entry.id for entry in CORPUS if entry.id not in {*shown, absent})
    for _ in range(30):
        ours.synapse.reinforce([absent, partner])
    with ours.synapse.run("something else") as run:
        run.used([absent])
        found = ids(ours.invoke("invoices rendered by which worker"))
    assert absent not in found
    assert partner in found
    assert partner not in ids(ours.invoke("invoices rendered by which worker"))


# What the authors may not have thought of.


def test_a_cached_answer_teaches_nothing_new(ours, told):
    from langchain_core.caches import InMemoryCache

    answering = FakeListChatModel(responses=[using(ours)], cache=InMemoryCache())
    chain = {"context": ours | texts, "input": RunnablePassthrough()} | PROMPT | answering
    for _ in range(3):
        chain.invoke(QUERY)
    assert {edge.activations for edge in ours.synapse.edges()} == {1}


def test_only_what_stood_in_the_prompt_is_learned(ours, told):
    given = ours | (lambda found: texts(found[:2]))
    chain = {"context": given, "input": RunnablePassthrough()} | PROMPT
    (chain | model(using(ours, count=4))).invoke(QUERY)
    one_lesson(told, count=2)
    shown = ids(ours.vectorstore.similarity_search(QUERY, 4))
    assert set(told[0].used) == set(shown[:2])


def test_two_models_that_answer_at_once_teach_each_pair_once(ours):
    both = RunnableParallel(
        one=PROMPT | model(using(ours, count=2)), two=PROMPT | model(using(ours, count=3))
    )
    ({"context": ours | texts, "input": RunnablePassthrough()} | both).invoke(QUERY)
    assert {edge.activations for edge in ours.synapse.edges()} == {1}
    assert len(list(ours.synapse.edges())) == 3


def test_a_model_that_fails_over_teaches_once(ours, told):
    class Failing(FakeListChatModel):
        def _call(self, *args, **kwargs):
            raise ConnectionError("away")

    answering = Failing(responses=["x"]).with_fallbacks([model(using(ours))])
    ({"context": ours | texts, "input": RunnablePassthrough()} | PROMPT | answering).invoke(QUERY)
    one_lesson(told)


def test_a_sync_call_inside_a_running_loop_teaches(ours, told):
    async def cell():
        return rag(ours, [using(ours)]).invoke(QUERY)

    asyncio.run(cell())
    ours.synapse.flush()
    one_lesson(told)


def test_a_bare_retrievers_run_id_takes_feedback(ours):
    import uuid

    run_id = uuid.uuid4()
    found = ours.invoke(QUERY, run_id=run_id)
    assert ours.synapse.feedback(run_id, used=ids(found)[:3]) == 3
    assert ours.synapse.feedback(str(run_id), used=ids(found)[:3]) == 0


def test_the_caller_may_do_with_the_list_what_he_wants(ours, told):
    context = []

    def keep(found):
        context.append(texts(found))
        found.clear()
        return context[0]

    chain = {"context": ours | keep, "input": RunnablePassthrough()} | PROMPT
    (chain | model(using(ours))).invoke(QUERY)
    one_lesson(told)
    assert len(ours.invoke(QUERY)) == 4
