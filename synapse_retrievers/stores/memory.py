"""The contract in dicts: obviously right rather than fast, and the oracle of the others."""

import math
import secrets
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from itertools import combinations

import numpy as np

from synapse_retrievers.errors import ParamError
from synapse_retrievers.stores import memory_removal
from synapse_retrievers.stores.base import SCHEMA, Rule
from synapse_retrievers.stores.memory_reader import MemoryReader
from synapse_retrievers.stores.memory_state import BLANK, Space, State
from synapse_retrievers.types import (
    EDGE_STATE,
    NODE_STATE,
    Bools,
    Changes,
    Edge,
    EdgeStates,
    Episode,
    Namespace,
    NamespaceStats,
    Node,
    NodeId,
    Pair,
    Removed,
    Stored,
    StoreStats,
)

_NO_EDGE = (0, 0.0, 0.0, 0.0, 0.0)


class MemoryStore:
    """Edges and episodes in this process only.

    Args:
        name: What `memory:<name>` finds it by; empty = private.
    """

    def __init__(self, name: str = "") -> None:
        self._url = f"memory:{name}"
        self._lock = threading.RLock()
        self._state = State()
        self._secret = secrets.token_bytes(32)

    @property
    def url(self) -> str:
        return self._url

    def __repr__(self) -> str:
        return f"MemoryStore({self._url!r})"

    def __copy__(self) -> "MemoryStore":
        return self

    def __deepcopy__(self, memo: object) -> "MemoryStore":
        return self

    @contextmanager
    def reading(self, namespaces: Sequence[Namespace]) -> Iterator[MemoryReader]:
        with self._lock:
            state = self._state
            state.views += 1
        try:
            yield MemoryReader(state, namespaces)
        finally:
            with self._lock:
                state.views -= 1

    @contextmanager
    def _writing(self) -> Iterator[State]:
        with self._lock:
            if self._state.views:
                self._state = self._state.copied()
            yield self._state

    def update(
        self,
        namespace: Namespace,
        nodes: Sequence[NodeId],
        rule: Rule,
        *,
        query: str | None = None,
        run_key: bytes | None = None,
    ) -> Changes:
        with self._writing() as state:
            names = tuple(sorted(set(nodes)))
            space = state.spaces.get(namespace, Space(0))
            changes = rule(_stored(space, namespace, names, query, run_key))
            if all(getattr(changes, part.name) is None for part in fields(changes)):
                return changes
            space = state.space(namespace)
            _put_nodes(state, space, names, changes)
            _put_episode(state, space, namespace, changes)
            if changes.forget_keys_before is not None:
                limit = changes.forget_keys_before
                space.lessons = {key: at for key, at in space.lessons.items() if at >= limit}
            if changes.taught_at is not None and run_key is not None:
                space.lessons[run_key] = changes.taught_at
        return changes

    @contextmanager
    def batch(self, wait_seconds: float | None = None) -> Iterator[None]:  # noqa: ARG002 - no wait
        with self._lock:
            before = self._state
            self._state = before.copied()
            try:
                yield
            except BaseException:
                self._state = before
                raise

    def mark_gone(self, namespace: Namespace, ids: Sequence[NodeId], at: float | None) -> None:
        with self._writing() as state:
            space = state.spaces.get(namespace, Space(0))
            for node in ids:
                if node in space.counters:
                    used, used_at, gone_at = space.counters[node]
                    if at is None:
                        gone_at = math.nan
                    elif math.isnan(gone_at):
                        gone_at = at
                    space.counters[node] = (used, used_at, gone_at)

    def claim(
        self,
        namespace: Namespace,
        node_kind: str,
        collection: str,
        wait_seconds: float | None = None,  # noqa: ARG002 - nothing is waited for
    ) -> tuple[str, str]:
        with self._writing() as state:
            space = state.space(namespace)
            space.claim = space.claim or (node_kind, collection)
            return space.claim

    def secret(self) -> bytes:
        return self._secret

    def edges(self, namespace: Namespace | None = None) -> Iterator[Edge]:
        with self._lock:
            return iter(
                [
                    Edge(pair, name, weight, co, activations, activated_at, created_at)
                    for name, space in self._spaces(namespace)
                    for pair, (activations, weight, co, activated_at, created_at) in (
                        memory_removal.edges_of(space)
                    )
                ]
            )

    def nodes(self, namespace: Namespace | None = None) -> Iterator[Node]:
        with self._lock:
            return iter(
                [
                    Node(
                        node,
                        name,
                        space.degree(node),
                        used,
                        used_at,
                        None if math.isnan(gone_at) else gone_at,
                    )
                    for name, space in self._spaces(namespace)
                    for node, (used, used_at, gone_at) in sorted(space.counters.items())
                ]
            )

    def episodes(self, namespace: Namespace | None = None) -> Iterator[Episode]:
        with self._lock:
            return iter(
                [
                    episode
                    for _, space in self._spaces(namespace)
                    for _, episode in sorted(space.episodes.items())
                ]
            )

    def _spaces(self, namespace: Namespace | None) -> list[tuple[Namespace, Space]]:
        spaces = sorted(self._state.spaces.items())
        return [row for row in spaces if namespace is None or row[0] == namespace]

    def forget(
        self,
        *,
        ids: Sequence[NodeId] | None = None,
        namespace: Namespace | None = None,
        before: float | None = None,
        query: str | None = None,
    ) -> Removed:
        if ids is None and namespace is None and before is None and query is None:
            raise ParamError("forget", None, "for at least one of ids, namespace, before, query")
        with self._writing() as state:
            return memory_removal.forget(
                state, ids=ids, namespace=namespace, before=before, query=query
            )

    def prune(
        self, is_prunable: Callable[[Namespace, EdgeStates], Bools], gone_before: float
    ) -> Removed:
        with self._writing() as state:
            return memory_removal.prune(state, is_prunable, gone_before)

    def stats(self) -> StoreStats:
        with self._lock:
            namespaces = {
                name: NamespaceStats(
                    len(space.counters),
                    len(memory_removal.edges_of(space)),
                    len(space.episodes),
                    *(space.claim or (None, None)),
                )
                for name, space in self._spaces(None)
            }
        return StoreStats(self._url, SCHEMA, 0, namespaces)

    def close(self) -> None:
        """Nothing is open; what was learned stays."""


