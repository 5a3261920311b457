"""From prompts, answers and tool calls to lessons: who is taught what, and how often."""

import asyncio
import threading

import pytest

from synapse_retrievers import Call, Prompted, Seam, Synapse, observe, observe_soon
from synapse_retrievers.events.event import Answered, Result, Retrieved, ToolTouched
from synapse_retrievers.events.ledger import Ledger
from synapse_retrievers.observer import LEDGER, settle
from synapse_retrievers.recall.explain import Carrier
from synapse_retrievers.stores.memory import MemoryStore

NOW = 1_700_000_000.0
TEXTS = {
    "keys": "The rotation job rereads the signing keyset whenever the vault lease expires early.",
    "lock": "A stale lockfile blocks the migration runner until somebody removes it by hand.",
    "mail": "Outgoing newsletters are throttled through a leaky bucket per recipient domain.",
    "cash": "Invoices above the ceiling wait for a second approver from the finance team.",
}


@pytest.fixture
def ledger():
    return Ledger()


@pytest.fixture
def synapse():
    return Synapse(MemoryStore(), clock=lambda: NOW)


def result(node):
    return Result(node, TEXTS[node], source=f"src/{node}.py")


def retrieved(ledger, synapse, run_id, nodes, **options):
    values = {"root_id": "root", "namespace": "personal", "query": "how does it work"} | options
    event = Retrieved(
        run_id,
        values["root_id"],
        synapse,
        values["namespace"],
        values["query"],
        tuple(result(node) for node in nodes),
        values.get("carriers", {}),
        0.0,
    )
    return ledger.retrieved(event)


def prompt(nodes):
    page = "\n\n".join(f"[{place}] {TEXTS[node]}" for place, node in enumerate(nodes, 1))
    return f"Answer the question from this context:\n{page}"


def answer(ledger, nodes, text, *, root_id="root", run_id="llm", quotes=()):
    observe(Prompted(run_id, root_id, prompt(nodes), 1.0), ledger)
    observe(Answered(run_id, text, quotes, 2.0), ledger)


def edges(synapse, namespace=None):
    return {"-".join(edge.pair): edge for edge in synapse.edges(namespace)}


def strengths(synapse, namespace=None):
    return {
        node: use.strength for one in synapse.episodes(namespace) for node, use in one.used.items()
    }


def test_what_the_answer_cites_counts_one(ledger, synapse):
    retrieved(ledger, synapse, "r", ["keys", "lock", "mail"])
    answer(ledger, ["keys", "lock", "mail"], "So it is [1], and also [3].")
    assert strengths(synapse) == {"keys": 1.0, "mail": 1.0}
    assert edges(synapse).keys() == {"keys-mail"}
    assert next(synapse.episodes()).query == "how does it work"


def test_what_the_answer_shares_its_wording_with_counts_less(ledger, synapse):
    retrieved(ledger, synapse, "r", ["keys", "lock"])
    answer(ledger, ["keys", "lock"], TEXTS["keys"])
    assert strengths(synapse) == {"keys": 0.6}


def test_what_the_provider_reports_as_quoted_is_cited(ledger, synapse):
    retrieved(ledger, synapse, "r", ["keys", "lock"])
    quote = "blocks the migration\n  runner until somebody"
    answer(ledger, ["keys", "lock"], "Yes.", quotes=[quote, " "])
    assert strengths(synapse) == {"lock": 1.0}


@pytest.mark.parametrize("text", ["", "  \n", "I do not know."])
def test_an_answer_that_uses_nothing_teaches_nothing(ledger, synapse, text):
    retrieved(ledger, synapse, "r", ["keys", "lock"])
    answer(ledger, ["keys", "lock"], text)
    assert not [*synapse.episodes()]


def test_what_did_not_stand_in_the_prompt_was_not_used(ledger, synapse):
    retrieved(ledger, synapse, "r", ["keys", "lock"])
    answer(ledger, ["keys"], f"{TEXTS['keys']} {TEXTS['lock']}")
    assert strengths(synapse) == {"keys": 0.6}


