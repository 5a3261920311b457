"""Every way into and out of LlamaIndex: streams, citations, tools, filters, sources, threads."""

import asyncio
import threading
import time
from itertools import pairwise
from typing import Any

import pytest
from llama_index.core import StorageContext, VectorStoreIndex
from llama_index.core.callbacks import CallbackManager, CBEventType, LlamaDebugHandler
from llama_index.core.chat_engine import CondensePlusContextChatEngine
from llama_index.core.instrumentation.events.retrieval import RetrievalEndEvent
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.postprocessor import PrevNextNodePostprocessor
from llama_index.core.query_engine import CitationQueryEngine
from llama_index.core.schema import (
    IndexNode,
    NodeRelationship,
    NodeWithScore,
    RelatedNodeInfo,
    TextNode,
)
from llama_index.core.tools import RetrieverTool
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters
from llama_index_instrumentation import get_dispatcher
from llama_index_instrumentation.dispatcher import instrument_tags
from llama_index_instrumentation.event_handlers import BaseEventHandler

from llama_index.retrievers.synapse import SynapsePostprocessor, SynapseRetriever
from llama_index.retrievers.synapse._shelves import restrictions_of
from synapse_retrievers.testing.corpus import CORPUS, QUERY
from synapse_retrievers.testing.reins import ReinedStore
from tests.integrations.llama_index_harness import (
    HashEmbedding,
    Said,
    StubRetriever,
    chat_engine,
    chroma,
    engine,
    learned,
    once,
    only,
    quoting,
    said,
    simple,
)

pytest_plugins = ["tests.integrations.llama_index_fixtures"]


def ids(hits):
    return [hit.node_id for hit in hits]


def absent_of(hits, tenant=None):
    return next(
        one.id for one in CORPUS if one.id not in ids(hits) and tenant in {None, one.tenant}
    )


# Engines and streams.


@pytest.mark.parametrize("mode", ["tree_summarize", "refine", "simple_summarize", "accumulate"])
def test_every_mode_of_answering_teaches_once(ours, used, mode):
    answer = engine(quoting(used), retriever=ours, response_mode=mode).query(QUERY)
    assert quoting(used) in answer.response
    pairs, queries = learned(ours.synapse)
    assert queries == [QUERY]
    assert set(pairs.values()) <= {1}
    if mode in {"tree_summarize", "simple_summarize"}:  # the others ask of each node alone
        assert (pairs, queries) == once(used)


def test_a_tree_of_several_prompts_is_one_lesson(ours, used):
    llm = Said(answers=(quoting(used), "It is so."), window=400)  # holds two texts or three
    engine("", llm=llm, retriever=ours, response_mode="tree_summarize").query(QUERY)
    assert len(llm.prompts) > 1
    assert learned(ours.synapse) == once(used)


async def _streamed_chat(chat):
    response = await chat.astream_chat(QUERY)
    return "".join([part async for part in response.async_response_gen()])


@pytest.mark.parametrize("is_condensing", [False, True])
@pytest.mark.parametrize("is_async", [False, True])
def test_a_streamed_chat_teaches_once_and_is_whole(ours, used, is_condensing, is_async):
    chat = chat_engine(quoting(used), retriever=ours)
    if is_condensing:
        memory = ChatMemoryBuffer.from_defaults(token_limit=10_000_000)
        chat = CondensePlusContextChatEngine.from_defaults(
            ours, llm=said(quoting(used)), memory=memory
        )
    if is_async:
        text = asyncio.run(_streamed_chat(chat))
    else:
        text = "".join(chat.stream_chat(QUERY).response_gen)
    assert text == quoting(used)
    assert learned(ours.synapse) == once(used)


def test_tenants_that_stream_at_once_each_learn_their_own(ours, used):
    """A stream is read when its engine is done: the reader's context tells whose it is."""

    async def ask(tenant):
        with instrument_tags({"synapse_namespace": tenant}):
            stream = await engine(quoting(used), streaming=True, retriever=ours).aquery(QUERY)
        await together.wait()
        return "".join([part async for part in stream.async_response_gen()])

    async def both():
        return await asyncio.gather(ask("acme"), ask("umbrella"))

    together = asyncio.Barrier(2)
    assert asyncio.run(both()) == [quoting(used)] * 2
    ours.synapse.flush()
    assert sorted(edge.namespace for edge in ours.synapse.edges()) == ["acme", "umbrella"]
    assert {edge.activations for edge in ours.synapse.edges()} == {1}


