"""What a store promises about forgetting and pruning."""

import numpy as np
import pytest

from synapse_retrievers.errors import ParamError
from synapse_retrievers.stores.base import Store
from synapse_retrievers.testing.store_probes import (
    DAY,
    PERSONAL,
    episode,
    keeping,
    postings,
    seen,
    teach,
)
from synapse_retrievers.testing.strategies import (
    is_weak,
)
from synapse_retrievers.types import Changes, Episode, Namespace, Removed, Stored, Use


class ForgettingPromises:
    """What is forgotten leaves no trace, and nothing else goes."""

    def test_forget_wants_a_condition(self, store: Store) -> None:
        with pytest.raises(ParamError):
            store.forget()

    def test_forgotten_ids_leave_no_trace(self, store: Store) -> None:
        teach(store, ["a", "b", "c"], remembered=episode(used=["a", "b"], x=1.0))
        chunked = Episode(PERSONAL, "why", {"y": 1.0}, {"c": Use(1.0, "a")}, 1.0)
        store.update(PERSONAL, [], keeping(chunked))
        store.update(PERSONAL, [], keeping(episode("only", ["a"], x=1.0)))
        teach(store, ["a", "c"], namespace="shared")
        assert store.forget(ids=["a", "never seen"]) == Removed(edges=3, episodes=1, nodes=2)
        assert [edge.pair for edge in store.edges()] == [("b", "c")]
        assert [(found.query, dict(found.used)) for found in store.episodes()] == [
            ("how", {"b": Use(0.6)}),
            ("why", {"c": Use(1.0)}),
        ]
        with store.reading([PERSONAL]) as reader:
            assert reader.handles(["a"]).tolist() == [-1]
            assert postings(reader, ["x"])[0].document_frequency == [1]

    def test_ids_are_forgotten_in_the_given_namespace_only(self, store: Store) -> None:
        teach(store, ["a", "b"])
        teach(store, ["a", "b"], namespace="shared")
        assert store.forget(ids=["a"], namespace="shared") == Removed(edges=1, nodes=1)
        assert [edge.namespace for edge in store.edges()] == [PERSONAL]
        with store.reading([PERSONAL]) as reader:
            assert (reader.handles(["a", "b"]) > 0).all()

    def test_a_forgotten_namespace_is_as_never_seen(self, store: Store) -> None:
        store.claim(PERSONAL, "id", "docs")
        teach(store, ["a", "b"], remembered=episode(x=1.0))
        store.update(PERSONAL, [], lambda _: Changes(taught_at=1.0), run_key=b"k")
        teach(store, ["c", "d"], namespace="shared")
        assert store.forget(namespace=PERSONAL) == Removed(edges=1, episodes=1, nodes=2)
        assert list(store.stats().namespaces) == ["shared"]
        assert seen(store, ["a", "b"], query="how", run_key=b"k").taught_at is None
        with store.reading([PERSONAL]) as reader:
            assert reader.handles(["a", "c"]).tolist()[0] == -1
        teach(store, ["a", "b"], remembered=episode("new", y=1.0))
        with store.reading([PERSONAL]) as reader:
            (found,) = postings(reader, ["x", "y"])
        assert (found.episodes, found.document_frequency) == (1, [0, 1])

    def test_forget_before_takes_what_is_older(self, store: Store) -> None:
        teach(store, ["a", "b"], at=1.0, remembered=episode("old", ["a"], 1.0, x=1.0))
        teach(store, ["b", "c"], at=5.0, remembered=episode("new", ["a"], 5.0, x=1.0))
        assert store.forget(before=5.0) == Removed(edges=1, episodes=1, nodes=1)
        assert [edge.pair for edge in store.edges()] == [("b", "c")]
        assert [(node.id, node.used) for node in store.nodes()] == [("b", 2.0), ("c", 1.0)]
        assert [found.query for found in store.episodes()] == ["new"]

    def test_forget_ids_before_takes_only_their_older_part(self, store: Store) -> None:
        teach(store, ["a", "b"], at=1.0, remembered=episode("old", ["a", "b"], 1.0))
        teach(store, ["b", "c"], at=1.0)
        teach(store, ["a", "d"], at=5.0, remembered=episode("new", ["a"], 5.0))
        assert store.forget(ids=["a"], before=5.0) == Removed(edges=1)
        assert [edge.pair for edge in store.edges()] == [("a", "d"), ("b", "c")]
        assert [list(found.used) for found in store.episodes()] == [["b"], ["a"]]

    def test_forget_query_takes_that_episode(self, store: Store) -> None:
        teach(store, ["a", "b"], remembered=episode("one", x=1.0))
        teach(store, ["a", "b"], remembered=episode("two", x=1.0))
        assert store.forget(query="one") == Removed(episodes=1)
        assert [found.query for found in store.episodes()] == ["two"]
        assert len(list(store.edges())) == 1

    def test_prune_takes_edges_that_are_prunable(self, store: Store) -> None:
        teach(store, ["a", "b", "c"])
        teach(store, ["a", "b"])
        teach(store, ["x", "y"], namespace="shared")
        before = {edge.pair: edge for edge in store.edges()}
        assert store.prune(is_weak, 0.0) == Removed(edges=3)
        assert list(store.edges()) == [before["a", "b"]]
        assert len(list(store.nodes())) == 5

    def test_prune_takes_what_is_long_gone(self, store: Store) -> None:
        teach(store, ["a", "b"], remembered=episode(used=["a"], x=1.0))
        teach(store, ["a", "b"])
        store.mark_gone(PERSONAL, ["a"], DAY)
        assert store.prune(is_weak, DAY) == Removed()
        assert store.prune(is_weak, 2 * DAY) == Removed(edges=1, episodes=1, nodes=1)
        assert [node.id for node in store.nodes()] == ["b"]
        with store.reading([PERSONAL]) as reader:
            assert reader.handles(["a"]).tolist() == [-1]

    def test_prune_takes_counters_that_count_nothing(self, store: Store) -> None:
        def rule(stored: Stored) -> Changes:
            edges = stored.edges.copy()
            edges["activations"] = 1
            return Changes(edges=edges)

        store.update(PERSONAL, ["a", "b"], rule)
        assert store.prune(is_weak, 0.0) == Removed(edges=1, nodes=2)
        assert list(store.nodes()) == []

    def test_a_failing_predicate_prunes_nothing(self, store: Store) -> None:
        teach(store, ["a", "b"])

        def failing(_: Namespace, __: object) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
            raise ValueError("mine")

        with pytest.raises(ValueError, match="mine"):
            store.prune(failing, 0.0)
        assert len(list(store.edges())) == 1
