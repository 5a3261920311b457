"""One log through the memory and its controls: before and after, by slice, with intervals."""

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from synapse_retrievers.evaluation import slices
from synapse_retrievers.evaluation.comparison import Comparison, Macro, macro
from synapse_retrievers.evaluation.learners import (
    Mode,
    Popularity,
    RandomDisplacement,
    Settings,
    SynapseLearner,
    open_learner,
)
from synapse_retrievers.evaluation.log import Log, Run
from synapse_retrievers.evaluation.replay import Learner, Replay, Row, compared, replay, split_at
from synapse_retrievers.types import Floats

Rows: TypeAlias = Sequence[Row[Any]]
Tell: TypeAlias = Callable[[str, int, int | None], None]
"""Told (stage, runs done, runs in all) now and then."""

_SEED = 0
"""Of what the controls and the noisy kinds of evidence draw at random."""

METRICS = ("recall", "reciprocal_rank", "ndcg", "hit")
"""Fields of `Measures`, in the order in which they are reported."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What came of some asked queries.

    Attributes:
        asked: How many.
        metrics: Name (one of `METRICS`) -> before and after.
        harmed: Share of the queries in which a used node had to go for another.
        entered: Share of the queries in which something came in.
    """

    asked: int
    metrics: Mapping[str, Comparison]
    harmed: float
    entered: float

    @property
    def recall(self) -> Comparison:
        """Before and after."""
        return self.metrics["recall"]


BySystem: TypeAlias = Mapping[str, Measured]
"""What came of "synapses" and, where they were asked for, of "paper", "popularity", "random"."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step of the learning curve: so many runs, [low, high), had been learned."""

    low: int
    high: int | None
    systems: BySystem


@dataclass(frozen=True, slots=True)
class Evaluation:
    """One log, evaluated.

    Attributes:
        name: Of the log.
        k: How many places count.
        mode: What was learned from.
        runs: Runs of the log.
        taught: Runs that were taught.
        systems: On the last fifth of the log.
        slices: Parts of the last fifth.
        fifths: Oldest first; only those that were asked.
        curve: By number of learned runs.
        quiet: Share of foreign queries in which nothing came in; None: there were none.
        foreign: How many foreign queries were asked.
        milliseconds: Median time that the memory took for one recall; None without queries.
        failures: Calls of the memory that failed and changed nothing; 0 when all is well.
        pairs: Recall of each asked query of the last fifth, before and after, shape [2, asked].
    """

    name: str
    k: int
    mode: Mode
    runs: int
    taught: int
    systems: BySystem
    slices: Mapping[str, BySystem]
    fifths: Mapping[str, BySystem]
    curve: tuple[Step, ...]
    quiet: float | None
    foreign: int
    milliseconds: float | None
    failures: int
    pairs: Floats = field(repr=False)


def evaluate(
    log: Log,
    *,
    settings: Settings | None = None,
    mode: Mode = "all",
    from_start: bool = True,
    controls: bool = True,
    tell: Tell | None = None,
) -> Evaluation:
    """Replay a log prequentially: each run is asked before it is taught, by the log's own clock.

    Args:
        log: What happened, and what the wrapped retriever answers.
        settings: Of the memory; None: the default ones.
        mode: What the memory learns from.
        from_start: Ask every run, for the learning curve; else the last fifth only.
        controls: Replay the controls too.
        tell: Told how far it is.
    """
    told = tell or _silence
    first = 0 if from_start else None
    split = split_at(len(log.runs))
    with _memory(log, settings or Settings(), mode) as learner:
        found = _replayed(log, learner, first, f"{log.name}: learning", told)
        now = log.runs[-1].t if log.runs else 0.0
        answers = [learner.ask(Run(now, query, ())) for query in log.foreign]
        failures = learner.failures
    rows: dict[str, Rows] = {"synapses": found.rows}
    if controls:
        rows |= _controls(log, found.rows, first, told)
    last = {name: [row for row in these if row.place >= split] for name, these in rows.items()}
    seconds = [row.answer.wrapped_seconds for row in found.rows]
    return Evaluation(
        log.name,
        log.k,
        mode,
        len(log.runs),
        found.taught,
        _measured(last),
        _slices(last, log.runs),
        _fifths(rows, len(log.runs)),
        _curve(rows),
        float(np.mean([set(one.wrapped) <= set(one.plain) for one in answers]))
        if answers
        else None,
        len(answers),
        1_000 * float(np.median(seconds)) if seconds else None,
        failures,
        np.array([row.recall for row in last["synapses"]], np.float64).reshape(-1, 2).T,
    )