def test_a_stream_left_in_the_middle_disturbs_no_later_run(ours, used):
    async def leave():
        stream = await engine(quoting(used), streaming=True, retriever=ours).aquery(QUERY)
        parts = stream.async_response_gen()
        first = await anext(parts)
        await parts.aclose()
        return first

    assert quoting(used).startswith(asyncio.run(leave()))
    assert learned(ours.synapse) == ({}, [])
    engine(quoting(used), retriever=ours).query(QUERY)
    assert learned(ours.synapse) == once(used)


# Citations.


def two_parts(name):
    """A text that a small citation size splits in two."""
    return " ".join(
        f"The {name} of part {n} is kept by keeper {n} of the {name}." for n in range(9)
    )


@pytest.mark.parametrize("is_async", [False, True])
def test_every_number_of_a_split_node_counts_for_the_node(is_async):
    names = ("lantern", "harbor", "orchard")
    nodes = {name: TextNode(id_=name, text=two_parts(name)) for name in names}
    ours = SynapseRetriever(StubRetriever(nodes, k=3), "memory:")
    llm = said("They are kept so [2]. The other is kept too [4].")
    cites = CitationQueryEngine.from_args(
        chroma([]), retriever=ours, llm=llm, citation_chunk_size=90, citation_chunk_overlap=10
    )
    response = asyncio.run(cites.aquery(QUERY)) if is_async else cites.query(QUERY)
    sources = [hit.node.text for hit in response.source_nodes]
    cited = sorted({name for name in names for place in (1, 3) if name in sources[place]})
    assert len(cited) == 2
    assert learned(ours.synapse) == ({tuple(cited): 1}, [QUERY])
    (episode,) = ours.synapse.episodes()
    assert {use.strength for use in episode.used.values()} == {1.0}


# What else listens.


class Retrievals(BaseEventHandler):
    seen: Any

    @classmethod
    def class_name(cls):
        return "Retrievals"

    def handle(self, event, **_):
        if isinstance(event, RetrievalEndEvent):
            self.seen.append(event)


@pytest.fixture
def retrievals():
    handler, root = Retrievals(seen=[]), get_dispatcher()
    root.add_event_handler(handler)
    yield handler.seen
    root.event_handlers[:] = [one for one in root.event_handlers if one is not handler]


@pytest.mark.parametrize("is_async", [False, True])
def test_one_retrieval_is_reported_once_everywhere(index, used, retrievals, is_async):
    debug = LlamaDebugHandler(print_trace_on_end=False)
    base = index.as_retriever(similarity_top_k=4)
    base.callback_manager = CallbackManager([debug])
    ours = SynapseRetriever(base, "memory:")
    asked = engine(quoting(used), retriever=ours, callback_manager=base.callback_manager)
    if is_async:
        asyncio.run(asked.aquery(QUERY))
    else:
        asked.query(QUERY)
    assert len(debug.get_event_pairs(CBEventType.RETRIEVE)) == 1
    assert len(retrievals) == 1
    assert learned(ours.synapse) == once(used)


@pytest.mark.parametrize("is_behind", [False, True])
def test_a_tool_gives_the_same_nodes_sync_and_async(index, ours, is_behind):
    base, parts = ours, {}
    if is_behind:
        base = index.as_retriever(similarity_top_k=4)
        parts = {"node_postprocessors": [SynapsePostprocessor(ours.synapse, index=index)]}
    tool = RetrieverTool.from_defaults(base, **parts)
    cold = tool.call(QUERY).raw_output
    absent = absent_of(cold)
    ours.synapse.reinforce([cold[0].node_id, absent], query=QUERY)
    warm = tool.call(QUERY).raw_output
    assert absent in ids(warm)
    assert ids(asyncio.run(tool.acall(QUERY)).raw_output) == ids(warm)


