"""What the memory learns from in each mode, and the controls that know no question."""

import pytest

from synapse_retrievers.evaluation.learners import (
    Popularity,
    RandomDisplacement,
    Settings,
    open_learner,
)
from synapse_retrievers.evaluation.log import Log, Ranked, Run
from synapse_retrievers.params import RecallParams

QUERY = "load the keys of the user"
NODES = tuple(f"n{number}" for number in range(20))
PLAIN = NODES[:8]


def log(*runs):
    return Log("log", runs, frozenset(NODES), 8, {run.query: Ranked(PLAIN) for run in runs})


def taught(tmp_path, mode, *used, query=QUERY):
    """What the store holds after one run: node -> strength, and how many edges."""
    run = Run(1e9, query, used)
    with open_learner(log(run), tmp_path / "s.db", Settings(), mode=mode) as learner:
        learner.ask(run)
        learner.teach(run)
        assert learner.failures == 0
        memory = learner._synapse
        nodes = {node: use for one in memory.episodes() for node, use in one.used.items()}
        return nodes, len(list(memory.edges()))


def test_all_teaches_everything_that_was_used(tmp_path):
    nodes, edges = taught(tmp_path, "all", "n1", "n15", "n16")
    assert (set(nodes), edges) == ({"n1", "n15", "n16"}, 3)


def test_shown_teaches_only_what_the_result_held(tmp_path):
    assert set(taught(tmp_path, "shown", "n1", "n15")[0]) == {"n1"}


def test_none_teaches_nothing(tmp_path):
    assert taught(tmp_path, "none", "n1", "n15") == ({}, 0)


def test_garbage_teaches_as_many_others(tmp_path):
    nodes, edges = taught(tmp_path, "garbage", "n1", "n15", "n16")
    assert (len(nodes), edges) == (3, 3)
    assert set(nodes) != {"n1", "n15", "n16"}


def test_noisy_adds_two_nodes_to_about_half_of_the_runs(tmp_path):
    runs = [Run(1e9 + n, f"question with the number {n}", ("n1",)) for n in range(40)]
    with open_learner(log(*runs), tmp_path / "s.db", Settings(), mode="noisy") as learner:
        for run in runs:
            learner.teach(run)
        sizes = [len(one.used) for one in learner._synapse.episodes()]
    assert 10 < sum(size > 1 for size in sizes) < 30
    assert max(sizes) == 3


def test_midrun_knows_one_node_before_it_asks_and_teaches_the_run_once(tmp_path):
    run = Run(1e9, QUERY, ("n1", "n15"))
    with open_learner(log(run), tmp_path / "s.db", Settings(), mode="midrun") as learner:
        answer = learner.ask(run)
        assert len(answer.known) == 1
        assert set(answer.known) < set(run.used)
        learner.teach(run)
        (edge,) = learner._synapse.edges()
        assert edge.activations == 1


def test_what_was_used_for_a_question_like_it_comes_in(tmp_path):
    first, second = Run(1e9, QUERY, ("n15",)), Run(1e9 + 60, QUERY + " again", ("n15",))
    with open_learner(log(first, second), tmp_path / "s.db", Settings()) as learner:
        assert learner.ask(first).wrapped == PLAIN
        learner.teach(first)
        answer = learner.ask(second)
    assert answer.plain == PLAIN
    assert "n15" in answer.wrapped
    assert len(answer.wrapped) == len(PLAIN)
    assert answer.wrapped_seconds > 0
    assert answer.trace.displaced_in[0].node == "n15"


def test_the_settings_are_those_of_the_memory(tmp_path):
    first, second = Run(1e9, QUERY, ("n15",)), Run(1e9 + 60, QUERY + " again", ("n15",))
    settings = Settings(recall=RecallParams(displacements=0))
    with open_learner(log(first, second), tmp_path / "s.db", settings) as learner:
        learner.teach(first)
        assert "n15" not in learner.ask(second).wrapped
    assert Settings.paper().recall.kernel == "paper"
    assert Settings.paper().learning.unused_penalty == 0.0


def test_popularity_brings_in_what_was_used_most_whatever_is_asked():
    asked = Run(9.0, "something else altogether here", ("n1",))
    control = Popularity(log(asked))
    assert control.ask(asked).wrapped == PLAIN, "nothing was used yet"
    for n in range(5):
        control.teach(Run(float(n), f"q{n}", ("n15", "n3")))
    control.teach(Run(6.0, "q", ("n16",)))
    wrapped = control.ask(asked).wrapped
    assert len(wrapped) == 8
    assert set(wrapped) - set(PLAIN) == {"n15"}
    assert wrapped.index("n3") < PLAIN.index("n3")


@pytest.mark.parametrize("count", [0, 1, 2])
def test_random_displacement_brings_in_as_many_of_what_was_used(count):
    asked = Run(9.0, QUERY, ("n1",))
    control = RandomDisplacement(log(asked), {QUERY: count}, seed=1)
    assert control.ask(asked).wrapped == PLAIN
    control.teach(Run(1.0, "q", ("n1", "n15", "n16", "n17")))
    wrapped = control.ask(asked).wrapped
    assert wrapped[: 8 - count] == PLAIN[: 8 - count]
    assert set(wrapped[8 - count :]) <= {"n15", "n16", "n17"}
    assert len(set(wrapped)) == 8
