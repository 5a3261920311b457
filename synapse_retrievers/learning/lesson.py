"""What one evidence event of a run teaches, as a rule that a store applies."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from synapse_retrievers.learning.reinforce import count_uses, reinforce
from synapse_retrievers.params import DAY, LearningParams
from synapse_retrievers.types import (
    Bools,
    Changes,
    Episode,
    Floats,
    Namespace,
    NodeId,
    Stored,
    Use,
)

KEYS_KEPT = 30 * DAY
"""Seconds that a run key is remembered."""


@dataclass(frozen=True, slots=True)
class Query:
    """A query as an episode keeps it: its text or digest, and the weights of its terms."""

    key: str
    terms: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Lesson:
    """What has become known of one run in one namespace.

    Attributes:
        namespace: Where it is learned.
        used: Every node that the run is known to have used -> its strongest use.
        new: Those of them that the run had not taught before: each is counted once, and paired
            with all the others.
        episodes: Query -> the nodes of `used` that are credited to it.
        run_key: Makes a replayed run teach nothing; None: nothing to compare with.
    """

    namespace: Namespace
    used: Mapping[NodeId, Use]
    new: frozenset[NodeId]
    episodes: tuple[tuple[Query, Mapping[NodeId, Use]], ...] = ()
    run_key: bytes | None = None


def is_repetition(
    episode: Episode | None, used: Mapping[NodeId, Use], now: float, params: LearningParams
) -> bool:
    """Whether the same use of the same query was learned a short while ago.

    A growing run is repeated step by step, so a part of the known nodes is a repetition too.
    """
    return (
        episode is not None
        and bool(used)
        and used.keys() <= episode.used.keys()
        and _is_fresh(episode.renewed_at, now, params.repeat_after)
    )


def remember(
    episode: Episode | None,
    namespace: Namespace,
    query: Query,
    used: Mapping[NodeId, Use],
    now: float,
) -> Episode:
    """The query's episode after one more use: nodes united, the higher strength stays.

    >>> one = remember(None, "personal", Query("q", {"q": 1.0}), {"a": Use(0.4)}, 1.0)
    >>> remember(one, "personal", Query("q", {"q": 1.0}), {"a": Use(1.0), "b": Use(0.4)}, 2.0).used
    {'a': Use(strength=1.0, chunk=None), 'b': Use(strength=0.4, chunk=None)}
    """
    united = dict(episode.used) if episode else {}
    for node, use in used.items():
        known = united.get(node)
        if known is None or use.strength > known.strength:
            united[node] = Use(use.strength, use.chunk or (known.chunk if known else None))
        elif known.chunk is None and use.chunk is not None:
            united[node] = Use(known.strength, use.chunk)
    terms = episode.terms if episode else query.terms
    return Episode(namespace, query.key, terms, united, now)


def taught(
    stored: Stored, lesson: Lesson, *, is_repeated: bool, now: float, params: LearningParams
) -> Changes:
    """What a store shall hold after the lesson (design: reinforcement, episodes, once).

    The first of the lesson's queries is the one whose episode `stored` carries; the others are
    remembered one by one with `remembered`.

    Args:
        stored: The nodes of `lesson.used`, the first query's episode, the run key.
        lesson: What was used.
        is_repeated: All of its queries were learned with these nodes a short while ago: only
            the episodes' time is renewed, and pairs are taught that were not together then.
        now: Unix seconds.
        params: The constants.

    Returns:
        The changes; empty when the run key was taught before.
    """
    if lesson.run_key is not None and _is_fresh(stored.taught_at, now, KEYS_KEPT):
        return Changes()
    episode = None
    if lesson.episodes:
        query, used = lesson.episodes[0]
        episode = remember(stored.episode, lesson.namespace, query, used, now) if used else None
    written = Changes(
        episode=episode,
        episode_cap=params.max_episodes if episode else None,
        taught_at=now if lesson.run_key is not None else None,
        forget_keys_before=now - KEYS_KEPT if lesson.run_key is not None else None,
    )
    strengths = np.array([lesson.used[node].strength for node in stored.nodes])
    is_new = np.array([node in lesson.new for node in stored.nodes], dtype=bool)
    pairs = _pair_strengths(stored, strengths, is_new)
    if is_repeated:
        is_new[:] = False
        pairs = np.where(_was_just_taught(stored, now, params), 0.0, pairs)
    return replace(
        written,
        edges=reinforce(
            stored.edges,
            pairs,
            max(2, len(stored.nodes)),
            now,
            lesson.namespace,
            params,
        ),
        counters=count_uses(stored.counters, np.where(is_new, strengths, 0.0), now, params),
    )


def remembered(
    stored: Stored, query: Query, used: Mapping[NodeId, Use], now: float, params: LearningParams
) -> Changes:
    """The change that only remembers one more query of a run."""
    if not used:
        return Changes()
    episode = remember(stored.episode, stored.namespace, query, used, now)
    return Changes(episode=episode, episode_cap=params.max_episodes)


def strongest(used: Mapping[NodeId, Use], most: int, known: frozenset[NodeId]) -> dict[NodeId, Use]:
    """At most `most` nodes: those already taught first, then by strength, then by id."""
    order = sorted(used, key=lambda node: (node not in known, -used[node].strength, node))
    return {node: used[node] for node in sorted(order[:most])}


def _is_fresh(moment: float | None, now: float, seconds: float) -> bool:
    return moment is not None and abs(now - moment) <= seconds


def _was_just_taught(stored: Stored, now: float, params: LearningParams) -> Bools:
    is_fresh = np.abs(now - stored.edges["activated_at"]) <= params.repeat_after
    return np.asarray((stored.edges["activations"] > 0) & is_fresh)


def _pair_strengths(stored: Stored, strengths: Floats, is_new: Bools) -> Floats:
    """The smaller of the two strengths where at least one node is new, else 0."""
    first, second = stored.pairs[:, 0], stored.pairs[:, 1]
    weaker = np.minimum(strengths[first], strengths[second]) if len(strengths) else np.zeros(0)
    return np.where(is_new[first] | is_new[second], weaker, 0.0)
