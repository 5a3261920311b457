"""A log of runs -> before and after: taught in order, asked first where it counts."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Generic, Protocol, TypeVar

from synapse_retrievers.evaluation.comparison import Comparison, compare
from synapse_retrievers.evaluation.log import Run
from synapse_retrievers.evaluation.metrics import Measures, measured
from synapse_retrievers.types import NodeId

TAUGHT_SHARE = 0.8
"""Of the log that is only taught; what follows is asked before it is taught."""

FEWEST_WORDS = 4
"""A query of fewer words ("fix typo") asks nothing."""

TraceT_co = TypeVar("TraceT_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Answer(Generic[TraceT_co]):
    """What one query gave, plain and wrapped, asked at the same moment.

    Attributes:
        plain: The node at each place of the wrapped retriever's result, best first.
        wrapped: The same with learning around it.
        plain_seconds: What the plain call took.
        wrapped_seconds: What the wrapped call took.
        trace: Why they differ.
        known: Nodes that the run had used before it asked; they are no answer.
    """

    plain: tuple[NodeId, ...]
    wrapped: tuple[NodeId, ...]
    plain_seconds: float
    wrapped_seconds: float
    trace: TraceT_co
    known: tuple[NodeId, ...] = ()


class Learner(Protocol[TraceT_co]):
    """A plain retriever and the same one with learning around it, under the log's clock."""

    def ask(self, run: Run) -> Answer[TraceT_co]:
        """Both answers to the run's query at `run.t`; nothing is learned from asking."""
        ...

    def teach(self, run: Run) -> None:
        """Learn that `run.used` was used for `run.query` at `run.t`."""
        ...


@dataclass(frozen=True)
class Row(Generic[TraceT_co]):
    """One asked query.

    Attributes:
        run: What was asked, and what was used for it in the end.
        answer: Plain and wrapped.
        k: How many places count.
        place: Of the run in the log.
        taught: Runs that were taught before it was asked.
        ignored: Nodes that do not count as used here.
    """

    run: Run
    answer: Answer[TraceT_co]
    k: int
    place: int = 0
    taught: int = 0
    ignored: frozenset[NodeId] = frozenset()

    @cached_property
    def wanted(self) -> frozenset[NodeId]:
        """The used nodes that are to be found."""
        return frozenset(self.run.used) - frozenset(self.answer.known) - self.ignored

    @cached_property
    def plain(self) -> Measures:
        """Of the wrapped retriever's result."""
        return self._measured(self.answer.plain)

    @cached_property
    def wrapped(self) -> Measures:
        """Of the result with learning around it."""
        return self._measured(self.answer.wrapped)

    @property
    def recall(self) -> tuple[float, float]:
        """Plain and wrapped."""
        return self.plain.recall, self.wrapped.recall

    @property
    def reciprocal_rank(self) -> tuple[float, float]:
        """Plain and wrapped."""
        return self.plain.reciprocal_rank, self.wrapped.reciprocal_rank

    @property
    def is_same_count(self) -> bool:
        """Whether the wrapped result has as many places as the plain one."""
        return len(self.answer.plain) == len(self.answer.wrapped)

    @cached_property
    def entered(self) -> int:
        """How many nodes came in."""
        return len(set(self.answer.wrapped) - set(self.answer.plain))

    def _measured(self, ranking: tuple[NodeId, ...]) -> Measures:
        known = frozenset(self.answer.known)
        open_places = [node for node in ranking[: self.k] if node not in known]
        return measured(open_places, self.wanted, self.k)

    @property
    def is_harmed(self) -> bool:
        """Whether a used node had to go for another."""
        gone = set(self.answer.plain[: self.k]) - set(self.answer.wrapped[: self.k])
        return bool(gone & self.wanted)


def compared(rows: Sequence[Row[TraceT_co]], metric: str) -> Comparison:
    """One metric over some rows, plain and wrapped.

    Args:
        rows: Asked queries.
        metric: A field of `Measures`.
    """
    plain = [float(getattr(row.plain, metric)) for row in rows]
    return compare(plain, [float(getattr(row.wrapped, metric)) for row in rows])


@dataclass(frozen=True)
class Replay(Generic[TraceT_co]):
    """A whole log replayed.

    Attributes:
        rows: The asked queries, oldest first.
        k: How many places count.
        taught_before: Runs that were taught before the first query was asked.
        taught: Runs that were taught in all.
    """

    rows: tuple[Row[TraceT_co], ...]
    k: int
    taught_before: int
    taught: int

    @cached_property
    def recall(self) -> Comparison:
        """Recall over all rows; its `won` and `lost` are the win/lose shares."""
        return compared(self.rows, "recall")

    @cached_property
    def reciprocal_rank(self) -> Comparison:
        """Mean reciprocal rank over all rows."""
        return compared(self.rows, "reciprocal_rank")

    @cached_property
    def ndcg(self) -> Comparison:
        """Mean nDCG over all rows."""
        return compared(self.rows, "ndcg")

    @property
    def same_count(self) -> int:
        """Rows whose wrapped result had as many places as the plain one."""
        return sum(row.is_same_count for row in self.rows)


def split_at(runs: int) -> int:
    """How many of the runs are only taught: 80 %, at least one where there is one.

    >>> [split_at(runs) for runs in (0, 1, 2, 5, 100)]
    [0, 1, 1, 4, 80]
    """
    return max(int(runs * TAUGHT_SHARE), min(runs, 1))


def replay(
    runs: Sequence[Run],
    learner: Learner[TraceT_co],
    *,
    nodes: Collection[NodeId],
    k: int,
    taught_before: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Replay[TraceT_co]:
    """Teach the first runs, then ask each later one before it is taught (prequentially).

    Asked is a query of at least `FEWEST_WORDS` words that no earlier run asked word for word, and
    that used a node of `nodes`. Nodes outside `nodes` can be neither found nor taught: they are
    taken out of every run, and a run without any left is passed over. So is the asking of a run
    that has used all its nodes before it asks.

    Args:
        runs: Oldest first.
        learner: Fresh; it is taught here.
        nodes: What can be found at all.
        k: How many places count.
        taught_before: Runs that are only taught; None: `split_at` of them.
        progress: Told (runs done, runs in all) after each run.
    """
    start = split_at(len(runs)) if taught_before is None else taught_before
    asked_before: set[tuple[str, ...]] = set()
    rows: list[Row[TraceT_co]] = []
    before = taught = 0
    for place, whole in enumerate(runs):
        words = tuple(whole.query.casefold().split())
        run = replace(whole, used=tuple(node for node in whole.used if node in nodes))
        if run.used:
            is_new = len(words) >= FEWEST_WORDS and words not in asked_before
            if place >= start and is_new:
                row = Row(run, learner.ask(run), k, place, taught)
                rows += [row] if row.wanted else []
            learner.teach(run)
            taught += 1
            before += place < start
        asked_before.add(words)
        if progress:
            progress(place + 1, len(runs))
    return Replay(tuple(rows), k, before, taught)
