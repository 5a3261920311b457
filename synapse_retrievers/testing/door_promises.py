"""Promises about what may come in and what may go wrong: P4 same door, P5 fail open."""

import logging
from pathlib import Path
from typing import Any

import pytest

from synapse_retrievers.errors import StoreCorruptError, StoreError
from synapse_retrievers.testing.checks import Checks, ours
from synapse_retrievers.testing.corpus import CORPUS, QUERY, Entry
from synapse_retrievers.testing.harness import absent_of, present_of, warm
from synapse_retrievers.testing.reins import Clock, ReinedStore


class DoorPromises(Checks):
    """P4 and P5, for any adapter."""

    # P4, the same door.

    def test_p04_a_filter_keeps_out_what_it_would_keep_out(self, way: str) -> None:
        self.needs("fetch")
        harness = self.build("memory:", k=4)
        allowed = [entry for entry in CORPUS if entry.tenant == "a"]
        other = next(entry for entry in absent_of(harness) if entry.tenant == "b")
        harness.synapse.reinforce([allowed[0].id, other.id], query=QUERY)
        assert other.id in harness.ids(harness.ask(QUERY, way=way))
        found = harness.ids(harness.ask(QUERY, way=way, restriction="tenant a"))
        assert len(found) == len(harness.wrapped.lists[-1])
        assert set(found) <= {entry.id for entry in allowed}
        trace = harness.last_trace()
        assert trace is not None
        assert trace.refused or trace.reason

    def test_p04_a_filter_lets_in_what_it_would_let_in(self, way: str) -> None:
        self.needs("filter")
        harness = self.build("memory:", k=3)
        harness.ask(QUERY, restriction="tenant a")
        shown = harness.ids(harness.wrapped.lists[-1])
        absent = next(one for one in CORPUS if one.tenant == "a" and one.id not in shown)
        harness.synapse.reinforce([str(shown[0]), absent.id], query=QUERY)
        assert absent.id in harness.ids(harness.ask(QUERY, way=way, restriction="tenant a"))

    def test_p04_a_node_kept_out_by_a_filter_is_not_gone(self, way: str) -> None:
        self.needs("filter")
        harness = self.build("memory:", k=4)
        other = next(entry for entry in absent_of(harness) if entry.tenant == "b")
        harness.synapse.reinforce([present_of(harness)[0].id, other.id], query=QUERY)
        harness.ask(QUERY, way=way, restriction="tenant a")
        assert other.id in harness.ids(harness.ask(QUERY, way=way))

    @pytest.mark.parametrize("restriction", ["threshold", "unknown"])
    def test_p04_what_cannot_be_checked_again_lets_nothing_in(
        self, restriction: str, way: str
    ) -> None:
        self.needs(f"{restriction} restriction")
        harness = self.build("memory:")
        absent = warm(harness)
        found = harness.ids(harness.ask(QUERY, way=way, restriction=restriction))
        assert sorted(map(str, found)) == sorted(map(str, harness.ids(harness.wrapped.lists[-1])))
        trace = harness.last_trace()
        assert trace is not None
        assert trace.reason
        assert absent.id not in found
        assert not trace.displaced_in

    def test_p04_what_cannot_be_checked_again_may_still_change_the_order(self, way: str) -> None:
        self.needs("unknown restriction")
        harness = self.build("memory:")
        last = present_of(harness)[-1]
        harness.synapse.reinforce([last.id, present_of(harness)[-2].id], query=QUERY)
        found = harness.ids(harness.ask(QUERY, way=way, restriction="unknown"))
        assert found[0] == last.id or found[1] == last.id

    def test_p04_what_one_tenant_taught_moves_no_other_tenants_results(self, way: str) -> None:
        harness = self.build("memory:", namespace="acme")
        self.is_warm(harness, way, "acme")
        for namespace in ("umbrella", "personal", "shared", "ephemeral", "branch:acme", "Acme"):
            self.is_untouched(harness, way, namespace)
        self.is_untouched(self.build(harness.synapse.store, namespace="umbrella"), way)

    def test_p04_a_run_teaches_the_namespace_that_it_names(self, way: str) -> None:
        harness = self.build("memory:")
        used = present_of(harness)[:2]
        harness.run_chain(QUERY, used[0].text + " " + used[1].text, way=way, namespace="acme")
        harness.synapse.flush()
        assert {edge.namespace for edge in harness.synapse.edges()} == {"acme"}
        assert {episode.namespace for episode in harness.synapse.episodes()} == {"acme"}

    def test_p04_a_run_names_the_namespace_of_what_is_asked_inside(self, way: str) -> None:
        self.needs("fetch")
        harness = self.build("memory:")
        absent = warm(harness, namespace="team-a")
        with harness.synapse.run(namespace="team-a"):
            assert absent.id in harness.ids(harness.ask(QUERY, way=way))
        assert absent.id not in harness.ids(harness.ask(QUERY, way=way))

    # P5, fail open.

    @pytest.mark.parametrize(
        "fault", [RuntimeError("away"), TimeoutError(), "none", 7, ["garbage", None]]
    )
    def test_p05_a_failing_fetch_lets_nothing_in(
        self, fault: object, way: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        self.needs("fetch")
        harness = self.build("memory:")
        absent = warm(harness)
        harness.wrapped.fault = fault
        with caplog.at_level(logging.WARNING):
            for _ in range(3):
                found = harness.ask(QUERY, way=way)
                assert absent.id not in harness.ids(found)
                assert sorted(map(id, map(harness.node_of, found))) == sorted(
                    map(id, map(harness.node_of, harness.wrapped.lists[-1]))
                )
        assert harness.wrapped.fetches
        assert len(ours(caplog)) == 1
        harness.wrapped.fault = None
        assert absent.id in harness.ids(harness.ask(QUERY, way=way))

    @pytest.mark.parametrize(
        "fault", [StoreError("away"), StoreCorruptError("x", "y"), RuntimeError(), MemoryError()]
    )
    def test_p05_a_failing_store_is_one_warning_and_a_count(
        self, fault: Exception, way: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        store = ReinedStore()
        harness = self.build(store)
        warm(harness)
        before = harness.synapse.stats().failures
        with caplog.at_level(logging.WARNING):
            store.fault = fault
            self.is_untouched(harness, way)
            self.is_untouched(harness, way)
            assert harness.run_chain(QUERY, CORPUS[0].text + CORPUS[1].text, way=way)
            store.fault = None
        assert len(ours(caplog)) == 1
        assert harness.synapse.stats().failures >= before + 2

    @pytest.mark.parametrize("now", [RuntimeError(), float("nan"), float("inf"), 1e300])
    def test_p05_a_failing_clock_changes_nothing(
        self, now: Any, way: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        clock = Clock()
        harness = self.build("memory:", clock=clock)
        self.is_warm(harness, way)
        with caplog.at_level(logging.WARNING):
            clock.now = now
            self.is_untouched(harness, way)
            assert harness.run_chain(QUERY, CORPUS[0].text + CORPUS[1].text, way=way)
        assert len(ours(caplog)) == 1

    def test_p05_a_failing_listener_of_events_changes_nothing(
        self, way: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        def fail(_: object) -> None:
            raise ValueError("mine")

        harness = self.build("memory:", on_event=fail)
        absent = warm(harness)
        with caplog.at_level(logging.WARNING):
            found = harness.ids(harness.ask(QUERY, way=way))
        assert absent.id in found or "fetch" in self.cannot
        assert harness.synapse.stats().failures

    def test_p05_a_failure_of_the_wrapped_retriever_passes_on(self, way: str) -> None:
        harness = self.build("memory:")
        warm(harness)
        failure = harness.wrapped.forced = LookupError("theirs")
        with pytest.raises(LookupError) as raised:
            harness.ask(QUERY, way=way)
        assert raised.value is failure
        assert harness.synapse.stats().failures == 0

    @pytest.mark.parametrize("namespace", ["two words", "", 7, "x" * 300])
    def test_p05_a_namespace_that_is_none_changes_nothing(self, namespace: Any, way: str) -> None:
        harness = self.build("memory:")
        warm(harness)
        self.is_untouched(harness, way, namespace)

    @pytest.mark.parametrize("query", ["", " ", "\0", "\ud800 broken", "键" * 500, "x" * 50_000])
    def test_p05_no_query_fails_a_call(self, query: str, way: str) -> None:
        harness = self.build("memory:")
        warm(harness)
        harness.wrapped.forced = [harness.result(entry) for entry in CORPUS[:5]]
        assert len(harness.ask(query, way=way)) == 5

    @pytest.mark.parametrize("text", ["", " \n ", "x", "\ud800 odd", "键" * 900, "word " * 50_000])
    def test_p05_no_text_fails_a_run(self, text: str, way: str) -> None:
        harness = self.build("memory:")
        odd = Entry("odd", text, "a", "odd.md")
        harness.wrapped.forced = [harness.result(one) for one in (odd, CORPUS[0], CORPUS[1])]
        answer = CORPUS[0].text + text[:200] + CORPUS[1].text
        assert harness.run_chain(QUERY, answer, way=way) == answer
        harness.synapse.flush()
        assert harness.synapse.stats().failures == 0
        assert len(harness.ask(QUERY, way=way)) == 3

    def test_p05_a_store_warns_once_however_many_retrievers_share_it(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        path = tmp_path / "nowhere" / "synapse.db"
        with caplog.at_level(logging.WARNING):
            for _ in range(3):
                self.is_untouched(self.build(str(path)), "sync")
        assert len(ours(caplog)) == 1
