"""The write path against a store: one lesson or one disappointment, one transaction."""

import hashlib
from collections.abc import Collection, Mapping
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


def weaken_carrier(  # noqa: PLR0913 - who, what, how much and when
    store: Store,
    namespace: Namespace,
    node: NodeId,
    carrier: Carrier,
    penalty: float,
    *,
    now: float,
    params: LearningParams,
) -> int:
    """Take `penalty` from what carried the node in; 1 if it was there to be weakened.

    What was learned in another namespace is left alone: writes go to the active one.
    """
    if carrier.namespace != namespace:
        return 0
    if carrier.kind == "episode":
        return weaken_episode(store, namespace, carrier.source, (node,), penalty)
    taken = []

    def rule(stored: Stored) -> Changes:
        taken.append(bool(len(stored.edges)) and int(stored.edges["activations"][0]) > 0)
        return Changes(edges=weaken(stored.edges, penalty, now, namespace, params))

    store.update(namespace, (carrier.source, node), rule)
    return int(taken[-1])


def weaken_episode(
    store: Store, namespace: Namespace, query: str, nodes: Collection[NodeId], penalty: float
) -> int:
    """Take `penalty` from the nodes' entries in the query's episode; how many there were."""
    found: list[NodeId] = []

    def rule(stored: Stored) -> Changes:
        episode = stored.episode
        if episode is None:
            return Changes()
        found.extend(node for node in nodes if node in episode.used)
        for node in found:
            episode = weaken_use(episode, node, penalty)
        return Changes(episode=episode) if found else Changes()

    store.update(namespace, (), rule, query=query)
    return len(found)


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
