"""Short ways to teach a store and to look at all that it holds."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True)
class Standing:
    """Where terms stand in one namespace: rows (place of the term, episode, weight) in order."""

    episodes: int
    document_frequency: list[int]
    rows: list[tuple[int, int, float]]


def postings(reader: Reader, terms: Sequence[str]) -> list[Standing]:
    """One value a namespace of the view; `weights` is held against it."""
    known = reader.terms(terms)
    found = []
    for space in range(len(reader.namespaces)):
        places = [place for place, handle in enumerate(known.handle[space]) if handle >= 0]
        handles = [known.handle[space][place] for place in places]
        standing = reader.postings(handles)
        columns = (standing.term.tolist(), standing.episode.tolist(), standing.weight.tolist())
        rows = [
            (places[term], episode, weight) for term, episode, weight in zip(*columns, strict=True)
        ]
        assert rows == sorted(rows)
        episodes = sorted({episode for _, episode, _ in rows})
        table = reader.weights(np.array([-1, *episodes]), handles)
        assert not table[0].any()
        assert {(places[t], episodes[e]): w for (e, t), w in np.ndenumerate(table[1:]) if w} == {
            (place, episode): weight for place, episode, weight in rows if weight
        }
        found.append(Standing(known.episodes[space], known.document_frequency[space], rows))
    return found


def degrees(reader: Reader, ids: Sequence[NodeId]) -> list[int]:
    """How many distinct neighbors each has over all namespaces of the view."""
    handles = reader.handles(ids)
    edges = reader.neighbors(handles)
    counted = Counter(zip(edges.namespace.tolist(), edges.sender.tolist(), strict=True))
    for headers in (edges.headers, reader.headers(handles)):
        kept = {key: degree for key, degree in np.ndenumerate(headers.degree) if degree}
        assert kept == counted
    distinct = set(zip(edges.sender.tolist(), edges.neighbor.tolist(), strict=True))
    return [sum(sender == place for sender, _ in distinct) for place in range(len(ids))]


def view(store: Store, namespaces: Sequence[Namespace], ids: Sequence[NodeId]) -> object:
    """All that a reader tells about these nodes and the test's terms, by id."""
    with store.reading(namespaces) as reader:
        handles = reader.handles(ids)
        known = handles[handles > 0]
        keys = reader.ids(known)
        counted = degrees(reader, keys)
        headers = reader.headers(known)
        counters = {
            (name, key): repr(
                [column[row, place].item() for column in (headers.used, headers.used_at)]
                + [headers.gone_at[row, place].item()]
            )
            for row, name in enumerate(reader.namespaces)
            for place, key in enumerate(keys)
            if counted[place] or headers.used[row, place]
        }
        return (
            reader.namespaces,
            _edges(reader, known),
            {key: degree for key, degree in zip(keys, counted, strict=True) if degree},
            counters,
            [_postings(reader, found) for found in postings(reader, TERMS)],
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


def _postings(reader: Reader, found: Standing) -> object:
    uses = reader.uses(np.array([episode for _, episode, _ in found.rows], np.int64))
    used = [
        sorted((*reader.ids(np.array([node, chunk])), strength) for node, strength, chunk in nodes)
        for nodes in uses.nodes
    ]
    rows = [
        (place, query, weight)
        for (place, _, weight), query in zip(found.rows, uses.query, strict=True)
    ]
    return found.episodes, found.document_frequency, rows, uses.renewed_at, used


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
