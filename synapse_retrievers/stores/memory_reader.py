"""The read path of a memory store."""

from collections.abc import Sequence

import numpy as np

from synapse_retrievers.stores.memory_state import BLANK, Space, State
from synapse_retrievers.types import (
    EDGE_STATE,
    Floats,
    Headers,
    Ints,
    Namespace,
    Neighbors,
    NodeId,
    Postings,
    Terms,
    Uses,
)

_EPISODE_SHIFT = 32


class MemoryReader:
    """A view of some namespaces of a state that nobody changes meanwhile."""

    def __init__(self, state: State, namespaces: Sequence[Namespace]) -> None:
        self._numbers = state.numbers
        self._keys: dict[int, NodeId] | None = None
        self._terms: list[tuple[Space, str]] = []
        self._by_number = {space.number: space for space in state.spaces.values()}
        self.namespaces = tuple(name for name in namespaces if name in state.spaces)
        self._spaces = [state.spaces[name] for name in self.namespaces]

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
        return Neighbors(numbers[:, 0], numbers[:, 1], numbers[:, 2], states, self.headers(handles))

    def headers(self, handles: Ints) -> Headers:
        keys = self.ids(handles)
        shape = (len(self._spaces), len(keys))
        degrees = [space.degree(key) for space in self._spaces for key in keys]
        rows = [space.counters.get(key, BLANK) for space in self._spaces for key in keys]
        used, used_at, gone_at = np.array(rows, dtype=np.float64).reshape(-1, 3).T
        return Headers(
            np.array(degrees, dtype=np.int64).reshape(shape),
            used.reshape(shape),
            used_at.reshape(shape),
            gone_at.reshape(shape),
        )

    def terms(self, terms: Sequence[str]) -> Terms:
        handles = []
        for space in self._spaces:
            known = len(self._terms)
            self._terms += [(space, term) for term in terms]
            handles.append(
                [
                    known + place if term in space.by_term else -1
                    for place, term in enumerate(terms, start=1)
                ]
            )
        return Terms(
            [len(space.episodes) for space in self._spaces],
            handles,
            [[len(space.by_term.get(term, ())) for term in terms] for space in self._spaces],
        )

    def postings(self, terms: Sequence[int]) -> Postings:
        rows = sorted(
            (place, _episode_handle(space, episode), weight)
            for place, (space, term) in enumerate(map(self._term, terms))
            for episode, weight in space.by_term.get(term, {}).items()
        )
        return Postings(
            np.array([row[0] for row in rows], dtype=np.int64),
            np.array([row[1] for row in rows], dtype=np.int64),
            np.array([row[2] for row in rows], dtype=np.float64),
        )

    def weights(self, episodes: Ints, terms: Sequence[int]) -> Floats:
        found = np.zeros((len(episodes), len(terms)))
        for column, (space, term) in enumerate(map(self._term, terms)):
            standing = space.by_term.get(term, {})
            for row, handle in enumerate(episodes.tolist()):
                if handle >> _EPISODE_SHIFT == space.number:
                    found[row, column] = standing.get(_episode_number(handle), 0.0)
        return found

    def _term(self, handle: int) -> tuple[Space, str]:
        return self._terms[handle - 1] if handle > 0 else (Space(0), "")

    def uses(self, episodes: Ints) -> Uses:
        found = Uses()
        for handle in episodes.tolist():
            space = self._by_number.get(handle >> _EPISODE_SHIFT, Space(0))
            episode = space.episodes.get(_episode_number(handle))
            found.query.append(episode.query if episode else "")
            found.renewed_at.append(episode.renewed_at if episode else 0.0)
            found.nodes.append(
                [
                    (
                        self._numbers[node],
                        use.strength,
                        -1 if use.chunk is None else self._numbers[use.chunk],
                    )
                    for node, use in (episode.used.items() if episode else ())
                ]
            )
        return found


def _episode_handle(space: Space, number: int) -> int:
    return (space.number << _EPISODE_SHIFT) | number


def _episode_number(handle: int) -> int:
    return handle & ((1 << _EPISODE_SHIFT) - 1)
