"""What a store promises about views and about the nodes in them."""

import threading

import numpy as np

from synapse_retrievers.stores.base import Store
from synapse_retrievers.testing.store_probes import (
    PERSONAL,
    degrees,
    teach,
)
from synapse_retrievers.testing.strategies import (
    ODD_IDS,
)
from synapse_retrievers.types import Changes, Episode, Stored, Terms, Use, Uses


class ViewPromises:
    """Views are consistent, and empty where nothing is."""

    def test_a_view_stays_as_it_was_opened(self, store: Store) -> None:
        teach(store, ["a", "b"])
        with store.reading([PERSONAL]) as reader:
            writer = threading.Thread(target=teach, args=(store, ["a", "c"]))
            writer.start()
            writer.join()
            teach(store, ["a", "d"])
            assert degrees(reader, ["a"]) == [1]
        assert len(list(store.edges())) == 3

    def test_unknown_handles_are_empty(self, store: Store) -> None:
        teach(store, ["a", "b"])
        nobody = np.array([-1])
        with store.reading([PERSONAL, "nowhere"]) as reader:
            assert reader.handles(["a", "z"])[1] == -1
            assert reader.ids(nobody) == [""]
            assert reader.neighbors(nobody).sender.size == 0
            assert reader.namespaces == (PERSONAL,)
            headers = reader.headers(nobody)
            assert (headers.degree.tolist(), headers.used.tolist()) == ([[0]], [[0.0]])
            assert np.isnan(headers.gone_at).all()
            assert reader.uses(nobody) == Uses([""], [0.0], [[]])
            assert reader.terms(["x"]).handle == [[-1]]
            assert reader.postings([-1]).episode.size == 0
            assert reader.weights(nobody, [-1]).tolist() == [[0.0]]

    def test_a_view_of_nothing_is_empty(self, store: Store) -> None:
        none = np.zeros(0, dtype=np.int64)
        with store.reading([]) as reader:
            assert reader.namespaces == ()
            assert reader.handles(["a"]).tolist() == [-1]
            assert reader.terms(["x"]) == Terms([], [], [])
            assert reader.neighbors(none).sender.size == 0
        teach(store, ["a", "b"])
        with store.reading([PERSONAL]) as reader:
            assert reader.handles([]).size == 0
            assert reader.ids(none) == []
            assert reader.headers(none).degree.shape == (1, 0)
            assert reader.terms([]) == Terms([0], [[]], [[]])
            assert reader.postings([]).term.size == 0
            assert reader.weights(none, []).shape == (0, 0)
            assert reader.uses(none) == Uses()

    def test_headers_stand_by_namespace_and_node(self, store: Store) -> None:
        teach(store, ["a", "b"], at=3.0)
        teach(store, ["a", "c"], at=4.0, namespace="shared")
        store.mark_gone("shared", ["a"], 9.0)
        with store.reading(["shared", "nowhere", PERSONAL]) as reader:
            assert reader.namespaces == ("shared", PERSONAL)
            headers = reader.headers(reader.handles(["b", "a"]))
        assert headers.degree.tolist() == [[0, 1], [1, 1]]
        assert headers.used.tolist() == [[0.0, 1.0], [1.0, 1.0]]
        assert headers.used_at.tolist() == [[0.0, 4.0], [3.0, 3.0]]
        assert np.isnan(headers.gone_at).tolist() == [[True, False], [True, True]]


class NodePromises:
    """Any text is an id, any degree is whole, marks and claims stay."""

    hub_degree = 3_000

    def test_odd_ids_come_back_as_they_were(self, store: Store) -> None:
        for query, start in zip(ODD_IDS, range(0, len(ODD_IDS), 3), strict=False):
            nodes = ODD_IDS[start : start + 3]
            kept = Episode(PERSONAL, query, {query: 1.0}, {nodes[0]: Use(1.0, nodes[-1])}, 1.0)
            teach(store, nodes, remembered=kept)
        assert [node.id for node in store.nodes()] == sorted(ODD_IDS)
        with store.reading([PERSONAL]) as reader:
            handles = reader.handles(ODD_IDS)
            assert reader.ids(handles) == list(ODD_IDS)
            assert len(set(handles.tolist())) == len(ODD_IDS)
            assert reader.terms([ODD_IDS[0]]).document_frequency == [[1]]
        assert [found.query for found in store.episodes()] == list(ODD_IDS[:4])

    def test_a_hub_of_any_degree_is_whole(self, store: Store) -> None:
        count = self.hub_degree
        names = [f"spoke{number * 7919 % count:04}" for number in range(count)]

        def rule(stored: Stored) -> Changes:
            edges = stored.edges.copy()
            is_hub = stored.pairs[:, 0] == stored.nodes.index("hub")
            edges["activations"] += is_hub.astype(np.uint32)
            edges["activated_at"] = stored.pairs[:, 1]
            return Changes(edges=edges)

        for start in range(0, count, 100):
            store.update(PERSONAL, ["hub", *names[start : start + 100]], rule)
        store.update(PERSONAL, ["hub", *names[::97]], rule)
        with store.reading([PERSONAL]) as reader:
            handles = reader.handles(["hub"])
            edges = reader.neighbors(handles)
            assert degrees(reader, ["hub"]) == [count]
            assert (np.diff(edges.neighbor) > 0).all()
            counts = dict(
                zip(reader.ids(edges.neighbor), edges.state["activations"].tolist(), strict=True)
            )
        twice = set(names[::97])
        assert counts == {name: 1 + (name in twice) for name in names}
        assert store.forget(ids=names[:-10]).edges == count - 10
        assert [edge.pair[1] for edge in store.edges()] == sorted(names[-10:])
        assert [node.degree for node in store.nodes()] == [10] + [1] * 10

    def test_marked_gone_keeps_its_first_time_until_it_is_back(self, store: Store) -> None:
        teach(store, ["a", "b"])
        store.mark_gone(PERSONAL, ["a", "never seen"], 5.0)
        store.mark_gone(PERSONAL, ["a", "b"], 6.0)
        assert [node.gone_at for node in store.nodes()] == [5.0, 6.0]
        store.mark_gone(PERSONAL, ["a", "never seen"], None)
        store.mark_gone("nowhere", ["a"], 1.0)
        assert [(node.id, node.gone_at) for node in store.nodes()] == [("a", None), ("b", 6.0)]
        assert list(store.stats().namespaces) == [PERSONAL]

    def test_the_first_claim_of_a_namespace_stays(self, store: Store) -> None:
        assert store.claim(PERSONAL, "source", "docs") == ("source", "docs")
        assert store.claim(PERSONAL, "id", "other") == ("source", "docs")
        assert store.claim(PERSONAL, "id", "other", 0.0) == ("source", "docs")
        assert store.stats().namespaces[PERSONAL].collection == "docs"

    def test_the_secret_is_made_once(self, store: Store) -> None:
        secret = store.secret()
        assert len(secret) == 32
        assert store.secret() == secret
