"""What a memory store holds."""

import math
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from synapse_retrievers.types import Episode, Namespace, NodeId, Pair

EdgeTuple: TypeAlias = tuple[int, float, float, float, float]
"""The fields of EDGE_STATE."""
CounterTuple: TypeAlias = tuple[float, float, float]
"""The fields of NODE_STATE."""

BLANK: CounterTuple = (0.0, 0.0, math.nan)


@dataclass(slots=True)
class Space:
    """What one namespace holds; episodes by number, in the order they were first learned."""

    number: int
    claim: tuple[str, str] | None = None
    edges: dict[NodeId, dict[NodeId, EdgeTuple]] = field(default_factory=dict)
    counters: dict[NodeId, CounterTuple] = field(default_factory=dict)
    episodes: dict[int, Episode] = field(default_factory=dict)
    by_query: dict[str, int] = field(default_factory=dict)
    by_term: dict[str, dict[int, float]] = field(default_factory=dict)
    lessons: dict[bytes, float] = field(default_factory=dict)
    next_episode: int = 1

    def copied(self) -> "Space":
        """An independent copy; the values in it never change."""
        return replace(
            self,
            edges={node: dict(row) for node, row in self.edges.items()},
            counters=dict(self.counters),
            episodes=dict(self.episodes),
            by_query=dict(self.by_query),
            by_term={term: dict(row) for term, row in self.by_term.items()},
            lessons=dict(self.lessons),
        )

    def degree(self, node: NodeId) -> int:
        """How many neighbors it has."""
        return len(self.edges.get(node, ()))

    def put_edge(self, pair: Pair, state: EdgeTuple) -> None:
        """Both directions; 0 activations remove it."""
        for a, b in (pair, pair[::-1]):
            if state[0]:
                self.edges.setdefault(a, {})[b] = state
                self.counters.setdefault(a, BLANK)
            elif b in self.edges.get(a, ()):
                del self.edges[a][b]

    def put_episode(self, episode: Episode) -> None:
        """In the place of the one with its query."""
        number = self.by_query.pop(episode.query, self.next_episode)
        if number in self.episodes:
            self._drop_terms(number)
        if not episode.used:
            self.episodes.pop(number, None)
            return
        self.next_episode = max(self.next_episode, number + 1)
        self.episodes[number] = episode
        self.by_query[episode.query] = number
        for term, weight in episode.terms.items():
            self.by_term.setdefault(term, {})[number] = weight

    def _drop_terms(self, number: int) -> None:
        for term in self.episodes[number].terms:
            row = self.by_term[term]
            del row[number]
            if not row:
                del self.by_term[term]

    def evict(self, cap: int) -> None:
        """Remove the longest unrenewed episodes above the cap."""
        oldest = sorted(self.episodes, key=lambda n: (self.episodes[n].renewed_at, n))
        for number in oldest[: max(0, len(oldest) - cap)]:
            self.put_episode(replace(self.episodes[number], used={}))


@dataclass(slots=True)
class State:
    """All namespaces and the numbers of their nodes.

    `views` counts the readers that look at it: while there are some, a writer changes a copy.
    """

    spaces: dict[Namespace, Space] = field(default_factory=dict)
    numbers: dict[NodeId, int] = field(default_factory=dict)
    next_node: int = 1
    next_space: int = 1
    views: int = 0

    def copied(self) -> "State":
        """An independent copy that nobody looks at."""
        spaces = {name: space.copied() for name, space in self.spaces.items()}
        return replace(self, spaces=spaces, numbers=dict(self.numbers), views=0)

    def space(self, namespace: Namespace) -> Space:
        """The namespace, made if it is missing."""
        if namespace not in self.spaces:
            self.spaces[namespace] = Space(self.next_space)
            self.next_space += 1
        return self.spaces[namespace]

    def intern(self, node: NodeId) -> None:
        """Give the node a number."""
        if node not in self.numbers:
            self.numbers[node] = self.next_node
            self.next_node += 1

    def sweep(self) -> None:
        """Remove the numbers of nodes that nothing refers to."""
        referenced: set[NodeId] = set()
        for space in self.spaces.values():
            referenced.update(space.counters)
            for episode in space.episodes.values():
                referenced.update(episode.used)
                referenced.update(u.chunk for u in episode.used.values() if u.chunk is not None)
        self.numbers = {key: n for key, n in self.numbers.items() if key in referenced}