def test_a_run_named_by_a_tag_takes_feedback_behind_a_retriever_too(index, used):
    behind = SynapsePostprocessor("memory:", index=index)
    base = index.as_retriever(similarity_top_k=4)
    with instrument_tags({"synapse_run_id": "run 8", "synapse_namespace": "acme"}):
        engine("", retriever=base, node_postprocessors=[behind]).query(QUERY)
    assert behind.synapse.feedback("run 8", used=[node.node_id for node in used]) == 1
    assert {edge.namespace for edge in behind.synapse.edges()} == {"acme"}


# Scores and objects.


class Fixed(StubRetriever):
    """Always these hits."""

    def __init__(self, hits):
        super().__init__({hit.node_id: hit.node for hit in hits})
        self.hits = hits

    def _retrieve(self, query_bundle):
        return list(self.hits)


@pytest.mark.parametrize("scores", [[0.9, 0.7, 0.5, 0.3], [None] * 4, [0.0, None, 0.0, 1e-261]])
def test_a_hit_that_kept_its_place_is_the_same_object_and_scores_keep_theirs(scores):
    nodes = [TextNode(id_=one.id, text=one.text) for one in CORPUS[:4]]
    hits = [NodeWithScore(node=node, score=s) for node, s in zip(nodes, scores, strict=True)]
    base = Fixed(hits)
    outside = TextNode(id_="outside", text="An absent text.")
    ours = SynapseRetriever(base, "memory:", fetch=lambda _: {"outside": outside})
    ours.synapse.reinforce([nodes[0].node_id, "outside"], query=QUERY)
    after = ours.retrieve(QUERY)
    assert "outside" in ids(after)
    assert [hit.score for hit in after] == scores
    assert [hit.score for hit in hits] == scores
    for place, (one, other) in enumerate(zip(after, hits, strict=True)):
        assert (one is other) == (one.node_id == other.node_id), place


def test_neighbors_are_read_behind_us(index):
    nodes = [TextNode(id_=one.id, text=one.text) for one in CORPUS]
    for before, node in pairwise(nodes):
        node.relationships[NodeRelationship.PREVIOUS] = RelatedNodeInfo(node_id=before.node_id)
        before.relationships[NodeRelationship.NEXT] = RelatedNodeInfo(node_id=node.node_id)
    context = StorageContext.from_defaults()
    context.docstore.add_documents(nodes)
    index = VectorStoreIndex(nodes, storage_context=context, embed_model=HashEmbedding())
    ours = SynapseRetriever(index.as_retriever(similarity_top_k=2), "memory:")
    absent = CORPUS.index(next(one for one in CORPUS if one.id == absent_of(ours.retrieve(QUERY))))
    ours.synapse.reinforce([ours.retrieve(QUERY)[0].node_id, CORPUS[absent].id], query=QUERY)
    neighbors = PrevNextNodePostprocessor(docstore=context.docstore, num_nodes=1, mode="both")
    found = neighbors.postprocess_nodes(ours.retrieve(QUERY))
    wanted = {one.id for one in CORPUS[max(0, absent - 1) : absent + 2]}
    assert wanted <= set(ids(found))


# Restrictions.


def both_of(*filters, condition="and"):
    return MetadataFilters(filters=list(filters), condition=condition)


A = MetadataFilter(key="tenant", value="a")
SOURCES = MetadataFilter(key="source", value=[one.source for one in CORPUS[:9]], operator="in")
NONE = MetadataFilter(key="tenant", value="c")