def _stored(
    space: Space,
    namespace: Namespace,
    names: tuple[NodeId, ...],
    query: str | None,
    run_key: bytes | None,
) -> Stored:
    pairs = list(combinations(range(len(names)), 2))
    edges = [space.edges.get(names[a], {}).get(names[b], _NO_EDGE) for a, b in pairs]
    number = None if query is None else space.by_query.get(query)
    return Stored(
        namespace,
        names,
        np.array(pairs, dtype=np.int64).reshape(-1, 2),
        np.array(edges, dtype=EDGE_STATE),
        np.array([space.counters.get(name, BLANK) for name in names], dtype=NODE_STATE),
        None if number is None else space.episodes[number],
        None if run_key is None else space.lessons.get(run_key),
    )


def _put_nodes(state: State, space: Space, names: tuple[NodeId, ...], changes: Changes) -> None:
    if changes.edges is not None:
        pairs: list[Pair] = list(combinations(names, 2))
        for pair, edge in zip(pairs, changes.edges.tolist(), strict=True):
            space.put_edge(pair, edge)
    if changes.counters is not None:
        for name, counter in zip(names, changes.counters.tolist(), strict=True):
            used, used_at, gone_at = counter
            if name in space.counters or used or used_at or not math.isnan(gone_at):
                space.counters[name] = counter
    for name in names:
        if name in space.counters:
            state.intern(name)


def _put_episode(state: State, space: Space, namespace: Namespace, changes: Changes) -> None:
    if changes.episode is not None:
        episode = changes.episode
        for node, use in episode.used.items():
            state.intern(node)
            if use.chunk is not None:
                state.intern(use.chunk)
        # Copied, so that what the caller does to its own mappings changes nothing here.
        space.put_episode(
            replace(
                episode,
                namespace=namespace,
                terms=dict(episode.terms),
                used=dict(episode.used),
            )
        )
    if changes.episode_cap is not None:
        space.evict(changes.episode_cap)
