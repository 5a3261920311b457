"""The order of asking and teaching, and what is counted."""

import pytest

from synapse_retrievers.evaluation.log import Run
from synapse_retrievers.evaluation.replay import Answer, replay, split_at


class Recorder:
    """Answers what it is told to and writes down what it was asked."""

    def __init__(self, plain=("x",), wrapped=("x",)):
        self.log = []
        self.plain, self.wrapped = tuple(plain), tuple(wrapped)

    def ask(self, run):
        self.log.append(("ask", run.query, run.t))
        return Answer(self.plain, self.wrapped, 0.1, 0.2, None)

    def teach(self, run):
        self.log.append(("teach", run.query, run.used))


def run(n, *used, query=None):
    return Run(float(n), query or f"change the thing number {n}", used or ("a",))


def test_each_later_run_is_asked_before_it_is_taught():
    recorder = Recorder()
    found = replay([run(n) for n in range(5)], recorder, nodes={"a"}, k=8)
    kinds = [kind for kind, *_ in recorder.log]
    assert kinds == ["teach"] * 4 + ["ask", "teach"]
    assert recorder.log[4] == ("ask", "change the thing number 4", 4.0)
    assert (found.taught_before, found.taught, len(found.rows)) == (4, 5, 1)


def test_repeated_short_and_unanswerable_queries_are_taught_but_not_asked():
    runs = [
        run(0, query="fix the parser of dates"),
        run(1, query="Fix  the parser of DATES"),
        run(2, query="fix typo"),
        run(3, "gone"),
        run(4, "gone", "a"),
    ]
    recorder = Recorder()
    found = replay(runs, recorder, nodes={"a"}, k=8, taught_before=1)
    assert [entry[1] for entry in recorder.log if entry[0] == "ask"] == [
        "change the thing number 4"
    ]
    assert found.rows[0].run.used == ("a",)
    assert [entry[2] for entry in recorder.log if entry[0] == "teach"] == [("a",)] * 4
    assert (found.taught_before, found.taught) == (1, 4)


def test_what_an_untaught_run_asked_is_no_new_question_either():
    runs = [run(0, "gone", query="one two three four"), run(1, query="one two three four")]
    assert not replay(runs, Recorder(), nodes={"a"}, k=8).rows


def test_metrics_count_used_nodes_among_k_places():
    recorder = Recorder(plain=("x", "x", "a", "y"), wrapped=("a", "x", "b", "y"))
    found = replay([run(0), run(1, "a", "b", "gone")], recorder, nodes={"a", "b"}, k=4)
    (row,) = found.rows
    assert row.recall == (0.5, 1.0)
    assert row.reciprocal_rank == (0.5, 1.0)
    assert row.plain.ndcg < row.wrapped.ndcg < 1.0
    assert (row.is_same_count, row.entered, row.is_harmed) == (True, 1, False)
    assert (row.place, row.taught) == (1, 1)
    assert (found.recall.won, found.recall.lost, found.same_count) == (1.0, 0.0, 1)
    assert found.reciprocal_rank.difference == 0.5
    assert found.ndcg.difference > 0


def test_another_count_is_seen():
    found = replay([run(0), run(1)], Recorder(("x", "y"), ("x",)), nodes={"a"}, k=4)
    assert found.same_count == 0


@pytest.mark.parametrize("count", [0, 1])
def test_too_few_runs_leave_nothing_to_ask(count):
    found = replay([run(n) for n in range(count)], Recorder(), nodes={"a"}, k=8)
    assert found.rows == ()
    assert found.taught == count
    assert found.recall.interval is None


def test_at_least_one_run_is_taught_first():
    assert [split_at(n) for n in range(7)] == [0, 1, 1, 2, 3, 4, 4]


def test_progress_reaches_the_end():
    told = []
    replay(
        *([run(0), run(1, "gone")], Recorder()),
        nodes={"a"},
        k=8,
        progress=lambda *step: told.append(step),
    )
    assert told == [(1, 2), (2, 2)]


def test_what_the_run_had_used_before_it_asked_is_no_answer():
    class Knowing(Recorder):
        def ask(self, run):
            return Answer(("a", "x"), ("a", "b"), 0.0, 0.0, None, known=("a",))

    runs = [run(0), run(1, "a", "b"), run(2, "a")]
    (row,) = replay(runs, Knowing(), nodes={"a", "b"}, k=2, taught_before=1).rows
    assert row.recall == (0.0, 1.0)


def test_a_used_node_that_went_for_another_is_harm():
    (row,) = replay([run(0), run(1)], Recorder(("a", "x"), ("x", "b")), nodes={"a"}, k=2).rows
    assert row.is_harmed
    (row,) = replay([run(0), run(1)], Recorder(("a", "x"), ("a", "b")), nodes={"a"}, k=2).rows
    assert not row.is_harmed
