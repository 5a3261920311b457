"""The bounded memory of running runs: who retrieved what, and what an LLM was given of it."""

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from synapse_retrievers.events.event import Answered, Prompted, Retrieved
from synapse_retrievers.events.needle import Needle, found, needles
from synapse_retrievers.events.run import Run
from synapse_retrievers.types import Namespace, NodeId

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")

TEXT_SECONDS = 600.0
"""How long the texts of a run are kept."""
RUNNING = 256
"""How many retrievals and prompts are kept with their texts."""
RUN_SECONDS = 3_600.0
"""How long a run can be found for feedback."""
RUNS = 10_000
"""How many runs can be found for feedback."""
_UNCLAIMED = 64
"""How many of the newest retrievals of other roots a prompt is compared with."""


@dataclass(slots=True)
class _Pending:
    """A retrieval whose texts may still turn up in a prompt."""

    event: Retrieved
    run: Run
    claimed_by: str | None = None
    _needles: list[Needle] | None = None

    @property
    def needles(self) -> list[Needle]:
        """By what its texts are recognized; made when the first prompt comes, not in the recall."""
        if self._needles is None:
            self._needles = needles([one.text for one in self.event.results])
        return self._needles


@dataclass(frozen=True, slots=True)
class Given:
    """What an LLM was given of one retrieval: the run, the retrieval, places in its results."""

    run: Run
    event: Retrieved
    places: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Asked:
    """A prompt that holds texts of ours, until it is answered."""

    prompt: str
    given: tuple[Given, ...]
    at: float


