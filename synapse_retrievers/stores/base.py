"""What a store must do: keep edges, counters and episodes, and hand them over whole."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Protocol, TypeAlias, runtime_checkable

from synapse_retrievers.types import (
    Bools,
    Changes,
    Edge,
    EdgeStates,
    Episode,
    Floats,
    Headers,
    Ints,
    Namespace,
    Neighbors,
    Node,
    NodeId,
    Postings,
    Removed,
    Stored,
    StoreStats,
    Terms,
    Uses,
)

Rule: TypeAlias = Callable[[Stored], Changes]
"""A pure function from what is stored to what shall be stored."""

SCHEMA = 1
"""The schema that this release writes; a higher one is refused."""


class Reader(Protocol):
    """One consistent view of some namespaces; valid inside its `with` block only.

    A handle is the store's own number for a node or an episode: positive, the same in all
    namespaces, meaningless outside this view. Unknown ids have handle -1, and asking anything
    about -1 gives empty rows, zero counters or an empty name.

    Attributes:
        namespaces: Those asked for that exist, in the order asked; "[namespaces]" is one row each.
    """

    namespaces: tuple[Namespace, ...]

    def handles(self, ids: Sequence[NodeId]) -> Ints:
        """The handle of each id, -1 where the store never saw it."""
        ...

    def ids(self, handles: Ints) -> list[NodeId]:
        """The id of each handle."""
        ...

    def neighbors(self, handles: Ints) -> Neighbors:
        """All edges of a frontier of distinct handles, in every namespace of the view."""
        ...

    def headers(self, handles: Ints) -> Headers:
        """What is counted of each node, in every namespace of the view."""
        ...

    def terms(self, terms: Sequence[str]) -> Terms:
        """What the namespaces of the view know of distinct terms."""
        ...

    def postings(self, terms: Sequence[int]) -> Postings:
        """Where distinct terms (handles out of `terms`, of one namespace) stand."""
        ...

    def weights(self, episodes: Ints, terms: Sequence[int]) -> Floats:
        """Shape [episodes, terms]: the weight of each term in each episode, 0 where it is not."""
        ...

    def uses(self, episodes: Ints) -> Uses:
        """What the episodes (handles out of `postings`) used."""
        ...


@runtime_checkable
class Store(Protocol):
    """Edges, counters and episodes by namespace.

    Safe for any number of threads and processes. Driver errors leave as `StoreError`; a lock that
    is not had in time is `StoreBusyError`, and then nothing was written. `close` releases what
    is open; the next call opens it again. A copy or deep copy is the same object.
    """

    @property
    def url(self) -> str:
        """How `open_store` finds it again."""
        ...

    def reading(self, namespaces: Sequence[Namespace]) -> AbstractContextManager[Reader]:
        """A view of these namespaces as they stood when it was opened; unknown ones are empty."""
        ...

    def update(
        self,
        namespace: Namespace,
        nodes: Sequence[NodeId],
        rule: Rule,
        *,
        query: str | None = None,
        run_key: bytes | None = None,
    ) -> Changes:
        """Read, apply the rule, write: one transaction that no other writer enters.

        Args:
            namespace: Where; created by the first write.
            nodes: In any order; duplicates count once.
            rule: Called exactly once for each committed transaction; what it raises leaves
                unchanged, and nothing is written.
            query: Whose episode the rule is handed.
            run_key: Whose `taught_at` the rule is handed.

        Returns:
            What the rule returned, committed.
        """
        ...

    def batch(self, wait_seconds: float | None = None) -> AbstractContextManager[None]:
        """One transaction for all of this thread's updates inside it; an error undoes them all.

        Args:
            wait_seconds: How long for a lock; None: as long as any write.
        """
        ...

    def mark_gone(self, namespace: Namespace, ids: Sequence[NodeId], at: float | None) -> None:
        """Note since when (Unix seconds) fetching these finds nothing; None: they are back.

        A node that the namespace does not know is not created; an earlier mark keeps its time.
        """
        ...

    def claim(
        self,
        namespace: Namespace,
        node_kind: str,
        collection: str,
        wait_seconds: float | None = None,
    ) -> tuple[str, str]:
        """Which kind of nodes and which collection the namespace serves from now on.

        Args:
            namespace: Whose.
            node_kind: Recorded if nothing was.
            collection: Recorded if nothing was.
            wait_seconds: How long for a lock; None: as long as any write.

        Returns:
            What is recorded.
        """
        ...

    def secret(self) -> bytes:
        """32 random bytes, made once for the store."""
        ...

    def edges(self, namespace: Namespace | None = None) -> Iterator[Edge]:
        """Every edge once, in ascending order of namespace and pair."""
        ...

    def nodes(self, namespace: Namespace | None = None) -> Iterator[Node]:
        """Every counted node, in ascending order of namespace and id."""
        ...

    def episodes(self, namespace: Namespace | None = None) -> Iterator[Episode]:
        """Every episode, in ascending order of namespace, then as they were first learned."""
        ...

    def forget(
        self,
        *,
        ids: Sequence[NodeId] | None = None,
        namespace: Namespace | None = None,
        before: float | None = None,
        query: str | None = None,
    ) -> Removed:
        """Remove what meets *all* of the given conditions, at least one; edges *and* episodes.

        `ids`: the nodes, their edges, their uses in episodes (also as a chunk: then the use stays
        without its chunk), and their ids from the store; an episode left without a node goes.
        `namespace` alone: all of it, with its claim and its run keys. `before`: edges last
        activated, counters last used and episodes last renewed before it. `query`: that episode.
        With `ids` and `before` together only edges, uses and counters of those nodes that are
        older go.
        """
        ...

    def prune(
        self, is_prunable: Callable[[Namespace, EdgeStates], Bools], gone_before: float
    ) -> Removed:
        """Remove prunable edges, and nodes marked gone before that time with edges and uses.

        Only removes rows, never rewrites a weight; works in slices, so that other writers wait
        little. Counters of nodes without an edge and without use are removed.
        """
        ...

    def stats(self) -> StoreStats:
        """What the store holds now."""
        ...

    def close(self) -> None:
        """Release files and connections."""
        ...
