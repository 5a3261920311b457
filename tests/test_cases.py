"""Inputs that broke other retrievers and memories, and the core (cases.md)."""

import json
import math
import sqlite3
import subprocess
import sys
import unicodedata
from contextlib import closing

import numpy as np
import pytest

from synapse_retrievers import (
    LEDGER,
    Call,
    Found,
    Hit,
    LearningParams,
    NodeIdError,
    RecallParams,
    Result,
    Seam,
    StoreCorruptError,
    StoreVersionError,
    Synapse,
)
from synapse_retrievers.learning.lesson import Lesson
from synapse_retrievers.stores.sqlite import SQLiteStore

DAY = 86_400.0
NOW = 1_700_000_000.0


class Clock:
    def __init__(self):
        self.now = NOW

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def synapse(clock):
    return Synapse("memory:", clock=clock)


def had(ids):
    """Every node can be had."""
    return {one: one for one in ids}


def recalled(synapse, hits, query="how do keys rotate", fetch=had, **more):
    return [hit.id for hit in synapse.recall(query, hits, fetch, **more).hits]


# From public threads.


@pytest.mark.parametrize(
    "scores",
    [
        (-0.2, -0.4, -0.9),
        (1e-261, 0.0, 0.0),
        (None, None, None),
        (math.nan, math.inf, -math.inf),
        (3, 2, 1),
        (np.float32(0.5), np.int64(3), np.float64("nan")),
        (0.3, None, 0.1),
    ],
)
@pytest.mark.parametrize("recall", [RecallParams(), RecallParams.paper()])
def test_case_5_any_scores_give_a_finite_order(synapse, scores, recall):
    synapse.recall_params = recall
    synapse.reinforce(["a", "c"], query="how do keys rotate")
    hits = [Hit(node, score) for node, score in zip("abc", scores, strict=True)]
    assert sorted(recalled(synapse, hits)) == ["a", "b", "c"]


def test_case_5_nothing_found_stays_nothing(synapse):
    synapse.reinforce(["a", "b"], query="how do keys rotate")
    empty = []
    assert synapse.recall("how do keys rotate", empty, had).hits is empty


def test_case_6_a_weak_energy_overtakes_no_first_hit_whatever_the_scores(synapse):
    for _ in range(3):
        synapse.reinforce(["b", "elsewhere"])
    synapse.reinforce(["a", "b"])
    assert recalled(synapse, [Hit("a", 1e-261), Hit("b", 0.0), Hit("c", 0.0)])[0] == "a"


WORKER = """
import sys
from synapse_retrievers import Synapse
from synapse_retrievers.stores.sqlite import SQLiteStore
synapse = Synapse(SQLiteStore(sys.argv[1], busy_seconds=30.0))
for turn in range(int(sys.argv[3])):
    query = f"question {sys.argv[2]} number {turn}"
    found = synapse.recall(query, ["a", "b", "c", "d"], lambda ids: {one: one for one in ids})
    assert len(found.hits) == 4
    synapse.reinforce(["a", "b", f"own {sys.argv[2]}"], query=query)
    print(turn, flush=True)
assert synapse.stats().failures == 0
"""


