"""The bounded memory of running runs: joining prompts, claims, limits in number and time."""

import threading

import pytest

from synapse_retrievers.events.event import Answered, Prompted, Result, Retrieved
from synapse_retrievers.events.ledger import (
    RUN_SECONDS,
    RUNNING,
    RUNS,
    TEXT_SECONDS,
    Ledger,
)

OWNER, OTHER = object(), object()


def text(node):
    return f"the full text of node {node} that an answer may be made from"


def retrieved(run_id, nodes, root_id=None, *, owner=OWNER, space="personal", query="q"):
    results = tuple(Result(node, text(node)) for node in nodes)
    return Retrieved(run_id, root_id or run_id, owner, space, query, results)


def prompted(run_id, nodes, root_id=None, *, at=0.0):
    page = "\n\n".join(map(text, nodes))
    return Prompted(run_id, root_id or run_id, f"Answer from this:\n{page}", at)


def given(ledger, run_id):
    return [
        (one.event.run_id, [one.event.results[place].node for place in one.places])
        for one in ledger.answered(Answered(run_id, "so"))[1]
    ]


def test_a_prompt_is_joined_with_what_it_holds_of_its_own_root():
    ledger = Ledger()
    ledger.retrieved(retrieved("r1", "abc", "root"))
    ledger.retrieved(retrieved("r2", "de", "root"))
    ledger.prompted(prompted("llm", "ace", "root"))
    assert given(ledger, "llm") == [("r1", ["a", "c"]), ("r2", ["e"])]


def test_an_answer_is_handed_out_once():
    ledger = Ledger()
    ledger.retrieved(retrieved("r1", "a", "root"))
    ledger.prompted(prompted("llm", "a", "root"))
    assert given(ledger, "llm")
    assert given(ledger, "llm") == []
    assert given(ledger, "never") == []


def test_a_foreign_prompt_is_joined_with_the_newest_unclaimed_retrieval_it_holds():
    ledger = Ledger()
    for name in ("r1", "r2"):
        ledger.retrieved(retrieved(name, "ab"))
    ledger.prompted(prompted("llm", "a", "elsewhere"))
    assert given(ledger, "llm") == [("r2", ["a"])]


def test_a_claimed_retrieval_belongs_to_its_claimer_and_to_nobody_else():
    ledger = Ledger()
    ledger.retrieved(retrieved("r1", "ab"))
    ledger.prompted(prompted("one", "a", "first"))
    ledger.prompted(prompted("two", "a", "second"))
    ledger.prompted(prompted("three", "b", "first"))
    assert given(ledger, "one") == [("r1", ["a"])]
    assert given(ledger, "two") == []
    assert given(ledger, "three") == [("r1", ["b"])]


def test_a_root_with_retrievals_of_its_own_claims_no_others():
    ledger = Ledger()
    ledger.retrieved(retrieved("r1", "ab"))
    ledger.retrieved(retrieved("r2", "cd", "root"))
    ledger.prompted(prompted("llm", "a", "root"))
    assert given(ledger, "llm") == []


@pytest.mark.parametrize("other", [{"owner": OTHER}, {"space": "acme"}])
def test_two_memories_or_namespaces_that_match_teach_nothing_and_are_counted(other):
    ledger = Ledger()
    ledger.retrieved(retrieved("r1", "ab"))
    ledger.retrieved(retrieved("r2", "ab", **other))
    ledger.prompted(prompted("llm", "a", "elsewhere"))
    assert given(ledger, "llm") == []
    assert ledger.ambiguous == 1


def test_a_foreign_prompt_that_holds_nothing_of_ours_is_not_kept():
    ledger = Ledger()
    ledger.retrieved(retrieved("r1", "ab"))
    before = len(ledger)
    ledger.prompted(Prompted("llm", "elsewhere", "nothing of that kind", 0.0))
    assert len(ledger) == before
    assert ledger.ambiguous == 0


def test_texts_are_kept_ten_minutes():
    ledger = Ledger()
    ledger.retrieved(retrieved("r1", "a", "root"))
    ledger.prompted(prompted("late", "a", "root", at=TEXT_SECONDS + 1))
    ledger.prompted(prompted("just", "a", "root", at=TEXT_SECONDS))
    assert given(ledger, "late") == []
    assert given(ledger, "just") == [("r1", ["a"])]


def test_all_it_holds_is_bounded_in_number():
    ledger = Ledger()
    for number in range(RUNS + 50):
        if number < 2 * RUNNING:
            name = f"r{number}"
            ledger.retrieved(retrieved(name, "a"))
            ledger.prompted(prompted(f"llm{number}", "a", name))
        else:
            ledger.run(f"run{number}", OWNER, "personal", 0.0)
    assert len(ledger) == RUNS + 2 * RUNNING