def measure(rows: Rows) -> Measured:
    """All metrics of some asked queries."""
    return Measured(
        len(rows),
        {name: compared(rows, name) for name in METRICS},
        float(np.mean([row.is_harmed for row in rows])) if rows else 0.0,
        float(np.mean([row.entered > 0 for row in rows])) if rows else 0.0,
    )


def over_all(evaluations: Sequence[Evaluation]) -> Macro:
    """The gain in recall over several logs, each counted once."""
    return macro([(one.pairs[0], one.pairs[1]) for one in evaluations])


def _replayed(
    log: Log, learner: Learner[Any], first: int | None, stage: str, tell: Tell
) -> Replay[Any]:
    return replay(
        *(log.runs, learner),
        nodes=log.nodes,
        k=log.k,
        taught_before=first,
        progress=lambda done, total: tell(stage, done, total),
    )


@contextmanager
def _memory(log: Log, settings: Settings, mode: Mode) -> Iterator[SynapseLearner]:
    with tempfile.TemporaryDirectory(prefix="synapse-eval-", ignore_cleanup_errors=True) as folder:
        store = Path(folder) / "synapse.db"
        with open_learner(log, store, settings, mode=mode, seed=_SEED) as learner:
            yield learner


def _controls(log: Log, rows: Rows, first: int | None, tell: Tell) -> dict[str, Rows]:
    with _memory(log, Settings.paper(), "all") as learner:
        paper = _replayed(log, learner, first, f"{log.name}: the paper's settings", tell)
    entered = {row.run.query: row.entered for row in rows}
    popularity = _replayed(log, Popularity(log), first, f"{log.name}: popularity", tell)
    drawn = RandomDisplacement(log, entered, _SEED)
    at_random = _replayed(log, drawn, first, f"{log.name}: random displacement", tell)
    return {"paper": paper.rows, "popularity": popularity.rows, "random": at_random.rows}


def _measured(rows: Mapping[str, Rows]) -> BySystem:
    return {name: measure(these) for name, these in rows.items()}


def _slices(rows: Mapping[str, Rows], runs: Sequence[Run]) -> dict[str, BySystem]:
    likeness = slices.likeness(runs)
    cuts: dict[str, Callable[[Rows], Rows]] = {
        "novel queries": lambda these: slices.novel(these, likeness),
        "hubs left out": lambda these: slices.without_hubs(these, runs),
        "several nodes": slices.with_several,
    }
    return {
        part: _measured({name: cut(these) for name, these in rows.items()})
        for part, cut in cuts.items()
    }


def _fifths(rows: Mapping[str, Rows], runs: int) -> dict[str, BySystem]:
    parts = {name: slices.by_fifth(these, runs) for name, these in rows.items()}
    return {
        f"{20 * n}-{20 * n + 20} %": _measured({name: cut[n] for name, cut in parts.items()})
        for n in range(5)
        if parts["synapses"][n]
    }


def _curve(rows: Mapping[str, Rows]) -> tuple[Step, ...]:
    parts = {
        name: {low: (high, these) for low, high, these in slices.by_learned(every)}
        for name, every in rows.items()
    }
    return tuple(
        Step(low, high, _measured({name: part[low][1] for name, part in parts.items()}))
        for low, (high, _) in parts["synapses"].items()
    )


def _silence(_stage: str, _done: int, _total: int | None) -> None:
    """Tell nobody."""
