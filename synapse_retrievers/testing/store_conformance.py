"""The promises of a store; a backend joins by a `store` fixture."""

import copy
import threading
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from synapse_retrievers.stores.base import Store
from synapse_retrievers.stores.memory import MemoryStore
from synapse_retrievers.testing.episode_promises import EpisodePromises
from synapse_retrievers.testing.forgetting_promises import ForgettingPromises
from synapse_retrievers.testing.store_probes import (
    PERSONAL,
    episode,
    postings,
    seen,
    state,
    teach,
)
from synapse_retrievers.testing.strategies import (
    FailedBatch,
    Forget,
    MarkGone,
    Prune,
    Teach,
    operations,
)
from synapse_retrievers.testing.update_promises import UpdatePromises
from synapse_retrievers.testing.view_promises import NodePromises, ViewPromises


class StoreConformance(
    UpdatePromises, ViewPromises, NodePromises, EpisodePromises, ForgettingPromises
):
    """What every backend promises; override `store` with a new, empty one."""

    @pytest.fixture
    def store(self) -> Iterator[Store]:
        """A new, empty store, closed after the test."""
        raise NotImplementedError

    def test_threads_lose_nothing(self, store: Store) -> None:
        def work(number: int) -> None:
            for turn in range(50):
                kept = episode(f"{number}/{turn}", ["a"], x=1.0)
                teach(store, ["a", "b", f"own{number}"], remembered=kept)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        stored = seen(store, ["a", "b"])
        assert stored.edges["activations"].tolist() == [400]
        assert stored.counters["used"].tolist() == [400.0, 400.0]
        with store.reading([PERSONAL]) as reader:
            (found,) = postings(reader, ["x"])
        assert (found.episodes, found.document_frequency) == (400, [400])

    def test_a_copy_is_the_same_store(self, store: Store) -> None:
        assert copy.copy(store) is store
        assert copy.deepcopy({"store": store})["store"] is store

    def test_a_closed_store_opens_again(self, store: Store) -> None:
        teach(store, ["a", "b"])
        store.close()
        store.close()
        assert len(list(store.edges())) == 1
        teach(store, ["a", "b"])
        assert seen(store, ["a", "b"]).edges["activations"].tolist() == [2]

    @settings(
        max_examples=60,
        deadline=None,
        suppress_health_check=[
            HealthCheck.function_scoped_fixture,
            HealthCheck.differing_executors,
            HealthCheck.too_slow,
        ],
    )
    @given(
        steps=st.lists(
            operations,
            max_size=12,
        )
    )
    def test_any_history_leaves_what_the_oracle_holds(
        self, store: Store, steps: list[Teach | Forget | MarkGone | Prune | FailedBatch]
    ) -> None:
        for namespace in store.stats().namespaces:
            store.forget(namespace=namespace)
        oracle = MemoryStore()
        for step in steps:
            assert step.apply(store) == step.apply(oracle)
        assert state(store) == state(oracle)
