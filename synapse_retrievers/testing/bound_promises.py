"""Promises about how far it goes: P9 bounded, P10 deterministic."""

import random
from pathlib import Path
from typing import Any

import pytest

from synapse_retrievers.observer import LEDGER
from synapse_retrievers.params import RecallParams
from synapse_retrievers.synapse import Synapse
from synapse_retrievers.testing.corpus import CORPUS, QUERY
from synapse_retrievers.testing.harness import RetrieverSuite, absent_of, present_of, warm
from synapse_retrievers.testing.reins import Clock


class BoundPromises(RetrieverSuite):
    """P9 and P10, for any adapter."""

    # P9, bounded.

    def test_p09_energy_stays_in_its_bounds_however_much_is_taught(
        self, clock: Clock, way: str
    ) -> None:
        harness = self.build("memory:", clock=clock)
        nodes = [entry.id for entry in CORPUS]
        for turn in range(30):
            clock.forward(7_200)
            harness.synapse.reinforce(nodes, query=f"{QUERY} {turn % 3}", strength=2.0)
        found = harness.ask(QUERY, way=way)
        assert len(found) == len(harness.wrapped.lists[-1])
        trace = harness.last_trace()
        assert trace is not None
        assert trace.reached
        assert all(0.0 < node.energy <= 1.0 for node in trace.reached)
        assert all(0.0 <= edge.weight <= 1.0 for edge in harness.synapse.edges())

    def test_p09_a_hub_comes_in_behind_the_specific_partner(self, clock: Clock, way: str) -> None:
        self.needs("fetch")
        harness = self.build("memory:", clock=clock, recall=RecallParams(displace_similarity=0.0))
        leading, (hub, partner) = present_of(harness)[:4], absent_of(harness)[:2]
        for number in range(400):
            harness.synapse.reinforce([hub.id, f"elsewhere {number}"])
        for first in leading * 10:
            harness.synapse.reinforce([first.id, hub.id])
            harness.synapse.reinforce([first.id, partner.id])
        harness.ask(QUERY, way=way)
        trace = harness.last_trace()
        assert trace is not None
        energies = {node.node: node.energy for node in trace.reached}
        assert energies[partner.id] > 2 * energies.get(hub.id, 0.0)

    def test_p09_the_ledger_of_running_runs_is_bounded(self) -> None:
        harness = self.build("memory:")
        LEDGER.clear()
        harness.wrapped.forced = [harness.result(entry) for entry in CORPUS[:2]]
        for number in range(300):
            harness.ask(f"{QUERY} {number}")
        assert len(LEDGER) <= 300 + 256  # runs, and texts of the newest 256

    def test_p09_failing_calls_leave_nothing_behind(self, way: str) -> None:
        harness = self.build("memory:")
        LEDGER.clear()
        harness.wrapped.forced = LookupError("theirs")
        for _ in range(30):
            with pytest.raises(LookupError):
                harness.run_chain(QUERY, "never said", way=way)
        assert len(LEDGER) == 0

    # P10, deterministic.

    def test_p10_the_order_of_learning_does_not_matter(self, clock: Clock, way: str) -> None:
        lessons: list[Any] = [
            ([CORPUS[i].id, CORPUS[(i * 5 + 3) % 14].id, CORPUS[(i * 3 + 7) % 14].id], i)
            for i in range(14)
        ]
        seen = set()
        for seed in range(5):
            random.Random(seed).shuffle(lessons)  # noqa: S311 - seeded
            harness = self.build("memory:", clock=clock)
            for nodes, number in lessons:
                harness.synapse.reinforce(nodes, query=f"{QUERY} {number % 4}")
            found = tuple(harness.ids(harness.ask(QUERY, way=way)))
            trace = harness.last_trace()
            assert trace is not None
            seen.add((found, tuple((one.node, round(one.energy, 9)) for one in trace.reached)))
        assert len(seen) == 1

    def test_p10_ties_go_to_the_wrapped_order_and_then_to_the_id(self, way: str) -> None:
        self.needs("fetch")
        harness = self.build("memory:")
        first, absent = present_of(harness)[0], absent_of(harness)
        ids = sorted(one.id for one in absent)
        harness.synapse.reinforce([first.id, *reversed(ids)], query=QUERY)
        entered = [node for node in harness.ids(harness.ask(QUERY, way=way)) if node in ids]
        assert entered == ids[:2]

    def test_p10_the_same_question_has_the_same_answer(self, tmp_path: Path, way: str) -> None:
        path = str(tmp_path / "synapse.db")
        clock = Clock()
        harness = self.build(Synapse(path, clock=clock))
        warm(harness)
        results = {tuple(harness.ids(harness.ask(QUERY, way=way))) for _ in range(5)}
        harness.synapse.close()
        again = self.build(Synapse(path, clock=clock))
        results |= {tuple(again.ids(again.ask(QUERY, way=way)))}
        assert len(results) == 1