@pytest.mark.parametrize("make", [chroma, simple])
@pytest.mark.parametrize(
    ("filters", "allows"),
    [
        (only("tenant", "a", "!="), lambda one: one.tenant != "a"),
        (both_of(SOURCES), lambda one: one in CORPUS[:9]),
        (both_of(A, SOURCES), lambda one: one.tenant == "a" and one in CORPUS[:9]),
        (both_of(A, NONE, condition="or"), lambda one: one.tenant == "a"),
    ],
)
def test_what_a_filter_lets_in_comes_in_and_nothing_else(make, filters, allows):
    base = make().as_retriever(similarity_top_k=2, filters=filters)
    ours = SynapseRetriever(base, "memory:")
    before = base.retrieve(QUERY)
    allowed = {one.id for one in CORPUS if allows(one)}
    outside = {one.id for one in CORPUS} - allowed
    ours.synapse.reinforce([before[0].node_id, *outside], query=QUERY)
    assert set(ids(ours.retrieve(QUERY))) <= allowed
    inside = min(allowed - set(ids(before)))
    for _ in range(3):
        ours.synapse.reinforce([before[0].node_id, inside], query=f"{QUERY}?", strength=2.0)
    assert inside in ids(ours.retrieve(f"{QUERY}?"))


def test_a_nested_filter_is_checked_by_the_store_that_knows_it(index):
    filters = both_of(A, both_of(SOURCES, NONE, condition="or"))
    base = index.as_retriever(similarity_top_k=2, filters=filters)
    ours = SynapseRetriever(base, "memory:")
    before = base.retrieve(QUERY)
    inside = next(one.id for one in CORPUS[:9:2] if one.id not in ids(before))
    ours.synapse.reinforce([before[0].node_id, inside, CORPUS[1].id, CORPUS[12].id], query=QUERY)
    after = ours.retrieve(QUERY)
    assert sorted(ids(after)) == sorted([before[0].node_id, inside])


@pytest.mark.parametrize("operator", ["text_match", "any", "contains", "is_empty"])
def test_a_filter_that_cannot_be_checked_lets_nothing_in(index, operator):
    behind = SynapsePostprocessor("memory:", index=index, filters=only("tenant", "a", operator))
    hits = index.as_retriever(similarity_top_k=4).retrieve(QUERY)
    behind.synapse.reinforce([hits[0].node_id, absent_of(hits)], query=QUERY)
    found = behind.postprocess_nodes(hits, query_str=QUERY)
    assert sorted(ids(found)) == sorted(ids(hits))
    assert not behind.last_trace.displaced_in


def test_documents_keep_their_door():
    index = simple()
    allowed = CORPUS[:6]
    base = index.as_retriever(similarity_top_k=4)
    base._doc_ids = [f"document of {one.id}" for one in allowed]
    ours = SynapseRetriever(base, "memory:")
    hits = index.as_retriever(similarity_top_k=4).retrieve(QUERY)
    wrapped = ids(base.retrieve(QUERY))
    ours.synapse.reinforce([hits[0].node_id, CORPUS[11].id, CORPUS[12].id], query=QUERY)
    assert sorted(ids(ours.retrieve(QUERY))) == sorted(wrapped)


def test_a_filter_inside_of_an_engine_that_a_node_stands_for_closes_the_door(index):
    inner = index.as_retriever(similarity_top_k=4, filters=only("tenant", "a"))
    hits = index.as_retriever(similarity_top_k=4).retrieve(QUERY)
    base = Fixed(hits)
    base.object_map = {"elsewhere": engine("", retriever=inner)}
    ours = SynapseRetriever(base, "memory:", index=index)
    ours.synapse.reinforce([hits[0].node_id, absent_of(hits)], query=QUERY)
    assert sorted(ids(ours.retrieve(QUERY))) == sorted(ids(hits))
    assert "filters" in ours.last_trace.reason


def test_a_large_docstore_is_not_looked_through_again_and_again():
    index = simple()
    index.index_struct.nodes_dict.update({f"x{n}": f"x{n}" for n in range(100_000)})
    base = index.as_retriever(similarity_top_k=4)
    started = time.perf_counter()
    for _ in range(10):
        assert not restrictions_of(base)
    assert time.perf_counter() - started < 0.3


def test_the_whole_collection_is_never_fetched(index, monkeypatch):
    store, asked = index.vector_store, []
    fetch = type(store).get_nodes
    monkeypatch.setattr(
        type(store),
        "get_nodes",
        lambda self, node_ids=None, filters=None: (
            asked.append((node_ids, filters)) or fetch(self, node_ids, filters)
        ),
    )
    for node in ("id", "source"):
        ours = SynapseRetriever(index.as_retriever(similarity_top_k=4), "memory:", node=node)
        hits = ours.retrieve(QUERY)
        best = hits[0].node_id if node == "id" else hits[0].metadata["source"]
        ours.synapse.reinforce([best, "nowhere"], query=QUERY)
        assert ids(ours.retrieve(QUERY)) == ids(hits)
    assert asked
    assert all(node_ids or filters for node_ids, filters in asked)