def test_a_run_is_found_for_an_hour_and_then_forgotten():
    ledger = Ledger()
    run = ledger.run("root", OWNER, "personal", 0.0)
    ledger.run("other", OWNER, "personal", RUN_SECONDS)
    assert ledger.find("root", OWNER, RUN_SECONDS) == [run]
    assert ledger.find("root", OWNER, RUN_SECONDS + 1) == []


def test_a_run_seen_again_lives_on_from_then():
    ledger = Ledger()
    run = ledger.run("root", OWNER, "personal", 0.0)
    assert ledger.run("root", OWNER, "personal", RUN_SECONDS) is run
    assert ledger.find("root", OWNER, RUN_SECONDS + 1) == [run]


def test_a_run_is_known_by_its_memory_and_namespace():
    ledger = Ledger()
    mine = ledger.run("root", OWNER, "personal", 0.0)
    there = ledger.run("root", OWNER, "acme", 0.0)
    theirs = ledger.run("root", OTHER, "personal", 0.0)
    assert ledger.find("root", OWNER, 0.0) == [mine, there]
    assert ledger.find("root", OTHER, 0.0) == [theirs]
    assert ledger.find("root", object(), 0.0) == []


def test_the_newest_run_of_a_query_is_found_in_its_memory_and_namespace():
    ledger = Ledger()
    for key in ("one", "two"):
        ledger.retrieved(retrieved(key, "a", query="why"))
    assert ledger.newest("why", OWNER, "personal", 0.0).key == "two"
    assert ledger.newest("why", OWNER, "acme", 0.0) is None
    assert ledger.newest("why", OTHER, "personal", 0.0) is None
    assert ledger.newest("how", OWNER, "personal", 0.0) is None


def test_a_key_of_its_own_names_the_run():
    ledger = Ledger()
    ledger.retrieved(retrieved("r1", "a", "root"), "declared")
    assert ledger.find("root", OWNER, 0.0) == []
    (run,) = ledger.find("declared", OWNER, 0.0)
    assert run.queries == {"q": ("a",)}


def test_hits_without_an_id_are_recognized_but_not_returned():
    ledger = Ledger()
    event = Retrieved("r", "r", OWNER, "personal", "q", (Result(None, text("x")), Result("a")))
    assert ledger.retrieved(event).queries == {"q": ("a",)}


def test_of_several_chunks_the_best_placed_one_stands_for_a_document():
    results = tuple(Result("doc", text(chunk), chunk) for chunk in ("doc#2", "doc#0"))
    run = Ledger().retrieved(Retrieved("r", "r", OWNER, "personal", "q", results))
    assert run.chunks == {"doc": "doc#2"}


def test_cleared_it_holds_nothing():
    ledger = Ledger()
    ledger.retrieved(retrieved("r1", "a", "root"))
    ledger.clear()
    assert len(ledger) == 0


def test_threads_lose_no_run():
    ledger = Ledger()

    def work(name):
        for number in range(50):
            key = f"{name}/{number}"
            ledger.retrieved(retrieved(key, "a"))
            ledger.prompted(prompted(f"llm/{key}", "a", key))
            ledger.answered(Answered(f"llm/{key}", "so"))

    threads = [threading.Thread(target=work, args=(str(n),)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(ledger) == 200 + 200


class Interrupted(str):
    """A prompt's text: while it is searched, something else happens, once."""

    __slots__ = ("happens",)

    def split(self, *args):
        if self.happens:
            self.happens.pop()()
        return str.split(self, *args)


def test_of_two_prompts_that_claim_one_retrieval_at_once_only_one_gets_it():
    ledger = Ledger()
    ledger.retrieved(retrieved("r1", "a"))
    other = prompted("two", "a", "second")
    page = Interrupted(other.text)
    page.happens = [lambda: ledger.prompted(other)]
    ledger.prompted(Prompted("one", "first", page, 0.0))
    assert page.happens == []
    assert sorted(map(len, (given(ledger, "one"), given(ledger, "two")))) == [0, 1]


def test_a_retrieval_that_is_dropped_while_it_is_claimed_hurts_nobody():
    ledger = Ledger()
    ledger.retrieved(retrieved("r1", "a"))

    def drop():
        for number in range(RUNNING):
            ledger.retrieved(retrieved(f"new{number}", "b"))

    page = Interrupted(prompted("one", "a").text)
    page.happens = [drop]
    ledger.prompted(Prompted("one", "first", page, 0.0))
    assert page.happens == []