def test_an_answer_heard_twice_teaches_once(ledger, synapse):
    retrieved(ledger, synapse, "r", ["keys", "lock"])
    for run_id in ("llm", "llm", "another"):
        answer(ledger, ["keys", "lock"], "See [1] and [2].", run_id=run_id)
    assert edges(synapse)["keys-lock"].activations == 1
    assert {node.used for node in synapse.store.nodes()} == {1.0}


def test_a_later_turn_teaches_only_what_is_new(ledger, synapse):
    retrieved(ledger, synapse, "r", ["keys", "lock", "mail"])
    answer(ledger, ["keys", "lock", "mail"], "See [1] and [2].", run_id="one")
    answer(ledger, ["keys", "lock", "mail"], "See [2] and [3].", run_id="two")
    co = {pair: edge.co for pair, edge in edges(synapse).items()}
    assert co == {"keys-lock": 1.0, "keys-mail": 0.5, "lock-mail": 0.5}


def test_one_answer_from_two_retrievals_is_one_event_of_four_nodes(ledger, synapse):
    retrieved(ledger, synapse, "r1", ["keys", "lock"], query="first question")
    retrieved(ledger, synapse, "r2", ["mail", "cash"], query="second question")
    answer(ledger, ["keys", "lock", "mail", "cash"], "See [1], [2], [3] and [4].")
    found = edges(synapse)
    assert len(found) == 6
    assert [edge.co for edge in found.values()] == pytest.approx([1 / 3] * 6)
    assert {one.query: [*one.used] for one in synapse.episodes()} == {
        "first question": ["keys", "lock"],
        "second question": ["cash", "mail"],
    }


def test_the_order_of_the_retrievals_of_one_answer_does_not_matter(synapse):
    found = []
    for order in (("r1", "r2"), ("r2", "r1")):
        memory, ledger = Synapse(MemoryStore(), clock=lambda: NOW), Ledger()
        for run_id in order:
            nodes = ["keys", "lock"] if run_id == "r1" else ["mail"]
            retrieved(ledger, memory, run_id, nodes, query=run_id)
        answer(ledger, ["keys", "lock", "mail"], "See [1], [2], [3].")
        found.append({pair: edge.co for pair, edge in edges(memory).items()})
    assert found[0] == pytest.approx(found[1])


def test_pairs_never_join_two_namespaces_or_memories(ledger, synapse):
    other = Synapse(MemoryStore(), clock=lambda: NOW)
    retrieved(ledger, synapse, "r1", ["keys"], namespace="left")
    retrieved(ledger, synapse, "r2", ["lock"], namespace="right")
    retrieved(ledger, other, "r3", ["mail"])
    answer(ledger, ["keys", "lock", "mail"], "See [1], [2], [3].")
    assert edges(synapse) == edges(other) == {}
    assert strengths(synapse, "left").keys() == {"keys"}
    assert strengths(synapse, "right").keys() == {"lock"}
    assert strengths(other).keys() == {"mail"}


CARRIER = Carrier("episode", "personal", "an old question", 0.5, 0.4, 1.0)


def brought_in(ledger, synapse, *others):
    synapse.reinforce(["lock"], "an old question")
    return retrieved(ledger, synapse, "r", ["keys", *others, "lock"], carriers={"lock": CARRIER})


def old(synapse):
    return {one.query: one for one in synapse.episodes()}["an old question"].used["lock"].strength


def test_brought_in_given_and_unused_though_others_were_it_loses_a_twentieth_once(ledger, synapse):
    brought_in(ledger, synapse)
    for run_id in ("one", "two"):
        answer(ledger, ["keys", "lock"], "See [1].", run_id=run_id)
    assert old(synapse) == pytest.approx(0.95)


@pytest.mark.parametrize(
    ("nodes", "text"),
    [
        (["keys", "lock"], "I do not know."),
        (["keys", "lock"], "See [1] and [2]."),
        (["keys"], "See [1]."),
        (["keys", "lock"], ""),
    ],
)
def test_otherwise_it_loses_nothing(ledger, synapse, nodes, text):
    brought_in(ledger, synapse)
    answer(ledger, nodes, text)
    assert old(synapse) == 1.0


