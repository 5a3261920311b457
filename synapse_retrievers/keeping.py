"""What a memory lies in: the store behind it, a look inside, and taking things out."""

import asyncio
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Self, TypeVar

import numpy as np

from synapse_retrievers.checks import (
    checked_id,
    checked_ids,
    checked_moment,
    checked_namespace,
    checked_query,
)
from synapse_retrievers.errors import (
    FeedbackError,
    NamespaceClaimedError,
    StoreBusyError,
    StoreError,
)
from synapse_retrievers.guard import Guard
from synapse_retrievers.learning.decay import count_at, is_prunable, weight_at
from synapse_retrievers.namespaces import readable
from synapse_retrievers.observer import LEDGER, settle
from synapse_retrievers.params import DAY, LearningParams
from synapse_retrievers.stats import Stats
from synapse_retrievers.stores.base import Store
from synapse_retrievers.stores.url import open_store, place_of
from synapse_retrievers.types import Edge, Episode, Namespace, NodeId, Removed
from synapse_retrievers.writing import Job, Writing

_Value = TypeVar("_Value")

_GONE_KEPT = 30 * DAY


@dataclass(frozen=True, slots=True)
class Neighbor:
    """A node one edge away; `weight` and `probability` (P(node | asked)) as they are now."""

    node: NodeId
    weight: float
    probability: float
    activations: int
    age_days: float


