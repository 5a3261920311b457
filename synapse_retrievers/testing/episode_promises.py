"""What a store promises about episodes, postings and run keys."""

import numpy as np

from synapse_retrievers.stores.base import Store
from synapse_retrievers.testing.store_probes import (
    PERSONAL,
    episode,
    keeping,
    postings,
    seen,
)
from synapse_retrievers.types import Changes, Episode, Use


class EpisodePromises:
    """Episodes come back as they were given, counts are exact."""

    def test_postings_are_exact(self, store: Store) -> None:
        for number in range(1_200):
            terms = {"all": 0.6, f"mod{number % 7}": 0.8}
            store.update(PERSONAL, [], keeping(episode(f"q{number}", ["a"], **terms)))
        with store.reading([PERSONAL]) as reader:
            (found,) = postings(reader, ["mod3", "never", "all"])
            assert found.episodes == 1_200
            assert found.document_frequency == [171, 0, 1_200]
            assert [sum(place == n for place, *_ in found.rows) for n in range(3)] == [
                171,
                0,
                1_200,
            ]
            uses = reader.uses(np.array([episode for _, episode, _ in found.rows[:171]]))
        assert uses.query == [f"q{number}" for number in range(1_200) if number % 7 == 3]
        assert {weight for _, _, weight in found.rows[:171]} == {0.8}

    def test_a_repeated_query_takes_the_place_of_its_episode(self, store: Store) -> None:
        store.update(PERSONAL, [], keeping(episode("one", ["a"], 1.0, x=0.6, y=0.8)))
        store.update(PERSONAL, [], keeping(episode("two", ["a"], 2.0, x=1.0)))
        again = episode("one", ["b"], 3.0, y=0.6, z=0.8)
        store.update(PERSONAL, [], keeping(again))
        assert [found.query for found in store.episodes()] == ["one", "two"]
        assert next(store.episodes()) == again
        with store.reading([PERSONAL]) as reader:
            (found,) = postings(reader, ["x", "y", "z"])
        assert found.episodes == 2
        assert found.document_frequency == [1, 1, 1]
        assert [weight for *_, weight in found.rows] == [1.0, 0.6, 0.8]

    def test_an_episode_without_uses_is_removed(self, store: Store) -> None:
        store.update(PERSONAL, [], keeping(episode("one", ["a"], x=1.0)))
        store.update(PERSONAL, [], keeping(episode("one", [], x=1.0)))
        store.update(PERSONAL, [], keeping(episode("two", [], x=1.0)))
        assert list(store.episodes()) == []
        with store.reading([PERSONAL]) as reader:
            (found,) = postings(reader, ["x"])
        assert (found.episodes, found.document_frequency) == (0, [0])

    def test_the_cap_evicts_what_was_longest_unrenewed(self, store: Store) -> None:
        for query, at in (("old", 5.0), ("oldest", 1.0), ("tie", 5.0), ("new", 9.0)):
            store.update(PERSONAL, [], keeping(episode(query, ["a"], at, x=1.0)))
        store.update(PERSONAL, [], keeping(episode("newest", ["a"], 10.0, x=1.0), cap=3))
        assert [found.query for found in store.episodes()] == ["tie", "new", "newest"]
        with store.reading([PERSONAL]) as reader:
            (found,) = postings(reader, ["x"])
        assert (found.episodes, found.document_frequency) == (3, [3])

    def test_uses_keep_strength_and_chunk(self, store: Store) -> None:
        used = {"doc": Use(0.1 + 0.2, "chunk"), "other": Use(2.0)}
        kept = Episode(PERSONAL, "how", {"x": 1.0}, used, 7.5)
        store.update(PERSONAL, [], keeping(kept))
        assert list(store.episodes()) == [kept]
        with store.reading([PERSONAL]) as reader:
            (found,) = postings(reader, ["x"])
            uses = reader.uses(np.array([-1, found.rows[0][1]]))
            assert uses.query == ["", "how"]
            assert uses.renewed_at == [0.0, 7.5]
            assert uses.nodes[0] == []
            node, strength, chunk = np.array(uses.nodes[1]).T
            ids = [reader.ids(column.astype(np.int64)) for column in (node, chunk)]
            pairs = zip(ids[0], strength.tolist(), ids[1], strict=True)
            assert sorted(pairs) == [("doc", 0.1 + 0.2, "chunk"), ("other", 2.0, "")]

    def test_run_keys_are_remembered_until_they_are_old(self, store: Store) -> None:
        store.update(PERSONAL, [], lambda _: Changes(taught_at=5.0), run_key=b"\0one")
        assert seen(store, [], run_key=b"\0one").taught_at == 5.0
        assert seen(store, [], run_key=b"\0two").taught_at is None
        later = Changes(taught_at=9.0, forget_keys_before=6.0)
        store.update(PERSONAL, [], lambda _: later, run_key=b"\0two")
        assert seen(store, [], run_key=b"\0one").taught_at is None
        assert seen(store, [], run_key=b"\0two").taught_at == 9.0
