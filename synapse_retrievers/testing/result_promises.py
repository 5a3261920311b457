"""Promises about what comes back: P1 budget, P2 cold identity, P3 hands off."""

import copy
import itertools
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from synapse_retrievers.testing.broken import BROKEN, broken, read_only
from synapse_retrievers.testing.checks import Checks
from synapse_retrievers.testing.corpus import CORPUS, QUERY
from synapse_retrievers.testing.harness import absent_of, present_of, warm
from synapse_retrievers.testing.reins import ReinedStore

_OFF = "SYNAPSE_RETRIEVERS_DISABLED"
_ON_WORDS = ("1", "true", "TRUE", "Yes", "on", " oN ")
_OFF_WORDS = ("", "0", "false", "False", "no", "off", "2")


class ResultPromises(Checks):
    """P1 to P3, for any adapter."""

    # P1, the budget.

    def test_p01_as_many_results_as_were_returned(self, way: str) -> None:
        harness = self.build("memory:")
        for _ in range(3):
            warm(harness)
        for count in range(13):
            harness.wrapped.forced = [harness.result(entry) for entry in CORPUS[:count]]
            assert len(harness.ask(QUERY, way=way)) == count

    def test_p01_one_result_stays_and_with_two_one_may_change(self, way: str) -> None:
        harness = self.build("memory:")
        self.needs("fetch")
        absent = warm(harness)
        first, second = (harness.result(entry) for entry in present_of(harness)[:2])
        harness.wrapped.forced = [first]
        assert harness.ids(harness.ask(QUERY, way=way)) == [harness.id_of(first)]
        harness.wrapped.forced = [first, second]
        found = harness.ids(harness.ask(QUERY, way=way))
        assert sorted(map(str, found)) == sorted([str(harness.id_of(first)), absent.id])

    def test_p01_duplicates_are_kept_and_nothing_comes_in_twice(self, way: str) -> None:
        harness = self.build("memory:")
        chance = random.Random(1)  # noqa: S311 - seeded
        for entry in CORPUS[::3]:
            harness.synapse.reinforce([entry.id, CORPUS[1].id, CORPUS[2].id], query=QUERY)
        for _ in range(25):
            entries = chance.choices(CORPUS, k=chance.randint(2, 12))
            harness.wrapped.forced = [harness.result(entry) for entry in entries]
            before = Counter[object](entry.id for entry in entries)
            after = Counter[object](harness.ids(harness.ask(QUERY, way=way)))
            assert after.total() == before.total()
            assert all(after[node] <= max(1, before[node]) for node in after)
            assert len(after.keys() - before.keys()) <= min(2, before.total() // 2)

    def test_p01_the_first_result_is_never_displaced(self, way: str) -> None:
        harness = self.build("memory:")
        absent = absent_of(harness)
        for entry in absent[:4]:
            harness.synapse.reinforce([entry.id, absent[-1].id], query=QUERY, strength=2.0)
        first = present_of(harness)[0].id
        assert first in harness.ids(harness.ask(QUERY, way=way))

    # P2, cold is identity.

    def test_p02_nothing_learned_changes_nothing(self, way: str) -> None:
        harness = self.build("memory:")
        self.is_untouched(harness, way)

    def test_p02_nothing_learned_about_this_changes_nothing(self, way: str) -> None:
        harness = self.build("memory:", corpus=CORPUS[:10])
        harness.synapse.reinforce(["elsewhere", "nowhere"], query="zebra crossing paint")
        self.is_untouched(harness, way)

    def test_p02_an_empty_result_stays_empty(self, way: str) -> None:
        harness = self.build("memory:")
        warm(harness)
        harness.wrapped.forced = []
        assert harness.ask(QUERY, way=way) == []

    def test_p02_results_that_cannot_be_known_stay(self, way: str) -> None:
        harness = self.build("memory:")
        warm(harness)
        unknown = [harness.result(entry) for entry in reversed(CORPUS[:4])]
        harness.wrapped.forced = unknown
        harness.synapse.forget(namespace="personal")
        self.is_untouched(harness, way)

    @pytest.mark.parametrize("option", ["enabled", "inject"])
    def test_p02_switched_off_or_in_the_shadow_it_changes_nothing(
        self, option: str, way: str
    ) -> None:
        store = ReinedStore()
        self.is_warm(self.build(store), way)
        off: dict[str, Any] = {option: False}
        self.is_untouched(self.build(store, **off), way)

    def test_p02_the_environment_switches_it_off(
        self, monkeypatch: pytest.MonkeyPatch, way: str
    ) -> None:
        harness = self.build("memory:")
        absent = self.is_warm(harness, way)
        for word in _ON_WORDS:
            monkeypatch.setenv(_OFF, word)
            self.is_untouched(harness, way)
        for word in _OFF_WORDS:
            monkeypatch.setenv(_OFF, word)
            found = harness.ids(harness.ask(QUERY, way=way))
            assert absent.id in found or "fetch" in self.cannot, word

    @pytest.mark.parametrize("kind", BROKEN)
    def test_p02_a_store_that_cannot_be_opened_changes_nothing(
        self, kind: str, tmp_path: Path, way: str
    ) -> None:
        path = self.warm_file(tmp_path, way)
        with broken(kind, path):
            harness = self.build(str(path))
            self.is_untouched(harness, way, is_copied=kind != "locked")
        assert harness.ask(QUERY, way=way) is not None

    def test_p02_a_store_that_breaks_on_the_way_changes_nothing(
        self, tmp_path: Path, way: str
    ) -> None:
        path = self.warm_file(tmp_path, way)
        harness = self.build(str(path))
        self.is_warm(harness, way)
        path.write_bytes(b"\0" * path.stat().st_size)
        for suffix in ("-wal", "-shm"):
            Path(f"{path}{suffix}").unlink(missing_ok=True)
        harness.synapse.close()
        self.is_untouched(harness, way)

    def test_p02_a_read_only_store_fails_no_call(self, tmp_path: Path, way: str) -> None:
        path = self.warm_file(tmp_path / "kept", way)
        with read_only(path):
            harness = self.build(str(path))
            assert len(harness.ask(QUERY, way=way)) == len(harness.wrapped.lists[-1])

    def test_p02_past_the_time_limit_nothing_changes(self, way: str) -> None:
        store = ReinedStore()
        self.is_warm(self.build(store), way)
        # Each look at this clock is a second later.
        harness = self.build(store, monotonic=itertools.count().__next__)
        self.is_untouched(harness, way)
        assert harness.synapse.stats().failures

    def test_p02_without_a_namespace_nothing_changes_and_nothing_is_learned(self, way: str) -> None:
        store = ReinedStore()
        self.is_warm(self.build(store), way)
        harness = self.build(store, namespace=None)
        self.is_untouched(harness, way)
        before = list(harness.synapse.episodes())
        harness.run_chain(QUERY, CORPUS[0].text + CORPUS[1].text)
        assert list(harness.synapse.episodes()) == before

    # P3, hands off.

    def test_p03_documents_are_never_written(self, way: str) -> None:
        harness = self.build("memory:")
        absent = warm(harness)
        originals = harness.ask(QUERY, way=way)
        wrapped = harness.wrapped.lists[-1]
        before = copy.deepcopy(wrapped)
        harness.wrapped.forced = wrapped
        listed = list(wrapped)
        found = harness.ask(QUERY, way=way)
        assert wrapped == before
        assert all(one is other for one, other in zip(wrapped, listed, strict=True))
        assert [harness.id_of(one) for one in found] == [harness.id_of(one) for one in originals]
        by_id = {harness.id_of(one): one for one in wrapped}
        for one in found:
            if harness.id_of(one) in by_id:
                assert harness.node_of(one) is harness.node_of(by_id[harness.id_of(one)])
            else:
                assert harness.id_of(one) == absent.id
                assert harness.node_of(one) == harness.node_of(harness.stored(absent.id))

    def test_p03_a_whole_run_writes_no_document(self, way: str) -> None:
        harness = self.build("memory:")
        warm(harness)
        results = [harness.result(entry) for entry in present_of(harness)]
        before = copy.deepcopy(results)
        harness.wrapped.forced = results
        harness.run_chain(QUERY, CORPUS[0].text, way=way)
        harness.explain(QUERY)
        assert results == before
