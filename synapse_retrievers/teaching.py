"""The write path against a store: one lesson or one disappointment, one transaction."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from synapse_retrievers.learning.lesson import (
    Lesson,
    Query,
    is_repetition,
    remembered,
    taught,
)
from synapse_retrievers.learning.weaken import weaken, weaken_use
from synapse_retrievers.params import LearningParams
from synapse_retrievers.recall.explain import Carrier
from synapse_retrievers.stores.base import Store
from synapse_retrievers.types import Changes, Namespace, NodeId, Stored, Use


class _Replay(int):
    """The 0 that says why nothing was taught."""


REPLAY = _Replay(0)
"""What `teach` returns for a run that was taught before."""


def teach(store: Store, lesson: Lesson, now: float, params: LearningParams) -> int:
    """Write a lesson: edges, counters and episodes together or not at all.

    Returns:
        How many pairs were taught; 0 for a repetition, `REPLAY` if the run key was taught before.

    Raises:
        StoreError: Nothing was written.
    """
    # A query of the run that none of the used nodes belongs to remembers nothing.
    lesson = replace(lesson, episodes=tuple(one for one in lesson.episodes if one[1]))
    first = lesson.episodes[0][0].key if lesson.episodes else None
    with store.batch():
        others_repeat = all(
            _repeats(store, lesson.namespace, query, used, now, params)
            for query, used in lesson.episodes[1:]
        )

        pairs: list[int] = []

        def rule(stored: Stored) -> Changes:
            repeats = others_repeat and (
                bool(lesson.episodes)
                and is_repetition(stored.episode, lesson.episodes[0][1], now, params)
            )
            changes = taught(stored, lesson, is_repeated=repeats, now=now, params=params)
            pairs.append(_count(stored, changes))
            return changes

        nodes = tuple(lesson.used)
        changes = store.update(lesson.namespace, nodes, rule, query=first, run_key=lesson.run_key)
        if changes.edges is None and changes.episode is None:
            return REPLAY
        for query, used in lesson.episodes[1:]:
            _remember(store, lesson.namespace, query, used, now, params)
    return pairs[-1]


def _count(stored: Stored, changes: Changes) -> int:
    """How many edges were activated once more."""
    if changes.edges is None:
        return 0
    return int(np.count_nonzero(changes.edges["activations"] != stored.edges["activations"]))


def run_key(key: str) -> bytes:
    """What a run is known by when it is replayed: 16 bytes of its key."""
    return hashlib.sha256(key.encode("utf-8", "replace")).digest()[:16]


def weaken_all(  # noqa: PLR0913 - who, what, how much and when
    store: Store,
    *,
    namespace: Namespace,
    owed: Mapping[NodeId, float],
    carriers: Mapping[NodeId, object],
    queries: Sequence[str],
    now: float,
    params: LearningParams,
) -> int:
    """Take what is owed for each node from what carried it in, or from the queries' episodes.

    Returns:
        How many of them were there to be weakened.

    Raises:
        StoreError: Nothing was written.
    """
    count = 0
    with store.batch():
        for node, penalty in owed.items():
            carrier = carriers.get(node)
            if isinstance(carrier, Carrier):
                count += _weaken_carrier(store, namespace, node, carrier, penalty, now, params)
            else:
                for query in queries:
                    count += _weaken_episode(store, namespace, query, node, penalty)
    return count


def _weaken_carrier(  # noqa: PLR0913, PLR0917 - who, what, how much and when
    store: Store,
    namespace: Namespace,
    node: NodeId,
    carrier: Carrier,
    penalty: float,
    now: float,
    params: LearningParams,
) -> int:
    """1 if it was there; what was learned in another namespace is left alone, as by any write."""
    if carrier.namespace != namespace:
        return 0
    if carrier.kind == "episode":
        return _weaken_episode(store, namespace, carrier.source, node, penalty)
    taken = []

    def rule(stored: Stored) -> Changes:
        taken.append(bool(len(stored.edges)) and int(stored.edges["activations"][0]) > 0)
        return Changes(edges=weaken(stored.edges, penalty, now, namespace, params))

    store.update(namespace, (carrier.source, node), rule)
    return int(taken[-1])


def _weaken_episode(
    store: Store, namespace: Namespace, query: str, node: NodeId, penalty: float
) -> int:
    """1 if the query's episode has an entry for the node."""
    found: list[bool] = []

    def rule(stored: Stored) -> Changes:
        found.append(stored.episode is not None and node in stored.episode.used)
        if stored.episode is None or not found[-1]:
            return Changes()
        return Changes(episode=weaken_use(stored.episode, node, penalty))

    store.update(namespace, (), rule, query=query)
    return int(found[-1])


def _repeats(
    store: Store,
    namespace: Namespace,
    query: Query,
    used: Mapping[NodeId, Use],
    now: float,
    params: LearningParams,
) -> bool:
    known: list[bool] = []

    def rule(stored: Stored) -> Changes:
        known.append(is_repetition(stored.episode, used, now, params))
        return Changes()

    store.update(namespace, (), rule, query=query.key)
    return known[-1]


def _remember(
    store: Store,
    namespace: Namespace,
    query: Query,
    used: Mapping[NodeId, Use],
    now: float,
    params: LearningParams,
) -> None:
    store.update(
        namespace,
        (),
        lambda stored: remembered(stored, query, used, now, params),
        query=query.key,
    )
