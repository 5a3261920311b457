"""LlamaIndex runs teach once each: engines, chats, streams, citations, agents, tags."""

import asyncio
import importlib

import pytest
from llama_index.core.agent import FunctionAgent
from llama_index.core.callbacks import CallbackManager, CBEventType, LlamaDebugHandler
from llama_index.core.chat_engine import CondensePlusContextChatEngine
from llama_index.core.llms import ChatMessage
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.query_engine import CitationQueryEngine
from llama_index.core.schema import QueryBundle
from llama_index.core.tools import FunctionTool, RetrieverTool
from llama_index_instrumentation import get_dispatcher
from llama_index_instrumentation.dispatcher import instrument_tags

from llama_index.retrievers.synapse import SynapsePostprocessor, SynapseRetriever, listener
from synapse_retrievers.testing.corpus import CORPUS, QUERY
from tests.integrations.llama_index_harness import (
    WAYS,
    chat_engine,
    engine,
    learned,
    once,
    quoting,
    said,
)

pytest_plugins = ["tests.integrations.llama_index_fixtures"]


@pytest.mark.parametrize("way", sorted(WAYS))
def test_an_engine_teaches_once_however_it_is_asked(ours, used, way):
    WAYS[way](QUERY, quoting(used), {"retriever": ours})
    assert learned(ours.synapse) == once(used)


@pytest.mark.parametrize("way", sorted(WAYS))
def test_a_postprocessor_teaches_once_however_its_engine_is_asked(index, used, way):
    behind = SynapsePostprocessor("memory:", index=index)
    base = index.as_retriever(similarity_top_k=4)
    WAYS[way](QUERY, quoting(used), {"retriever": base, "node_postprocessors": [behind]})
    assert learned(behind.synapse) == once(used)
    behind.synapse.close()


@pytest.mark.parametrize("is_async", [False, True])
def test_condense_plus_context_teaches_once(ours, used, is_async):
    chat = CondensePlusContextChatEngine.from_defaults(
        ours, llm=said(quoting(used)), memory=ChatMemoryBuffer.from_defaults(token_limit=10_000_000)
    )
    if is_async:
        asyncio.run(chat.achat(QUERY))
    else:
        chat.chat(QUERY)
    assert learned(ours.synapse) == once(used)


def test_citations_are_those_of_the_original_nodes(index, ours, used):
    cites = CitationQueryEngine.from_args(index, retriever=ours, llm=said("So [1]; also [2]."))
    cites.query(QUERY)
    assert learned(ours.synapse) == once(used)
    assert {use.strength for one in ours.synapse.episodes() for use in one.used.values()} == {1.0}


def test_two_turns_of_a_chat_are_two_runs(ours, used):
    chat = chat_engine(quoting(used), retriever=ours)
    chat.chat(QUERY)
    chat.chat("and what about the backups of the ledger")
    _, queries = learned(ours.synapse)
    assert QUERY in queries


# LlamaIndex reads pydantic's old attribute when it makes a schema of a tool.
@pytest.mark.filterwarnings("ignore::pydantic.PydanticDeprecationWarning")
def test_an_agent_teaches_what_it_used_and_touched(ours, used):
    from llama_index.core.base.llms.types import TextBlock
    from llama_index.core.llms import mock

    if not hasattr(mock, "MockFunctionCallingLLM"):
        pytest.skip("this release of LlamaIndex has no scripted model that calls tools")
    from llama_index.core.base.llms.types import ToolCallBlock

    def read_file(path: str) -> str:
        """Read a file."""
        return f"content of {path}"

    def call(tool, **arguments):
        block = ToolCallBlock(tool_call_id=tool, tool_name=tool, tool_kwargs=arguments)
        return ChatMessage(role="assistant", blocks=[TextBlock(text=""), block])

    source = used[1].metadata["source"]
    turns = [
        call("search", input=QUERY),
        call("read_file", path=source),
        ChatMessage(role="assistant", content=quoting(used[:1])),
    ]
    tools = [
        RetrieverTool.from_defaults(ours, name="search", description="Searches."),
        FunctionTool.from_defaults(read_file),
    ]
    llm = mock.MockFunctionCallingLLM(response_generator=lambda messages, **_: turns.pop(0))

    async def run():
        return await FunctionAgent(tools=tools, llm=llm, streaming=False).run("how often?")

    asyncio.run(run())
    pairs, queries = learned(ours.synapse)
    assert pairs == once(used)[0]
    (query,) = queries
    assert QUERY in query  # the tool puts words of its own in front


