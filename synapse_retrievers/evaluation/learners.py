"""What is compared on a log: the memory under several kinds of evidence, and controls."""

import random
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Literal, Self, TypeAlias

from synapse_retrievers.active_run import ActiveRun
from synapse_retrievers.evaluation.log import Log, Run
from synapse_retrievers.evaluation.replay import Answer
from synapse_retrievers.events.event import Result
from synapse_retrievers.params import LearningParams, RecallParams
from synapse_retrievers.recall.displace import Absent, displace, wanted
from synapse_retrievers.recall.explain import Trace
from synapse_retrievers.recall.fuse import boosted, fuse
from synapse_retrievers.recall.plan import Plan
from synapse_retrievers.seam import Call, Found, Seam
from synapse_retrievers.synapse import Synapse
from synapse_retrievers.types import Hit, NodeId

Mode: TypeAlias = Literal["all", "shown", "noisy", "garbage", "none", "midrun"]
"""What is learned from.

"all": everything that was used. "shown": what was used among what the memory itself returned (it
learns from its own choices). "noisy": the same, and every other run also reports two random
nodes. "garbage": as many random nodes in place of the used ones. "none": nothing. "midrun": as
"all", and one used node of each run is known before it asks.
"""


@dataclass(frozen=True, slots=True)
class Settings:
    """How a memory recalls and learns."""

    recall: RecallParams = field(default_factory=RecallParams)
    learning: LearningParams = field(default_factory=LearningParams)

    @classmethod
    def paper(cls) -> Self:
        """The seed paper's."""
        return cls(RecallParams.paper(), LearningParams.paper())


class SynapseLearner:
    """The memory around a plain result, as every integration puts it there; one log, one store."""

    def __init__(self, log: Log, synapse: Synapse, now: list[float], mode: Mode, seed: int) -> None:
        self._log = log
        self._synapse = synapse
        self._now = now
        self._mode = mode
        self._draw = random.Random(seed)  # noqa: S311 - it shall be predictable
        self._nodes = sorted(log.nodes)
        self._seam = Seam(synapse, "source", log.name)
        self._turn: tuple[Run, ActiveRun, tuple[NodeId, ...]] | None = None

    @property
    def failures(self) -> int:
        """Calls of the memory that failed, changed nothing and taught nothing."""
        self._synapse.flush()
        stats = self._synapse.stats()
        return stats.failures + stats.lost

    def ask(self, run: Run) -> Answer[Trace | None]:
        """The plain result and what the memory makes of it."""
        self._now[0] = run.t
        plain = self._log.plain(run)
        with self._synapse.run(run.query) as use:
            known: tuple[NodeId, ...] = ()
            if self._mode == "midrun" and run.used:
                known = (self._draw.choice(run.used),)
                use.used(known)
            start = perf_counter()
            results = [Result(node, chunk=None, source=node) for node in plain.nodes]
            recalled = self._seam.recall(Call(run.query, results, plain.scores), self._find)
            seconds = perf_counter() - start
        wrapped, trace = plain.nodes, None
        if recalled is not None:
            wrapped, trace = tuple(recalled.arrange(list(plain.nodes))), recalled.trace
        self._turn = (run, use, wrapped)
        return Answer(plain.nodes, wrapped, 0.0, seconds, trace, known)

    def teach(self, run: Run) -> None:
        """What the mode lets the memory know of the run."""
        self._now[0] = run.t
        if self._mode in {"shown", "noisy", "none"} and not self._is_asked(run):
            self.ask(run)
        use = self._turn[1] if self._turn is not None and self._is_asked(run) else None
        if use is None:
            with self._synapse.run(run.query) as use:
                pass
        if evidence := self._evidence(run):
            use.used(evidence)

    def _is_asked(self, run: Run) -> bool:
        return self._turn is not None and self._turn[0] is run

    def _evidence(self, run: Run) -> list[NodeId]:
        if self._mode == "none":
            return []
        if self._mode == "garbage":
            return self._random(len(run.used))
        if self._mode in {"all", "midrun"} or self._turn is None:
            return list(run.used)
        among = [node for node in run.used if node in self._turn[2]]
        is_noisy = self._mode == "noisy" and self._draw.random() < 0.5  # noqa: PLR2004 - every other
        return among + (self._random(2) if is_noisy else [])

    def _random(self, count: int) -> list[NodeId]:
        return self._draw.sample(self._nodes, min(count, len(self._nodes)))

    def _find(self, plan: Plan) -> Found:
        there = {node.id: node.id for node in plan.wanted if node.id in self._log.nodes}
        return Found({node: Result(node, source=node) for node in there}, there)


@contextmanager
def open_learner(
    log: Log, store: Path, settings: Settings, *, mode: Mode = "all", seed: int = 0
) -> Iterator[SynapseLearner]:
    """A memory in a new store, under the log's clock; closed at the end.

    Args:
        log: What will be replayed.
        store: A SQLite file that is not there yet.
        settings: How it recalls and learns.
        mode: What is learned from.
        seed: Of what is drawn at random.
    """
    now = [0.0]
    synapse = Synapse(
        store, clock=lambda: now[0], recall=settings.recall, learning=settings.learning
    )
    try:
        yield SynapseLearner(log, synapse, now, mode, seed)
    finally:
        synapse.close()


class Popularity:
    """A control: what was used most gets the energy, whatever is asked; fused as by default."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._used: Counter[NodeId] = Counter()
        self._params = RecallParams()

    def ask(self, run: Run) -> Answer[None]:
        """The plain result with the most used nodes raised and brought in."""
        plain = self._log.plain(run).nodes
        most = max(self._used.values(), default=0)
        energies = {node: count / most for node, count in self._used.most_common(64)}
        worths = fuse([Hit(node) for node in plain], energies, self._params)
        absent = [
            Absent(node, energy, boosted(energy, self._params))
            for node, energy in energies.items()
            if node not in plain
        ]
        places = displace(worths, wanted(worths, absent, self._params), self._params)
        wrapped = (
            plain[place.hit] if place.hit is not None else place.entered or "" for place in places
        )
        return Answer(plain, tuple(wrapped), 0.0, 0.0, None)

    def teach(self, run: Run) -> None:
        """Count."""
        self._used.update(run.used)


class RandomDisplacement:
    """A control: as many nodes come in as the memory brings in, drawn from those used before."""

    def __init__(self, log: Log, entered: Mapping[str, int], seed: int) -> None:
        self._log = log
        self._entered = entered
        self._draw = random.Random(seed)  # noqa: S311 - it shall be predictable
        self._used: dict[NodeId, None] = {}

    def ask(self, run: Run) -> Answer[None]:
        """The plain result with its last places given away."""
        plain = self._log.plain(run).nodes
        count = self._entered.get(run.query, 0)
        coming = self._drawn(plain, min(count, len(plain)))
        return Answer(plain, plain[: len(plain) - len(coming)] + coming, 0.0, 0.0, None)

    def teach(self, run: Run) -> None:
        """Remember what was used at all."""
        self._used.update(dict.fromkeys(run.used))

    def _drawn(self, plain: Collection[NodeId], count: int) -> tuple[NodeId, ...]:
        fit = [node for node in self._used if node not in plain]
        return tuple(self._draw.sample(fit, min(count, len(fit))))
