"""What a store promises about updates and batches."""

import math

import numpy as np
import pytest

from synapse_retrievers.stores.base import Store
from synapse_retrievers.testing.store_probes import (
    PERSONAL,
    degrees,
    episode,
    postings,
    seen,
    state,
    teach,
)
from synapse_retrievers.types import (
    Changes,
    Stored,
)


class UpdatePromises:
    """Updates are whole, exact and their own."""

    def test_update_hands_the_rule_what_is_stored(self, store: Store) -> None:
        blank = seen(store, ["b", "a", "b"])
        assert blank.nodes == ("a", "b")
        assert blank.pairs.tolist() == [[0, 1]]
        assert blank.edges["activations"].tolist() == [0]
        assert blank.counters["used"].tolist() == [0.0, 0.0]
        assert np.isnan(blank.counters["gone_at"]).all()
        assert blank.episode is None
        assert blank.taught_at is None
        teach(store, ["a", "b", "c"], at=math.pi, remembered=episode(x=0.6, y=0.8))
        stored = seen(store, ["c", "d", "a"], query="how")
        assert stored.nodes == ("a", "c", "d")
        assert stored.pairs.tolist() == [[0, 1], [0, 2], [1, 2]]
        assert stored.edges.tolist() == [
            (1, 0.3, 0.5, math.pi, math.pi),
            (0, 0.0, 0.0, 0.0, 0.0),
            (0, 0.0, 0.0, 0.0, 0.0),
        ]
        assert stored.counters["used"].tolist() == [1.0, 1.0, 0.0]
        assert stored.episode == episode(x=0.6, y=0.8)

    def test_update_returns_what_the_rule_returned(self, store: Store) -> None:
        changes = Changes(taught_at=1.0)
        assert store.update(PERSONAL, [], lambda _: changes, run_key=b"k") is changes

    def test_a_rule_that_returns_nothing_creates_nothing(self, store: Store) -> None:
        seen(store, ["a", "b"], query="how", run_key=b"k")
        assert store.stats().namespaces == {}
        with store.reading([PERSONAL]) as reader:
            assert reader.handles(["a"]).tolist() == [-1]

    def test_a_failing_rule_changes_nothing(self, store: Store) -> None:
        teach(store, ["a", "b"], remembered=episode(x=1.0))
        before = state(store)

        def failing(_: Stored) -> Changes:
            raise ValueError("mine")

        with pytest.raises(ValueError, match=r"^mine$"):
            store.update(PERSONAL, ["a", "b", "c"], failing)
        assert state(store) == before

    def test_both_directions_agree(self, store: Store) -> None:
        teach(store, ["a", "b", "c"], at=1.0)
        teach(store, ["c", "b", "d"], at=2.0)
        with store.reading([PERSONAL]) as reader:
            ids = ["a", "b", "c", "d"]
            edges = reader.neighbors(reader.handles(ids))
            found = {
                (ids[sender], neighbor): edge
                for sender, neighbor, edge in zip(
                    edges.sender, reader.ids(edges.neighbor), edges.state.tolist(), strict=True
                )
            }
        assert len(found) == 10
        assert all(found[b, a] == edge for (a, b), edge in found.items())
        assert found["b", "c"] == (2, 0.6, 1.0, 2.0, 1.0)

    def test_numbers_come_back_exactly(self, store: Store) -> None:
        numbers = (4_294_967_295, 0.1 + 0.2, 5e-324, 1.7e308, 1_785_000_000.123_456_7)

        def rule(stored: Stored) -> Changes:
            edges = stored.edges.copy()
            edges[0] = numbers
            return Changes(edges=edges)

        store.update(PERSONAL, ["a", "b"], rule)
        assert seen(store, ["a", "b"]).edges[0].item() == numbers

    def test_an_edge_without_activations_is_not_stored(self, store: Store) -> None:
        teach(store, ["a", "b", "c"])

        def rule(stored: Stored) -> Changes:
            edges = stored.edges.copy()
            edges["activations"][0] = 0
            return Changes(edges=edges)

        store.update(PERSONAL, ["a", "b", "c"], rule)
        assert [edge.pair for edge in store.edges()] == [("a", "c"), ("b", "c")]
        assert [node.degree for node in store.nodes()] == [1, 1, 2]

    def test_namespaces_never_mix(self, store: Store) -> None:
        teach(store, ["a", "b"], remembered=episode(x=1.0))
        teach(store, ["a", "c"], namespace="shared")
        with store.reading(["shared", "nowhere"]) as reader:
            handles = reader.handles(["a"])
            edges = reader.neighbors(handles)
            assert reader.ids(edges.neighbor) == ["c"]
            assert edges.namespace.tolist() == [0]
            assert degrees(reader, ["a"]) == [1]
            (found,) = postings(reader, ["x"])
            assert (found.episodes, found.rows) == (0, [])
        assert [edge.namespace for edge in store.edges("shared")] == ["shared"]
        assert list(store.episodes("shared")) == []

    def test_batch_is_all_or_nothing(self, store: Store) -> None:
        with store.batch():
            teach(store, ["a", "b"])
            with store.batch():
                teach(store, ["a", "b"])
            assert seen(store, ["a", "b"]).edges["activations"].tolist() == [2]
        before = state(store)
        with pytest.raises(KeyError), store.batch():  # noqa: PT012 - the batch is the statement
            teach(store, ["a", "c"], remembered=episode(x=1.0))
            raise KeyError
        assert state(store) == before

    def test_a_batch_reads_its_own_writes(self, store: Store) -> None:
        with store.batch():
            teach(store, ["a", "b"])
            with store.reading([PERSONAL]) as reader:
                assert degrees(reader, ["a"]) == [1]
            assert len(list(store.edges())) == 1