def test_a_run_named_by_a_tag_takes_feedback(ours, used):
    with instrument_tags({"synapse_run_id": "run 7", "synapse_namespace": "acme"}):
        ours.retrieve(QUERY)
    assert ours.synapse.feedback("run 7", used=[node.node_id for node in used]) == 1
    assert {edge.namespace for edge in ours.synapse.edges()} == {"acme"}
    assert ours.last_trace.namespace == "acme"


def test_the_legacy_callback_manager_hears_one_retrieval(index):
    debug = LlamaDebugHandler(print_trace_on_end=False)
    base = index.as_retriever(similarity_top_k=4)
    base.callback_manager = CallbackManager([debug])
    ours = SynapseRetriever(base, "memory:")
    ours.retrieve(QUERY)
    assert len(debug.get_event_pairs(CBEventType.RETRIEVE)) == 1


def test_the_handlers_are_there_once_even_after_a_reload(ours):
    root = get_dispatcher()
    importlib.reload(listener).listen()
    names = [type(one).__name__ for one in (*root.event_handlers, *root.span_handlers)]
    assert names.count("SynapseEvents") == names.count("SynapseSpans") == 1


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_two_streams_that_are_read_later_teach_each_its_own(index, ours, order):
    queries = [QUERY, "How are exports compressed?"]
    found = [index.as_retriever(similarity_top_k=4).retrieve(query)[:2] for query in queries]
    used = [[hit.node for hit in hits] for hits in found]
    streams = [
        engine(quoting(nodes), streaming=True, retriever=ours).query(query)
        for query, nodes in zip(queries, used, strict=True)
    ]
    for place in order:
        list(streams[place].response_gen)
    ours.synapse.flush()
    assert {one.query: {*one.used} for one in ours.synapse.episodes()} == {
        query: {node.node_id for node in nodes} for query, nodes in zip(queries, used, strict=True)
    }
    assert {edge.activations for edge in ours.synapse.edges()} == {1}


def test_an_abandoned_stream_teaches_nothing_and_breaks_nothing(ours, used):
    parts = engine(quoting(used), streaming=True, retriever=ours).query(QUERY).response_gen
    next(iter(parts))
    del parts
    assert learned(ours.synapse)[0] == {}


def test_the_scores_stay_in_their_order_and_a_hit_that_stayed_is_the_same_object(index, ours):
    base = index.as_retriever(similarity_top_k=4)
    before = base.retrieve(QUERY)
    absent = next(one.id for one in CORPUS if one.id not in {hit.node_id for hit in before})
    ours.synapse.reinforce([before[2].node_id, absent], query=QUERY)
    after = ours.retrieve(QUERY)
    assert absent in {hit.node_id for hit in after}
    assert [hit.score for hit in after] == pytest.approx([hit.score for hit in before])
    assert len({hit.node_id for hit in after}) == len(before)


def test_a_postprocessor_without_a_query_returns_the_very_nodes(index):
    behind = SynapsePostprocessor("memory:", index=index)
    nodes = index.as_retriever(similarity_top_k=4).retrieve(QUERY)
    assert behind.postprocess_nodes(nodes) is nodes
    assert behind.postprocess_nodes(nodes, query_bundle=QueryBundle("")) is nodes
    assert behind.synapse.stats().nodes == 0
