"""Short ways to teach a store and to look at all that it holds."""

from collections.abc import Sequence

import numpy as np

from synapse_retrievers.stores.base import Reader, Rule, Store
from synapse_retrievers.testing.strategies import (
    IDS,
    NAMESPACES,
    TERMS,
    teaching,
)
from synapse_retrievers.types import (
    Changes,
    Episode,
    Ints,
    Namespace,
    NodeId,
    Postings,
    Stored,
    Use,
)

PERSONAL = "personal"
DAY = 86_400.0


def episode(
    query: str = "how", used: Sequence[NodeId] = ("a", "b"), at: float = 1.0, **terms: float
) -> Episode:
    """An episode of namespace `personal`."""
    return Episode(PERSONAL, query, terms, {node: Use(0.6) for node in used}, at)


def teach(
    store: Store,
    nodes: Sequence[NodeId],
    at: float = 1.0,
    remembered: Episode | None = None,
    namespace: Namespace = PERSONAL,
) -> None:
    """One reinforcement of the nodes."""
    store.update(namespace, nodes, teaching(at, episode=remembered))


def keeping(remembered: Episode, cap: int | None = None) -> Rule:
    """A rule that stores this episode."""
    return lambda _: Changes(episode=remembered, episode_cap=cap)


def seen(
    store: Store, nodes: Sequence[NodeId], query: str | None = None, run_key: bytes | None = None
) -> Stored:
    """What a rule is handed."""
    found: list[Stored] = []

    def rule(stored: Stored) -> Changes:
        found.append(stored)
        return Changes()

    store.update(PERSONAL, nodes, rule, query=query, run_key=run_key)
    return found[0]


def view(store: Store, namespaces: Sequence[Namespace], ids: Sequence[NodeId]) -> object:
    """All that a reader tells about these nodes and the test's terms, by id."""
    with store.reading(namespaces) as reader:
        handles = reader.handles(ids)
        known = handles[handles > 0]
        degrees = dict(zip(reader.ids(known), reader.degrees(known, 0).tolist(), strict=True))
        counted = reader.counters(known)
        counters = {
            (place, key): repr(counted[place, column].item())
            for place in range(len(namespaces))
            for column, key in enumerate(degrees)
            if degrees[key] or counted[place, column]["used"]
        }
        return (
            _edges(reader, known),
            {key: degree for key, degree in degrees.items() if degree},
            counters,
            [_postings(reader, found) for found in reader.postings(TERMS)],
        )


def _edges(reader: Reader, handles: Ints) -> object:
    edges = reader.neighbors(handles)
    order = np.lexsort((edges.neighbor, edges.sender, edges.namespace))
    assert order.tolist() == list(range(len(order)))
    keys = reader.ids(handles)
    return sorted(
        zip(
            edges.namespace.tolist(),
            [keys[sender] for sender in edges.sender],
            reader.ids(edges.neighbor),
            edges.state.tolist(),
            strict=True,
        )
    )


def _postings(reader: Reader, found: Postings) -> object:
    assert np.lexsort((found.episode, found.term)).tolist() == list(range(len(found.term)))
    uses = reader.uses(found.episode)
    nodes, chunks = reader.ids(uses.node), reader.ids(uses.chunk)
    return (
        found.episodes,
        found.document_frequency.tolist(),
        list(zip(found.term.tolist(), uses.query, found.weight.tolist(), strict=True)),
        uses.renewed_at.tolist(),
        sorted(zip(uses.episode.tolist(), nodes, uses.strength, chunks, strict=True)),
    )


def state(store: Store) -> object:
    """All that a store holds, by id, to be compared with another's."""
    return (
        list(store.edges()),
        list(store.nodes()),
        list(store.episodes()),
        store.stats().namespaces,
        view(store, NAMESPACES, IDS),
        view(store, NAMESPACES[:1], IDS),
    )
