"""The read path of a memory store."""

from collections.abc import Sequence

import numpy as np

from synapse_retrievers.stores.memory_state import BLANK, Space, State
from synapse_retrievers.types import (
    EDGE_STATE,
    NODE_STATE,
    Ints,
    Namespace,
    Neighbors,
    NodeId,
    NodeStates,
    Postings,
    Uses,
)

_EPISODE_SHIFT = 32


class MemoryReader:
    """A view of some namespaces of a state that nobody changes meanwhile."""

    def __init__(self, state: State, namespaces: Sequence[Namespace]) -> None:
        self._numbers = state.numbers
        self._keys: dict[int, NodeId] | None = None
        self._by_number = {space.number: space for space in state.spaces.values()}
        self._spaces = [state.spaces.get(name, Space(0)) for name in namespaces]

    def handles(self, ids: Sequence[NodeId]) -> Ints:
        return np.array([self._numbers.get(key, -1) for key in ids], dtype=np.int64)

    def ids(self, handles: Ints) -> list[NodeId]:
        if self._keys is None:
            self._keys = {number: key for key, number in self._numbers.items()}
        return [self._keys.get(handle, "") for handle in handles.tolist()]

    def neighbors(self, handles: Ints) -> Neighbors:
        keys = self.ids(handles)
        rows = sorted(
            (place, sender, self._numbers[neighbor], state)
            for place, space in enumerate(self._spaces)
            for sender, key in enumerate(keys)
            for neighbor, state in space.edges.get(key, {}).items()
        )
        numbers = np.array([row[:3] for row in rows], dtype=np.int64).reshape(-1, 3)
        states = np.array([row[3] for row in rows], dtype=EDGE_STATE)
        return Neighbors(numbers[:, 0], numbers[:, 1], numbers[:, 2], states)

    def counters(self, handles: Ints) -> NodeStates:
        keys = self.ids(handles)
        rows = [space.counters.get(key, BLANK) for space in self._spaces for key in keys]
        return np.array(rows, dtype=NODE_STATE).reshape(len(self._spaces), len(keys))

    def degrees(self, handles: Ints, exact_above: int) -> Ints:  # noqa: ARG002 - always exact
        return np.array(
            [
                len(set().union(*(space.edges.get(key, ()) for space in self._spaces)))
                for key in self.ids(handles)
            ],
            dtype=np.int64,
        )

    def postings(self, terms: Sequence[str]) -> list[Postings]:
        return [self._postings(space, terms) for space in self._spaces]

    def _postings(self, space: Space, terms: Sequence[str]) -> Postings:
        rows = sorted(
            (place, (space.number << _EPISODE_SHIFT) | episode, weight)
            for place, term in enumerate(terms)
            for episode, weight in space.by_term.get(term, {}).items()
        )
        return Postings(
            len(space.episodes),
            np.array([len(space.by_term.get(term, ())) for term in terms], dtype=np.int64),
            np.array([row[0] for row in rows], dtype=np.int64),
            np.array([row[1] for row in rows], dtype=np.int64),
            np.array([row[2] for row in rows], dtype=np.float64),
        )

    def uses(self, episodes: Ints) -> Uses:
        query: list[str] = []
        renewed_at: list[float] = []
        rows: list[tuple[int, int, float, int]] = []
        for place, handle in enumerate(episodes.tolist()):
            space = self._by_number.get(handle >> _EPISODE_SHIFT, Space(0))
            episode = space.episodes.get(handle & ((1 << _EPISODE_SHIFT) - 1))
            query.append(episode.query if episode else "")
            renewed_at.append(episode.renewed_at if episode else 0.0)
            for node, use in episode.used.items() if episode else ():
                chunk = -1 if use.chunk is None else self._numbers[use.chunk]
                rows.append((place, self._numbers[node], use.strength, chunk))
        return Uses(
            tuple(query),
            np.array(renewed_at, dtype=np.float64),
            np.array([row[0] for row in rows], dtype=np.int64),
            np.array([row[1] for row in rows], dtype=np.int64),
            np.array([row[2] for row in rows], dtype=np.float64),
            np.array([row[3] for row in rows], dtype=np.int64),
        )