def test_what_the_wrapped_retriever_returned_itself_is_never_weakened(ledger, synapse):
    brought_in(ledger, synapse, "mail")
    synapse.reinforce(["mail"], "mail question")
    answer(ledger, ["keys", "mail", "lock"], "See [1].")
    assert strengths(synapse)["mail"] == 1.0


def test_a_file_that_a_tool_wrote_counts_more_than_one_it_read(ledger, synapse):
    retrieved(ledger, synapse, "r", ["keys", "lock", "mail"])
    observe(ToolTouched("t1", "root", "read_file", {"path": "src/keys.py"}, 1.0), ledger)
    observe(ToolTouched("t2", "root", "edit_file", {"path": "src/lock.py"}, 2.0), ledger)
    observe(ToolTouched("t3", "elsewhere", "edit_file", {"path": "src/mail.py"}, 3.0), ledger)
    assert strengths(synapse) == {"keys": 0.5, "lock": 1.0}
    assert edges(synapse)["keys-lock"].weight == pytest.approx(0.15)


def test_a_later_citation_raises_the_episode_only(ledger, synapse):
    retrieved(ledger, synapse, "r", ["keys", "lock"])
    for node in ("keys", "lock"):
        observe(ToolTouched(node, "root", "read_file", {"path": f"src/{node}.py"}, 1.0), ledger)
    before = [*synapse.edges()]
    answer(ledger, ["keys", "lock"], "See [1].")
    assert strengths(synapse) == {"keys": 1.0, "lock": 0.5}
    assert [*synapse.edges()] == before


def test_hits_without_an_id_teach_nothing(ledger, synapse):
    nameless = Result(None, TEXTS["keys"])
    event = Retrieved("r", "root", synapse, "personal", "q", (nameless, result("lock")))
    ledger.retrieved(event)
    answer(ledger, ["keys", "lock"], "See [1] and [2].")
    assert strengths(synapse) == {"lock": 1.0}


def test_two_retrievals_of_a_declared_run_without_runs_of_their_own_are_both_noticed(synapse):
    seam = Seam(synapse, "id", "")
    with synapse.run("whole task") as run:
        for query, node in (("first", "keys"), ("second", "lock")):
            seam.recall(Call(query, [result(node)]), None)
        observe(Prompted("llm", run.id, prompt(["keys", "lock"])))
        observe(Answered("llm", "See [1] and [2]."))
    assert edges(synapse).keys() == {"keys-lock"}


async def test_on_a_loop_events_are_done_in_order_off_its_thread_before_the_next_recall(synapse):
    threads = []
    memory = Synapse(
        synapse.store, clock=lambda: NOW, on_event=lambda _: threads.append(threading.get_ident())
    )
    retrieved(LEDGER, memory, "soon", ["keys", "lock"], root_id="soon")
    observe_soon(Prompted("soon llm", "soon", prompt(["keys", "lock"])))
    observe_soon(Answered("soon llm", "See [1] and [2]."))
    found = await asyncio.to_thread(memory.explain, "how does it work")
    assert {one.node for one in found.reached} == {"keys", "lock"}
    assert threads
    assert threading.get_ident() not in threads


async def test_what_was_handed_over_is_committed_once_aflush_returns(synapse):
    retrieved(LEDGER, synapse, "flush", ["keys", "lock"], root_id="flush")
    observe_soon(Prompted("flush llm", "flush", prompt(["keys", "lock"])))
    observe_soon(Answered("flush llm", "See [1] and [2]."))
    await synapse.aflush()
    assert edges(synapse).keys() == {"keys-lock"}


async def test_an_event_that_fails_on_the_worker_stops_no_other(synapse):
    retrieved(LEDGER, object(), "odd", ["keys"], root_id="odd")
    observe_soon(Prompted("odd llm", "odd", prompt(["keys"])))
    observe_soon(Answered("odd llm", "See [1]."))
    retrieved(LEDGER, synapse, "even", ["keys", "lock"], root_id="even")
    observe_soon(Prompted("even llm", "even", prompt(["keys", "lock"])))
    observe_soon(Answered("even llm", "See [1] and [2]."))
    await asyncio.to_thread(settle)
    assert edges(synapse).keys() == {"keys-lock"}
