"""Hypothesis strategies: node ids, rules and sequences of store operations."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from synapse_retrievers.stores.base import Rule, Store
from synapse_retrievers.types import (
    Bools,
    Changes,
    EdgeStates,
    Episode,
    Namespace,
    NodeId,
    Removed,
    Stored,
    Use,
)

ODD_IDS: tuple[NodeId, ...] = (
    "it's",
    'say "so"',
    "a\nb",
    "nul\0nul",
    "nul\0",
    "x" * 10_000,
    "caf\u00e9",
    "cafe\u0301",
    "\U0001f9e0",
    "%s?:x;--",
    " ",
    "1",
)
"""Ids that trip quoting, C strings, normalization and sizes."""

NAMESPACES: tuple[Namespace, ...] = ("personal", "shared", "branch:x")
IDS: tuple[NodeId, ...] = (*(f"n{number}" for number in range(9)), *ODD_IDS)
QUERIES = ("how", "why", "wo ist\0das", "\U0001f9e0?")
TERMS = ("a", "b", "c", "\u00e4", "d\0")

times = st.integers(0, 40).map(float)
strengths = st.floats(0.0, 2.0, allow_nan=False)
namespaces = st.sampled_from(NAMESPACES)
node_ids = st.sampled_from(IDS)
node_sets = st.lists(node_ids, max_size=6)


def teaching(at: float, strength: float = 1.0, episode: Episode | None = None) -> Rule:
    """A rule that counts: activations + 1, weight and co up, every node used once more."""

    def rule(stored: Stored) -> Changes:
        edges = stored.edges.copy()
        edges["created_at"] = np.where(edges["activations"] == 0, at, edges["created_at"])
        edges["activations"] += 1
        edges["weight"] = np.minimum(1.0, edges["weight"] + 0.3 * strength)
        edges["co"] += strength / max(1, len(stored.nodes) - 1)
        edges["activated_at"] = at
        counters = stored.counters.copy()
        counters["used"] += strength
        counters["used_at"] = at
        return Changes(edges=edges, counters=counters, episode=episode)

    return rule


def is_weak(_: Namespace, edges: EdgeStates) -> Bools:
    """Prunable in the tests: reinforced once only."""
    weak: Bools = edges["activations"] < 2
    return weak


@dataclass(frozen=True, slots=True)
class Teach:
    """Reinforce nodes and keep an episode."""

    namespace: Namespace
    nodes: Sequence[NodeId]
    at: float
    strength: float
    query: str | None
    terms: Sequence[str]
    chunk: NodeId | None
    cap: int | None

    def apply(self, store: Store) -> object:
        """The change that was committed, as text."""
        episode = None
        if self.query is not None:
            weight = 1.0 / max(1, len(self.terms)) ** 0.5
            used = {node: Use(self.strength, self.chunk) for node in self.nodes}
            terms = dict.fromkeys(self.terms, weight)
            episode = Episode(self.namespace, self.query, terms, used, self.at)
        taught = teaching(self.at, self.strength, episode)
        seen: list[Stored] = []

        def rule(stored: Stored) -> Changes:
            seen.append(stored)
            changes = taught(stored)
            return Changes(changes.edges, changes.counters, changes.episode, self.cap, self.at)

        store.update(self.namespace, self.nodes, rule, query=self.query, run_key=b"key")
        (stored,) = seen
        found = stored.episode
        return (
            stored.nodes,
            stored.edges.tolist(),
            repr(stored.counters.tolist()),
            found,
            stored.taught_at,
        )


@dataclass(frozen=True, slots=True)
class Erase:
    """Take edges away through a rule."""

    namespace: Namespace
    nodes: Sequence[NodeId]

    def apply(self, store: Store) -> None:
        """Every edge of the nodes goes; their counters stay."""

        def rule(stored: Stored) -> Changes:
            return Changes(edges=np.zeros_like(stored.edges))

        store.update(self.namespace, self.nodes, rule)


@dataclass(frozen=True, slots=True)
class MarkGone:
    """Mark nodes gone, or back."""

    namespace: Namespace
    nodes: Sequence[NodeId]
    at: float | None

    def apply(self, store: Store) -> None:
        """Nothing to compare but the state."""
        store.mark_gone(self.namespace, self.nodes, self.at)


@dataclass(frozen=True, slots=True)
class Forget:
    """Forget by any mix of conditions."""

    ids: Sequence[NodeId] | None
    namespace: Namespace | None
    before: float | None
    query: str | None

    def apply(self, store: Store) -> Removed | None:
        """How much went."""
        conditions = (self.ids, self.namespace, self.before, self.query)
        if all(condition is None for condition in conditions):
            return None
        return store.forget(
            ids=self.ids, namespace=self.namespace, before=self.before, query=self.query
        )


@dataclass(frozen=True, slots=True)
class Prune:
    """Prune weak edges and what is long gone."""

    gone_before: float

    def apply(self, store: Store) -> Removed:
        """How much went."""
        return store.prune(is_weak, self.gone_before)


@dataclass(frozen=True, slots=True)
class FailedBatch:
    """Two updates that are undone."""

    first: Teach
    second: Teach

    def apply(self, store: Store) -> None:
        """Nothing must be left of them."""
        try:
            with store.batch():
                self.first.apply(store)
                self.second.apply(store)
                raise KeyError  # noqa: TRY301 - it is the body that has to fail
        except KeyError:
            return


teachings = st.builds(
    Teach,
    namespaces,
    node_sets,
    times,
    strengths,
    st.none() | st.sampled_from(QUERIES),
    st.lists(st.sampled_from(TERMS), unique=True, max_size=4),
    st.none() | node_ids,
    st.none() | st.integers(1, 3),
)
operations = st.one_of(
    teachings,
    teachings,
    teachings,
    st.builds(Erase, namespaces, node_sets),
    st.builds(MarkGone, namespaces, node_sets, st.none() | times),
    st.builds(
        Forget,
        st.none() | node_sets,
        st.none() | namespaces,
        st.none() | times,
        st.none() | st.sampled_from(QUERIES),
    ),
    st.builds(Prune, times),
    st.builds(FailedBatch, teachings, teachings),
)