class Ledger:
    """Thread-safe, bounded in number and time; texts live here only and are never stored."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._pending: OrderedDict[str, _Pending] = OrderedDict()
        self._asked: OrderedDict[str, _Asked] = OrderedDict()
        self._runs: OrderedDict[tuple[str, int, Namespace], Run] = OrderedDict()
        self.ambiguous = 0

    def __len__(self) -> int:
        """How many retrievals, prompts and runs it holds."""
        with self._lock:
            return len(self._pending) + len(self._asked) + len(self._runs)

    def clear(self) -> None:
        """Forget everything (a forked child starts empty)."""
        self.__init__()  # type: ignore[misc]  # a new lock too: the old one may be held

    def run(self, key: str, owner: object, namespace: Namespace, at: float) -> Run:
        """The run of this key in this memory and namespace; a new one if it is not known."""
        with self._lock:
            known = self._runs.get((key, _memory(owner), namespace))
            if known is None:
                known = Run(key, namespace, owner, at)
                self._runs[key, _memory(owner), namespace] = known
            known.seen_at = at
            self._runs.move_to_end((key, _memory(owner), namespace))
            self._drop_old_runs(at)
            return known

    def _drop_old_runs(self, at: float) -> None:
        _trim(self._runs, RUNS, lambda run: at - run.seen_at > RUN_SECONDS)

    def find(self, key: str, owner: object, at: float) -> list[Run]:
        """The runs of this key in this memory, in any namespace, that are not over by `at`."""
        with self._lock:
            self._drop_old_runs(at)
            return [
                run
                for run in self._runs.values()
                if run.key == key and _memory(run.owner) == _memory(owner)
            ]

    def newest(self, query: str, owner: object, namespace: Namespace, at: float) -> Run | None:
        """The newest run that asked this query there and is not over by `at`."""
        with self._lock:
            self._drop_old_runs(at)
            for run in reversed(self._runs.values()):
                if (
                    _memory(run.owner) == _memory(owner)
                    and run.namespace == namespace
                    and query in run.queries
                ):
                    return run
        return None

    def used_in(self, key: str, owner: object, namespace: Namespace) -> tuple[NodeId, ...]:
        """What the run is known to have used."""
        with self._lock:
            run = self._runs.get((key, _memory(owner), namespace))
        return tuple(run.used) if run is not None else ()

    def retrieved(self, event: Retrieved, key: str | None = None) -> Run:
        """Note a retrieval; `key` names its run where that is not its root."""
        run = self.run(key or event.root_id, event.owner, event.namespace, event.at)
        known = [one for one in event.results if one.node is not None]
        # Backwards: of several chunks of a document the best placed one stands for it.
        chunks = {one.node: one.chunk for one in reversed(known) if one.node and one.chunk}
        run.asked(event.query, [one.node for one in known if one.node], event.carriers, chunks)
        with self._lock:
            self._pending[event.run_id] = _Pending(event, run)
            _trim(self._pending, RUNNING, lambda one: event.at - one.event.at > TEXT_SECONDS)
        return run

    def release(self, owner: object) -> None:
        """Forget the texts that wait for a memory which is closed."""
        with self._lock:
            closed = [key for key, one in self._pending.items() if one.event.owner is owner]
            for key in closed:
                del self._pending[key]

    def results_of(self, root_id: str) -> list[tuple[Run, Retrieved]]:
        """The retrievals of a root that are still kept with their texts."""
        with self._lock:
            return [
                (one.run, one.event)
                for one in self._pending.values()
                if root_id in (one.event.root_id, one.run.key)
            ]

    def prompted(self, event: Prompted) -> None:
        """Note which pending retrievals the prompt holds texts of.

        Those of the same root; if it has none, the single newest unclaimed one whose texts occur,
        provided that all that match belong to one memory and namespace.
        """
        with self._lock:
            pending = [
                one for one in self._pending.values() if event.at - one.event.at <= TEXT_SECONDS
            ]
        own = [one for one in pending if event.root_id in (one.event.root_id, one.claimed_by)]
        if own:
            given = _given(event.text, own)
        else:
            given = self._unclaimed(event, [one for one in pending if one.claimed_by is None])
        with self._lock:
            if not own:  # another prompt may have claimed it while its texts were compared
                given = [one for one in given if self._claimed_by(one) in (None, event.root_id)]
            for one in given:
                if (waiting := self._pending.get(one.event.run_id)) is not None:
                    waiting.claimed_by = event.root_id
        if given:
            with self._lock:
                self._asked[event.run_id] = _Asked(event.text, tuple(given), event.at)
                _trim(self._asked, RUNNING, lambda one: event.at - one.at > TEXT_SECONDS)

    def _claimed_by(self, one: Given) -> str | None:
        waiting = self._pending.get(one.event.run_id)
        return waiting.claimed_by if waiting is not None else None

    def _unclaimed(self, event: Prompted, unclaimed: list[_Pending]) -> list[Given]:
        newest = unclaimed[: -_UNCLAIMED - 1 : -1]
        given = _given(event.text, newest)
        if len({(_memory(one.run.owner), one.run.namespace) for one in given}) > 1:
            with self._lock:
                self.ambiguous += 1
            return []
        return given[:1]

    def answered(self, event: Answered) -> tuple[str, tuple[Given, ...]]:
        """The prompt that was answered and what it held of ours; each is handed out once."""
        with self._lock:
            asked = self._asked.pop(event.run_id, None)
        return (asked.prompt, asked.given) if asked is not None else ("", ())


def _memory(owner: object) -> int:
    """One number for all owners of one store: they teach the same memory."""
    return id(getattr(owner, "memory", owner))


def _given(prompt: str, pending: list[_Pending]) -> list[Given]:
    marks = [mark for one in pending for mark in one.needles]
    stands = found(prompt, marks)
    given, start = [], 0
    for one in pending:
        end = start + len(one.needles)
        places = tuple(place for place, is_in in enumerate(stands[start:end]) if is_in)
        if places:
            given.append(Given(one.run, one.event, places))
        start = end
    return given


def _trim(entries: OrderedDict[_Key, _Value], most: int, is_over: Callable[[_Value], bool]) -> None:
    """Drop the oldest entries above `most`, and those whose time is over, from the old end on."""
    while entries and (len(entries) > most or is_over(next(iter(entries.values())))):
        entries.popitem(last=False)