def test_a_node_that_stands_for_an_object_never_comes_in():
    pointer = IndexNode(id_="pointer", text="It points elsewhere.", index_id="elsewhere")
    index = chroma()
    index.insert_nodes([pointer])
    ours = SynapseRetriever(index.as_retriever(similarity_top_k=4), "memory:")
    hits = [hit for hit in ours.retrieve(QUERY) if hit.node_id != "pointer"]
    ours.synapse.reinforce([hits[0].node_id, "pointer"], query=QUERY)
    assert "pointer" not in ids(ours.retrieve(QUERY))
    assert "pointer" in ours.last_trace.refused


# Sources.


@pytest.mark.parametrize("make", [chroma, simple])
def test_nodes_of_one_document_are_learned_together_where_no_file_is_known(make):
    index = make([])
    nodes = [
        TextNode(
            id_=f"{one.id}/{part}",
            text=f"{one.text} part {part}",
            relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=one.source)},
        )
        for one in CORPUS
        for part in range(2)
    ]
    index.insert_nodes(nodes)
    ours = SynapseRetriever(index.as_retriever(similarity_top_k=4), "memory:", node="source")
    before = ours.retrieve(QUERY)
    absent = next(n for n in nodes if n.ref_doc_id not in {h.node.ref_doc_id for h in before})
    with ours.synapse.run(QUERY) as run:
        run.retrieved([before[0].node.ref_doc_id, absent.ref_doc_id])
        run.used([before[0].node.ref_doc_id, absent.ref_doc_id])
    after = ours.retrieve(QUERY)
    assert len(after) == len(before)
    assert ours.last_trace.reached


@pytest.mark.parametrize("kind", ["metadata:source", lambda node: node.metadata["source"]])
def test_what_a_node_is_can_be_said(index, used, kind):
    ours = SynapseRetriever(index.as_retriever(similarity_top_k=4), "memory:", node=kind)
    engine(quoting(used), retriever=ours).query(QUERY)
    pairs, _ = learned(ours.synapse)
    assert pairs == {tuple(sorted(node.metadata["source"] for node in used)): 1}


# Threads.


@pytest.mark.parametrize("is_behind", [False, True])
def test_no_async_call_touches_chroma_or_the_store_on_the_loop(index, used, monkeypatch, is_behind):
    store, threads = ReinedStore(), []
    for name in ("query", "get", "count"):
        call = getattr(type(index.vector_store.client), name)
        monkeypatch.setattr(
            type(index.vector_store.client),
            name,
            lambda *a, _call=call, **k: threads.append(threading.get_ident()) or _call(*a, **k),
        )
    base = index.as_retriever(similarity_top_k=4)
    if is_behind:
        ours = SynapsePostprocessor(store, index=index)
        parts = {"retriever": Slow(base), "node_postprocessors": [ours]}
    else:
        ours = SynapseRetriever(base, store)
        parts = {"retriever": ours}
    hits = base.retrieve(QUERY)
    absent = absent_of(hits)
    ours.synapse.reinforce([hits[0].node_id, absent], query=QUERY)
    store.blocking.clear()
    threads.clear()

    async def run():
        response = await engine(quoting(used), **parts).aquery(QUERY)
        await ours.synapse.aflush()
        return threading.get_ident(), response

    loop, response = asyncio.run(run())
    assert absent in ids(response.source_nodes)
    assert threads
    assert loop not in threads
    assert store.blocking == []


class Slow(StubRetriever):
    """Asks a synchronous retriever in a thread, as it should be."""

    def __init__(self, base):
        super().__init__({})
        self.base = base

    async def _aretrieve(self, query_bundle):
        return await asyncio.to_thread(self.base._retrieve, query_bundle)
