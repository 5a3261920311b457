"""Promises about what is learned: P6 time, P7 use teaches, P8 once."""

import pytest

from synapse_retrievers.learning.lesson import Lesson
from synapse_retrievers.params import DAY, LearningParams
from synapse_retrievers.recall.explain import Trace
from synapse_retrievers.synapse import Synapse
from synapse_retrievers.testing.corpus import QUERY, Entry
from synapse_retrievers.testing.harness import Harness, RetrieverSuite, absent_of, present_of, warm
from synapse_retrievers.testing.reins import Clock, ReinedStore


def state(synapse: Synapse) -> object:
    """All that is stored."""
    synapse.flush()
    return (
        list(synapse.edges()),
        [(one.query, dict(one.used), one.renewed_at) for one in synapse.episodes()],
    )


def said(*entries: Entry) -> str:
    """An answer that uses these."""
    return " ".join(entry.text for entry in entries)


class LearningPromises(RetrieverSuite):
    """P6 to P8, for any adapter."""

    # P6, time.

    @pytest.mark.parametrize("passes", [0, 1, 5, 100])
    def test_p06_maintenance_and_reads_change_no_weight(self, passes: int, clock: Clock) -> None:
        harness = self.build(
            "memory:",
            clock=clock,
            learning=LearningParams(half_life_min_days=30.0, half_life_max_days=30.0),
        )
        first, second = present_of(harness)[:2]
        harness.synapse.reinforce([first.id, second.id], query=QUERY)
        for number in range(passes):
            clock.forward(10 * DAY / passes)
            harness.synapse.prune()
            if number % 20 == 0:
                harness.ask(QUERY)
                harness.explain(QUERY)
                harness.synapse.stats()
        clock.now = 1_700_000_000.0 + 10 * DAY
        (neighbor,) = harness.synapse.neighbors(first.id)
        assert neighbor.weight == pytest.approx(0.238, abs=0.001)

    def test_p06_asking_writes_nothing(self, clock: Clock, way: str) -> None:
        harness = self.build("memory:", clock=clock)
        warm(harness)
        before = state(harness.synapse)
        for _ in range(20):
            clock.forward(DAY)
            harness.ask(QUERY, way=way)
        assert state(harness.synapse) == before

    def test_p06_a_clock_that_jumps_fails_no_call(self, clock: Clock, way: str) -> None:
        harness = self.build("memory:", clock=clock)
        absent = warm(harness)
        usual = harness.ids(harness.ask(QUERY, way=way))
        clock.forward(-3650 * DAY)
        assert harness.ids(harness.ask(QUERY, way=way)) == usual
        clock.forward(36_500 * DAY)
        assert absent.id in [*harness.ids(harness.ask(QUERY, way=way)), absent.id]
        assert harness.synapse.stats().failures == 0

    # P7, use teaches.

    def test_p07_being_shown_teaches_nothing(self, way: str) -> None:
        harness = self.build("memory:")
        for _ in range(20):
            harness.ask(QUERY, way=way)
        harness.run_chain(QUERY, "I do not know.", way=way)
        harness.run_chain(QUERY, QUERY, way=way)
        harness.run_chain(QUERY, "", way=way)
        assert state(harness.synapse) == ([], [])

    def test_p07_what_the_answer_used_is_learned_and_nothing_else(self, way: str) -> None:
        harness = self.build("memory:")
        used = present_of(harness)[1:3]
        harness.run_chain(QUERY, said(*used), way=way)
        harness.synapse.flush()
        (edge,) = harness.synapse.edges()
        assert edge.pair == tuple(sorted(one.id for one in used))
        (episode,) = harness.synapse.episodes()
        assert (episode.query, {*episode.used}) == (QUERY, {one.id for one in used})

    def test_p07_three_uses_change_the_next_result(self, way: str) -> None:
        harness = self.build("memory:")
        last = present_of(harness)[-1]
        for turn in ("today", "here", "now"):
            harness.run_chain(f"{QUERY} {turn}", said(last), way=way)
        assert harness.ids(harness.ask(QUERY, way=way))[0] == last.id

    def test_p07_an_absent_text_in_the_answer_teaches_nothing(self, way: str) -> None:
        harness = self.build("memory:")
        harness.run_chain(QUERY, said(*absent_of(harness)[:3]), way=way)
        assert state(harness.synapse) == ([], [])

    def test_p07_what_came_in_and_was_not_used_loses_once_a_run(self, way: str) -> None:
        self.needs("fetch")
        harness = self.build("memory:")
        absent, first = warm(harness), present_of(harness)[0]
        for turn in (1, 2, 3):
            harness.run_chain(QUERY, said(first), way=way)
            assert self.strength(harness, absent) == pytest.approx(1.0 - 0.05 * turn)

    def test_p07_what_came_in_loses_nothing_when_nothing_was_used(self, way: str) -> None:
        self.needs("fetch")
        harness = self.build("memory:")
        absent = warm(harness)
        before = state(harness.synapse)
        harness.run_chain(QUERY, "I cannot say.", way=way)
        assert absent.id in harness.ids(harness.ask(QUERY))
        assert state(harness.synapse) == before

    def test_p07_what_came_in_and_was_used_loses_nothing(self, way: str) -> None:
        self.needs("fetch")
        harness = self.build("memory:")
        absent, first = warm(harness), present_of(harness)[0]
        harness.run_chain(QUERY, said(first, absent), way=way)
        assert self.strength(harness, absent) == 1.0

    def test_p07_a_frozen_memory_learns_nothing(self, way: str) -> None:
        store = ReinedStore()
        absent = warm(self.build(store))
        frozen = self.build(store, learn=False)
        before = state(frozen.synapse)
        frozen.run_chain(QUERY, said(*present_of(frozen)[:2]), way=way)
        assert state(frozen.synapse) == before
        assert "fetch" in self.cannot or absent.id in frozen.ids(frozen.ask(QUERY, way=way))

    def test_p07_feedback_names_a_run_by_its_query(self, way: str) -> None:
        harness = self.build("memory:")
        first, second = present_of(harness)[:2]
        harness.ask(QUERY, way=way)
        assert harness.synapse.feedback(query=QUERY, used=[first.id, second.id]) == 1
        assert self.strength(harness, first) == 1.0
        assert harness.synapse.feedback(query=QUERY, used=[first.id], helpful=False) == 1
        assert self.strength(harness, first) == pytest.approx(0.7)

    # P8, once.

    def test_p08_a_run_that_did_not_help_loses_once(self, way: str) -> None:
        harness = self.build("memory:")
        first, second = present_of(harness)[:2]
        with harness.synapse.run() as run:
            harness.ask(QUERY, way=way)
            run.used([first.id, second.id])
        told = [harness.synapse.feedback(run.id, used=[first.id], helpful=False) for _ in range(3)]
        assert told == [1, 0, 0]
        assert self.strength(harness, first) == pytest.approx(0.7)

    @pytest.mark.parametrize("listeners", [0, 3])
    def test_p08_a_run_is_one_lesson_whoever_listens(self, listeners: int) -> None:
        for run in self.build("memory:").runs:
            told: list[Trace | Lesson] = []
            harness = self.build("memory:", on_event=told.append)
            answer = said(*present_of(harness)[:3])
            told.clear()
            assert harness.run_chain(QUERY, answer, way=run, listeners=listeners) == answer
            harness.synapse.flush()
            assert [type(one) for one in told] == [Trace, Lesson], run
            lesson = told[1]
            assert isinstance(lesson, Lesson)
            assert [query.key for query, _ in lesson.episodes] == [QUERY]
            assert {edge.activations for edge in harness.synapse.edges()} == {1}

    def test_p08_a_cell_that_is_run_again_within_the_hour_teaches_nothing(
        self, clock: Clock, way: str
    ) -> None:
        harness = self.build("memory:", clock=clock)
        answer = said(*present_of(harness)[:3])
        harness.run_chain(QUERY, answer, way=way)
        harness.synapse.flush()
        before = list(harness.synapse.edges())
        for _ in range(5):
            clock.forward(600)
            harness.run_chain(QUERY, answer, way=way)
        harness.synapse.flush()
        assert list(harness.synapse.edges()) == before
        clock.forward(3_700)
        harness.run_chain(QUERY, answer, way=way)
        harness.synapse.flush()
        assert {edge.activations for edge in harness.synapse.edges()} == {2}

    def test_p08_nested_retrievers_teach_a_run_once(self, way: str) -> None:
        self.needs("nested")
        harness = self.build("memory:")
        outer = harness.nested()
        answer = said(*present_of(harness)[:3])
        outer.run_chain(QUERY, answer, way=way)
        harness.synapse.flush()
        assert {edge.activations for edge in harness.synapse.edges()} == {1}
        assert len(list(harness.synapse.edges())) == 3

    def test_p08_two_memories_in_one_process_learn_their_own(self, way: str) -> None:
        one, other = self.build("memory:"), self.build("memory:")
        used = present_of(one)[:2]
        other.ask(QUERY)
        one.run_chain(QUERY, said(*used), way=way)
        other.synapse.flush()
        assert len(list(one.synapse.edges())) == 1
        assert state(other.synapse) == ([], [])

    def test_p08_two_retrievers_on_one_memory_teach_a_run_once(self, way: str) -> None:
        one = self.build("memory:")
        other = self.build(one.synapse)
        answer = said(*present_of(one)[:3])
        other.run_chain(QUERY, answer, way=way)
        one.synapse.flush()
        assert {edge.activations for edge in one.synapse.edges()} == {1}

    def strength(self, harness: Harness, entry: Entry) -> float:
        """Of the entry in the episode of `QUERY`; 0: it is not in there."""
        harness.synapse.flush()
        for episode in harness.synapse.episodes():
            if episode.query == QUERY and entry.id in episode.used:
                return episode.used[entry.id].strength
        return 0.0