@pytest.mark.parametrize("turns", [30, pytest.param(200, marks=pytest.mark.stress)])
def test_case_8_four_processes_and_one_killed_lose_nothing(tmp_path, turns):
    path = tmp_path / "synapse.db"
    running = [
        subprocess.Popen(
            [sys.executable, "-c", WORKER, str(path), name, str(turns)],
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in "wxyz"
    ]
    told = [running[0].stdout.readline() for _ in range(turns // 2)]
    running[0].kill()
    told += running[0].communicate()[0].splitlines()
    for process in running[1:]:
        assert len(process.communicate(timeout=100)[0].split()) == turns
        assert process.returncode == 0
    with closing(sqlite3.connect(path)) as file:
        assert file.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    counts = {edge.pair: edge.activations for edge in Synapse(path).edges()}
    assert all(counts["a", f"own {name}"] == turns for name in "xyz")
    assert 3 * turns + len(told) <= counts["a", "b"] <= 3 * turns + len(told) + 1


AT_EXIT = """
import sqlite3, sys
from synapse_retrievers import Synapse
from synapse_retrievers.stores.sqlite import SQLiteStore
from synapse_retrievers.types import Use
synapse = Synapse(SQLiteStore(sys.argv[1], busy_seconds=0.01))
held = sqlite3.connect(sys.argv[1], isolation_level=None)
held.execute("BEGIN IMMEDIATE")
with synapse.run("how do keys rotate") as run:
    synapse.learn(run.run, {"a": Use(1.0), "b": Use(1.0)})
assert synapse.stats().waiting == 1
held.execute("ROLLBACK")
held.close()
"""


def test_what_waits_is_written_when_the_process_ends(tmp_path):
    path = tmp_path / "synapse.db"
    subprocess.run([sys.executable, "-c", AT_EXIT, str(path)], check=True)
    (edge,) = Synapse(path).edges()
    assert edge.pair == ("a", "b")


def test_case_9_what_cannot_be_had_is_never_brought_in_and_the_next_is(synapse):
    synapse.reinforce(["a", "dead", "dead too", "x", "y"], query="how do keys rotate")
    found = recalled(
        synapse,
        list("abcdef"),
        fetch=lambda ids: {one: one for one in ids if not one.startswith("dead")},
    )
    assert len(found) == 6
    assert {"x", "y"} <= set(found)


def test_case_9_gone_nodes_are_pruned_after_thirty_days_and_not_before(synapse, clock):
    seam = Seam.opened(synapse, "id", "corpus")
    synapse.reinforce(["a", "b"], query="how do keys rotate")
    results = [Result(node, node) for node in "acdef"]

    def ask():
        return seam.recall(
            Call("how do keys rotate", results), lambda plan: Found(gone=["b"])
        ).arrange(list("acdef"))

    assert ask() == list("acdef")
    for days in (10, 10, 9):
        clock.now += days * DAY
        ask()
        assert synapse.prune().nodes == 0
    clock.now += 2 * DAY
    assert synapse.prune().nodes == 1
    assert list(synapse.edges()) == []


@pytest.mark.parametrize("passes", [0, 1, 5, 100])
def test_case_11_a_weight_is_the_same_after_any_number_of_passes(tmp_path, clock, passes):
    path = tmp_path / "synapse.db"
    fixed = LearningParams(half_life_min_days=30.0, half_life_max_days=30.0)
    synapse = Synapse(path, clock=clock, learning=fixed)
    synapse.reinforce(["a", "b"])
    for _ in range(passes):
        clock.now += 10 * DAY / passes
        synapse.prune()
    clock.now = NOW + 10 * DAY
    assert synapse.neighbors("a")[0].weight == pytest.approx(0.238, abs=0.001)
    synapse.close()
    reader = (
        "import sys; from synapse_retrievers import LearningParams, Synapse;"
        "fixed = LearningParams(half_life_min_days=30.0, half_life_max_days=30.0);"
        "synapse = Synapse(sys.argv[1], clock=lambda: float(sys.argv[2]), learning=fixed);"
        "print(synapse.neighbors('a')[0].weight)"
    )
    if passes == 5:
        told = subprocess.run(
            [sys.executable, "-c", reader, str(path), repr(clock.now)],
            check=True,
            capture_output=True,
            text=True,
        )
        assert float(told.stdout) == pytest.approx(0.238, abs=0.001)


def test_case_12_abandoned_runs_are_bounded(synapse):
    LEDGER.clear()
    for number in range(11_000):
        with synapse.run(f"question {number}"):
            pass
    assert len(LEDGER) <= 10_000


# From trials of comparable systems.


def test_an_edge_idle_for_a_year_is_not_topped_up_to_one(synapse, clock):
    for _ in range(3):
        synapse.reinforce(["a", "b"])
    clock.now += 365 * DAY
    synapse.reinforce(["a", "b"])
    assert synapse.neighbors("a")[0].weight == pytest.approx(0.300, abs=0.001)


def test_a_clock_ten_years_ahead_costs_its_own_edge_at_most(synapse, clock):
    synapse.reinforce(["a", "b"], query="how do keys rotate")
    clock.now += 3650 * DAY
    synapse.reinforce(["x", "y"], query="how do pumps run")
    clock.now = NOW
    assert synapse.neighbors("a")[0].weight == pytest.approx(0.3)
    assert 0.0 < synapse.neighbors("x")[0].weight <= 0.3
    synapse.reinforce(["x", "y"], query="how do pumps run")
    assert {edge.activated_at for edge in synapse.edges()} == {NOW}
    assert synapse.forget(before=NOW + 1).edges == 2


def test_hourly_passes_kill_no_weight(synapse, clock):
    for _ in range(10):
        synapse.reinforce(["a", "b"])
    for _ in range(98):
        clock.now += 3_600
        synapse.prune()
    assert synapse.neighbors("a")[0].weight > 0.9


def test_weak_touches_lift_no_edge_to_the_floor(synapse):
    for turn in range(5):
        synapse.reinforce(["a", "b"], query=f"q{turn}", strength=0.01)
    assert synapse.neighbors("a")[0].weight == pytest.approx(0.015)


def test_negative_feedback_goes_below_the_floor(synapse):
    synapse.recall_params = RecallParams(cue_weight=0.0, boost=10.0)
    for _ in range(6):
        synapse.reinforce(["a", "b"])
    seam = Seam.opened(synapse, "id", "")
    results = [Result(node, node) for node in "axyzuvw"]
    for _ in range(30):
        with synapse.run("how do keys rotate") as run:
            recalled = seam.recall(
                Call("how do keys rotate", results),
                lambda plan: Found(
                    {one.id: Result(one.id) for one in plan.wanted},
                    {one.id: one.id for one in plan.wanted},
                ),
            )
        if not recalled.trace.displaced_in:
            break
        synapse.feedback(run.id, helpful=False)
    assert not recalled.trace.displaced_in
    assert synapse.neighbors("a")[0].weight < 0.2


def test_a_clique_and_a_utility_node_stay_in_their_bounds(synapse):
    clique = [f"c{number:02}" for number in range(20)]
    for turn in range(20):
        synapse.reinforce(clique, query=f"how do keys rotate {turn}", strength=2.0)
    for number in range(300):
        synapse.reinforce(["utility", f"leaf {number}"])
    trace = synapse.explain("how do keys rotate", [*clique[:4], "utility"])
    assert max(node.energy for node in trace.reached) <= 1.0
    assert all(edge.weight <= 1.0 for edge in synapse.edges())


@pytest.mark.parametrize("count", [0, 1, 2, 3, 4])
def test_no_seed_is_evicted_for_its_own_partner(synapse, count):
    for turn in range(3):
        synapse.reinforce(["a", "x", "y"], query=f"how do keys rotate {turn}")
    hits = list("abcd")[:count]
    found = recalled(synapse, hits)
    assert len(found) == count
    assert "a" in found or not count
    assert len(set(found)) == count
    assert len(set(found) & {"x", "y"}) == min(2, count // 2)


@pytest.mark.parametrize("bad", [1, 1.0, b"a", "", None, True, ("a",), "\ud800"])
def test_ids_that_are_no_text_are_refused_at_the_edge(synapse, bad):
    with pytest.raises(NodeIdError):
        synapse.reinforce(["a", bad])
    with pytest.raises(NodeIdError):
        synapse.feedback(query="q", used=["a", bad])
    assert list(synapse.edges()) == []


def test_the_exact_text_of_an_id_is_the_identity(tmp_path):
    odd = [
        unicodedata.normalize("NFC", "é"),
        unicodedata.normalize("NFD", "é"),
        "a'b",
        'a"b',
        "a\nb",
        "a\0b",
        " a ",
        "a",
        "A",
        "%",
        "x" * 10_000,
        "[1]",
        "键",
        "👩‍👩‍👧",
    ]
    path = tmp_path / "synapse.db"
    synapse = Synapse(path)
    synapse.reinforce(odd, query="how do keys rotate")
    synapse.close()
    again = Synapse(path)
    assert {node for edge in again.edges() for node in edge.pair} == set(odd)
    (episode,) = again.episodes()
    assert set(episode.used) == set(odd)
    assert again.forget(ids=[odd[0]]).nodes == 1
    assert odd[1] in next(iter(again.episodes())).used


def test_duplicate_seeds_double_no_energy(synapse):
    synapse.reinforce(["a", "b"])
    once = synapse.explain("anything", ["a", "b", "c", "d"]).reached
    twice = synapse.explain("anything", ["a", "b", "a", "c"]).reached
    assert {one.node: one.energy for one in twice} == {one.node: one.energy for one in once}


def test_nothing_moves_when_nothing_was_used(synapse):
    for number in range(15):
        with synapse.run(f"how do keys rotate {number}") as run:
            run.retrieved(["a", "b", "c", "d"])
    hits = [Hit(node) for node in "abcdef"]
    assert synapse.recall("how do keys rotate", hits, had).hits is hits


def test_one_accidental_pair_displaces_nothing_for_another_question(synapse):
    synapse.reinforce(["a", "zebra"], query="paint on zebra crossings", strength=0.4)
    hits = [Hit(node) for node in "abcdefgh"]
    assert "zebra" not in recalled(synapse, hits, query="how do keys rotate")


def test_rebuilding_unchanged_input_reaches_no_floor(synapse):
    for _ in range(6):
        synapse.reinforce(["a", "b"], query="rebuild", run_key="build 1")
    assert [edge.activations for edge in synapse.edges()] == [1]


def test_a_failing_event_listener_loses_no_lesson():
    def fail(_):
        raise RuntimeError("mine")

    synapse = Synapse("memory:", on_event=fail)
    assert synapse.reinforce(["a", "b"], query="q") == 1
    assert len(list(synapse.edges())) == 1
    assert synapse.stats().failures == 1


def test_lessons_are_told_as_they_are_learned():
    told = []
    synapse = Synapse("memory:", on_event=told.append)
    synapse.reinforce(["a", "b"], query="q")
    (lesson,) = told
    assert isinstance(lesson, Lesson)
    assert json.dumps([query.key for query, _ in lesson.episodes]) == '["q"]'


@pytest.mark.parametrize("content", [b"x", b"not a store" * 999, b"SQLite format 3\0" + b"\1" * 99])
def test_a_damaged_file_is_named_at_the_opening(tmp_path, content):
    path = tmp_path / "synapse.db"
    path.write_bytes(content)
    with pytest.raises(StoreCorruptError):
        Synapse(path)
    assert path.read_bytes() == content


def test_a_newer_schema_is_refused_at_the_opening(tmp_path):
    path = tmp_path / "synapse.db"
    SQLiteStore(path).close()
    with closing(sqlite3.connect(path)) as file:
        file.execute("PRAGMA user_version = 99")
    with pytest.raises(StoreVersionError, match="99"):
        Synapse(path)


def test_a_store_that_broke_while_it_was_closed_is_refused_at_the_opening(tmp_path):
    path = tmp_path / "synapse.db"
    before = Synapse(path)
    before.close()
    with closing(sqlite3.connect(path)) as file:
        file.execute("PRAGMA user_version = 99")
    with pytest.raises(StoreVersionError, match="99"):
        Synapse(path)
    assert before.enabled


def test_a_hit_list_is_never_written(synapse):
    synapse.reinforce(["a", "x"], query="how do keys rotate")
    hits = [Hit(node, 0.5) for node in "abcdef"]
    before = list(hits)
    found = synapse.recall("how do keys rotate", hits, had)
    assert "x" in [hit.id for hit in found.hits]
    assert hits == before
    assert all(one is other for one, other in zip(hits, before, strict=True))
