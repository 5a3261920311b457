"""Promises about what is told and kept: P12 explainable, P13 every way, P14 forgettable."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from synapse_retrievers.errors import StoreError
from synapse_retrievers.params import DAY
from synapse_retrievers.testing.corpus import CORPUS, QUERY, Entry
from synapse_retrievers.testing.harness import RetrieverSuite, absent_of, present_of, warm
from synapse_retrievers.testing.learning_promises import said, state
from synapse_retrievers.testing.reins import Clock, ReinedStore


class KeepingPromises(RetrieverSuite):
    """P12 to P14, for any adapter."""

    # P12, explainable.

    def test_p12_every_move_is_told_with_its_cause(self, clock: Clock, way: str) -> None:
        self.needs("fetch")
        harness = self.build("memory:", clock=clock)
        absent = warm(harness)
        clock.forward(3 * DAY)
        found = harness.ids(harness.ask(QUERY, way=way))
        trace = harness.last_trace()
        assert trace is not None
        wrapped = harness.ids(harness.wrapped.lists[-1])
        moved = {node for place, node in enumerate(found) if wrapped[place] != node}
        out = set(wrapped) - set(found)
        assert {move.node for move in trace.moves} == moved | out
        (entered,) = trace.displaced_in
        assert (entered.node, {entered.displaced}) == (absent.id, out)
        assert entered.after is not None
        assert found[entered.after] == absent.id
        assert {carrier.kind for carrier in entered.carriers} == {"episode", "edge"}
        for carrier in entered.carriers:
            assert carrier.energy > 0.0
            assert carrier.weight > 0.0
            assert carrier.age_days == pytest.approx(3.0)
            if carrier.kind == "episode":
                assert carrier.source == QUERY
            else:
                assert carrier.path == (carrier.source, absent.id)
        for move in trace.moves:
            assert str(move.node) in str(move)

    def test_p12_a_cold_result_says_why(self, way: str) -> None:
        harness = self.build("memory:")
        harness.ask(QUERY, way=way)
        trace = harness.last_trace()
        assert trace is not None
        assert trace.is_cold
        assert not trace.moves
        assert "unchanged" in str(trace)
        harness.synapse.enabled = False
        harness.ask(QUERY, way=way)
        trace = harness.last_trace()
        assert trace is not None
        assert trace.reason == "switched off"

    def test_p12_explaining_is_what_asking_would_do_and_notes_nothing(self, way: str) -> None:
        harness = self.build("memory:", clock=Clock())
        warm(harness)
        harness.ask(QUERY, way=way)
        before, told = state(harness.synapse), harness.last_trace()
        explained = harness.explain(QUERY)
        assert explained.moves == told.moves if told else False
        assert explained.reached == told.reached if told else False
        assert harness.last_trace() is told
        assert state(harness.synapse) == before

    # P13, every way.

    def test_p13_every_way_gives_the_same_cold_and_warm(self) -> None:
        harness = self.build("memory:", clock=Clock())
        for turn in range(3):
            found = {way: harness.ids(harness.ask(QUERY, way=way)) for way in harness.ways}
            assert all(ids == found["sync"] for ids in found.values()), found
            harness.synapse.reinforce([CORPUS[turn].id, CORPUS[-1 - turn].id], query=QUERY)

    def test_p13_every_run_learns_the_same(self) -> None:
        learned = {}
        for run in self.build("memory:").runs:
            harness = self.build("memory:", clock=Clock())
            harness.run_chain(QUERY, said(*present_of(harness)[:3]), way=run)
            learned[run] = state(harness.synapse)
        assert all(one == learned["sync"] for one in learned.values()), learned

    def test_p13_no_async_call_touches_the_store_on_the_loop(self) -> None:
        store = ReinedStore()
        harness = self.build(store)
        absent = warm(harness)
        used = present_of(harness)[:2]
        store.blocking.clear()
        store.calls.clear()
        for way in harness.ways:
            harness.ask(QUERY, way=way)
        harness.delete([absent.id])
        for run in harness.runs:
            harness.run_chain(QUERY, said(*used), way=run)
        asyncio.run(harness.synapse.aflush())
        assert store.calls
        assert store.blocking == []

    def test_p13_concurrent_calls_each_get_their_own(self) -> None:
        harness = self.build("memory:", clock=Clock())
        warm(harness)
        queries = [f"{QUERY} {entry.text}" for entry in CORPUS[:6]]
        alone = [harness.ids(harness.ask(query)) for query in queries]
        with ThreadPoolExecutor(6) as pool:
            for way in harness.ways:
                asked = pool.map(partial(harness.ask, way=way), queries)
                assert [harness.ids(found) for found in asked] == alone, way

    # P14, forgettable.

    def test_p14_a_forgotten_namespace_is_claimed_anew(self, way: str) -> None:
        harness = self.build("memory:")
        harness.ask(QUERY, way=way)
        claimed = harness.synapse.stats().namespaces["personal"]
        harness.synapse.forget(namespace="personal")
        assert "personal" not in harness.synapse.stats().namespaces
        harness.ask(QUERY, way=way)
        assert harness.synapse.stats().namespaces["personal"] == claimed

    def test_p14_a_deleted_node_never_comes_in(self, clock: Clock, way: str) -> None:
        self.needs("delete")
        harness = self.build("memory:", clock=clock)
        absent = warm(harness)
        assert absent.id in harness.ids(harness.ask(QUERY, way=way))
        harness.delete([absent.id])
        harness.add([Entry("new", absent.text, absent.tenant, absent.source)])
        for _ in range(3):
            found = harness.ids(harness.ask(QUERY, way=way))
            assert absent.id not in found
            assert len(found) == len(harness.wrapped.lists[-1])
        assert absent.id in {node for edge in harness.synapse.edges() for node in edge.pair}
        clock.forward(29 * DAY)
        harness.synapse.prune()
        assert absent.id in {node for edge in harness.synapse.edges() for node in edge.pair}
        clock.forward(2 * DAY)
        assert harness.synapse.prune().nodes
        assert absent.id not in {node for edge in harness.synapse.edges() for node in edge.pair}
        assert all(absent.id not in episode.used for episode in harness.synapse.episodes())

    def test_p14_a_dead_candidate_takes_nobodys_place(self, way: str) -> None:
        self.needs("delete")
        harness = self.build("memory:")
        first, absent = present_of(harness)[0], absent_of(harness)[:4]
        harness.synapse.reinforce([first.id, *(one.id for one in absent)], query=QUERY)
        harness.delete([one.id for one in absent[:2]])
        found = harness.ids(harness.ask(QUERY, way=way))
        assert {absent[2].id, absent[3].id} <= set(found)

    def test_p14_a_node_that_is_back_is_no_longer_gone(self, clock: Clock, way: str) -> None:
        self.needs("delete")
        harness = self.build("memory:", clock=clock)
        absent = warm(harness)
        harness.delete([absent.id])
        harness.ask(QUERY, way=way)
        harness.add([absent])
        harness.wrapped.forced = [harness.result(absent), harness.result(present_of(harness)[0])]
        harness.ask(QUERY, way=way)
        harness.wrapped.forced = None
        assert absent.id in harness.ids(harness.ask(QUERY, way=way))
        clock.forward(40 * DAY)
        assert harness.synapse.prune().nodes == 0

    @pytest.mark.parametrize("how", ["ids", "namespace", "before", "query and ids"])
    def test_p14_what_is_forgotten_moves_nothing(self, how: str, clock: Clock, way: str) -> None:
        harness = self.build("memory:", clock=clock)
        absent, first = warm(harness), present_of(harness)[0]
        synapse = harness.synapse
        if how == "ids":
            synapse.forget(ids=[absent.id, first.id])
        elif how == "namespace":
            synapse.forget(namespace="personal")
        elif how == "before":
            synapse.forget(before=clock() + 1)
        else:
            assert synapse.forget(query=QUERY).episodes == 1
            synapse.forget(ids=[absent.id])
        assert state(synapse) == ([], [])
        found = harness.ask(QUERY, way=way)
        assert [id(one) for one in found] == [id(one) for one in harness.wrapped.lists[-1]]

    def test_p14_forgetting_reaches_what_still_waits(self, way: str) -> None:
        store = ReinedStore()
        harness = self.build(store)
        used = present_of(harness)[:2]
        harness.ask(QUERY)
        store.fault = StoreError("away")
        harness.run_chain(QUERY, said(*used), way=way)
        store.fault = None
        harness.synapse.forget(namespace="personal")
        harness.synapse.flush()
        assert state(harness.synapse) == ([], [])