class Keeping:
    """Opens the store when it is first needed and again after it failed."""

    def __init__(
        self, where: str | os.PathLike[str] | Store | None, clock: Callable[[], float]
    ) -> None:
        self._where = where
        self._store: Store | None = where if isinstance(where, Store) else None
        self._clock = clock
        self._writing = Writing(lambda: self.store)
        # Two memories on one file are warned of once, two private ones are not the same.
        own = where if isinstance(where, Store) else self if where == "memory:" else None
        self._guard = Guard(f"synapse store {place_of(where)}", own)
        self._unidentified = 0
        self.forgotten = 0  # how often something was forgotten
        self.learning = LearningParams()

    def __copy__(self) -> Self:
        """The same memory: a copy of a retriever never forks it."""
        return self

    def __deepcopy__(self, memo: object) -> Self:
        """The same memory: a copy of a retriever never forks it."""
        return self

    @property
    def store(self) -> Store:
        """Where everything lies.

        Raises:
            StoreError: It cannot be opened.
        """
        if self._store is None:
            if isinstance(self._where, Store):
                self._store = self._where
            else:
                self._store = open_store(self._where, must_open=False)
        return self._store

    @property
    def memory(self) -> object:
        """What two of these have in common when they are the same memory: the store."""
        return self._store if self._store is not None else self

    def open(self) -> None:
        """Open the store, or look at the one that was given.

        Raises:
            StoreError: It cannot be opened.
        """
        if not isinstance(self._where, Store):
            self._store = open_store(self._where)
            return
        with self._where.reading(()):
            pass

    def guarded(self, action: Callable[[], _Value], otherwise: _Value) -> _Value:
        """What `action` gives; where it fails: `otherwise`, one warning and a count."""
        return self._guard.run(action, otherwise)

    def passed_over(self, error: Exception) -> None:
        """Count a failure that did not reach the user; the first is a warning."""
        self._guard.note(error)

    def unidentified(self, count: int) -> None:
        """Count hits that have no id."""
        self._unidentified += count

    def serve(self, namespace: Namespace, node_kind: str, collection: str) -> None:
        """Record which nodes of which collection the namespace joins; "" is any collection.

        Raises:
            NamespaceClaimedError: It joins others already.
            StoreError: The store failed, or somebody else writes just now.
        """
        kept = self.store.claim(namespace, node_kind, collection, wait_seconds=0.0)
        if kept[0] != node_kind or (kept[1] and collection and kept[1] != collection):
            asked = (node_kind, collection)
            raise NamespaceClaimedError(self.store.url, namespace, kept, asked)

    def edges(self, namespace: Namespace | None = None) -> Iterator[Edge]:
        """Every edge as stored, in ascending order of namespace and pair."""
        return self.store.edges(namespace)

    def episodes(self, namespace: Namespace | None = None) -> Iterator[Episode]:
        """Every episode as stored, by namespace, then as they were first learned."""
        return self.store.episodes(namespace)

    def _neighbors(self, id: NodeId, namespace: Namespace, prior: float) -> list[Neighbor]:  # noqa: A002
        """The nodes one edge away in this namespace alone, highest weight first."""
        node, now = checked_id(id), checked_moment(self._clock())
        with self.store.reading((checked_namespace(namespace),)) as reader:
            handle = reader.handles([node])
            if handle[0] < 0 or not reader.namespaces:
                return []
            rows = reader.neighbors(handle)
            names = reader.ids(rows.neighbor)
        used = count_at(rows.headers.used[0], rows.headers.used_at[0], now, self.learning)
        weight = weight_at(rows.state, now, namespace, self.learning)
        co = count_at(rows.state["co"], rows.state["activated_at"], now, self.learning)
        probability = np.minimum(1.0, co / max(used[0] + prior, 1e-300))
        age = np.maximum(0.0, now - rows.state["activated_at"]) / DAY
        columns = (weight, probability, rows.state["activations"], age)
        found = [
            Neighbor(name, *values)
            for name, *values in zip(names, *(column.tolist() for column in columns), strict=True)
        ]
        return sorted(found, key=lambda one: (-one.weight, one.node))

    def stats(self) -> Stats:
        """What the memory holds, and what happened to it in this process."""
        kept = self.store.stats()
        return Stats(
            kept.url,
            kept.schema,
            kept.bytes,
            kept.namespaces,
            self._writing.waiting,
            self._writing.lost,
            self._guard.failures,
            LEDGER.ambiguous,
            self._unidentified,
        )

    def forget(
        self,
        ids: Iterable[NodeId] | None = None,
        *,
        namespace: Namespace | None = None,
        before: float | None = None,
        query: str | None = None,
    ) -> Removed:
        """Remove edges *and* episodes that meet all of the given conditions.

        Args:
            ids: These nodes and all that was learned about them.
            namespace: Only there; alone: the whole namespace.
            before: Only what was last learned before this moment (Unix seconds).
            query: The episode of this query.

        Returns:
            How much went.

        Raises:
            FeedbackError: No condition was given.
            StoreError: The store failed.
        """
        if ids is None and namespace is None and before is None and query is None:
            raise FeedbackError("forget()", None, "ids=, namespace=, before= or query=")
        settle()
        self._writing.try_drain()
        removed = self.store.forget(
            ids=None if ids is None else checked_ids(ids),
            namespace=None if namespace is None else checked_namespace(namespace),
            before=None if before is None else checked_moment(before, "before"),
            query=None if query is None else self.query_key(checked_query(query)),
        )
        self.forgotten += 1
        return removed

    def prune(self) -> Removed:
        """Remove edges of which nothing is left, and nodes gone for 30 days; weights stay.

        Raises:
            StoreError: The store failed.
        """
        now = checked_moment(self._clock())
        return self.store.prune(
            lambda namespace, edges: is_prunable(edges, now, namespace, self.learning),
            now - _GONE_KEPT,
        )

    def mark_gone(
        self, ids: Sequence[NodeId], namespace: Namespace, *, is_back: bool = False
    ) -> None:
        """Note that the wrapped store does not find these any more, or again."""
        at = None if is_back else checked_moment(self._clock())

        # Only a hint, which the next recall would give again: nobody waits for a lock for it.
        if self._writing.is_busy:
            return
        try:
            # What is gone from the collection is gone for every namespace that is read with it.
            with self.store.batch(0.0):
                for one in readable(namespace):
                    self.store.mark_gone(one, ids, at)
        except StoreBusyError:
            return
        except StoreError as error:
            self._guard.note(error)

    def query_key(self, query: str) -> str:
        """What an episode of this query is known by."""
        return query

    def flush(self) -> None:
        """Commit what still waits.

        Raises:
            StoreError: The store still fails; what waits waits on.
        """
        settle()
        self._writing.drain()

    async def aflush(self) -> None:
        """As `flush`, without blocking the event loop."""
        await asyncio.to_thread(self.flush)

    def close(self) -> None:
        """Commit what waits and release the store; a later call opens it again."""
        settle()
        LEDGER.release(self)
        self._writing.try_drain()
        if self._store is not None:
            self._store.close()

    def _eventually(self, job: Job) -> int:
        """Run the job now; if the store fails, let it wait.

        A store that was busy just now is not waited for again: the waits of many would add up.
        """
        try:
            return self._writing.now(job, 0.0 if self._writing.is_busy else None)
        except StoreError as error:
            self._guard.note(error)
            self._writing.later(job)
            return 0
