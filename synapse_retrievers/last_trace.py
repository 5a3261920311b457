"""The last trace of a retriever as the asking context sees it, safe under concurrency."""

import asyncio
import threading
from contextvars import ContextVar
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from synapse_retrievers.recall.explain import Trace


@dataclass(slots=True)
class _Cell:
    """Traces of one thread or task, and the cell of the context that it was started from."""

    owner: tuple[int, int]
    parent: "_Cell | None"
    depth: int
    traces: "WeakKeyDictionary[LastTrace, Trace]" = field(default_factory=WeakKeyDictionary)


_DEEPEST = 8

_CELL: ContextVar[_Cell | None] = ContextVar("synapse_last_trace", default=None)


class LastTrace:
    """One retriever's last trace.

    A context sees its own last recall, or one that it started itself: a chain runs its steps in
    copies of the caller's context, which `mark_context` makes known. A context that was in neither
    sees the newest of all.
    """

    def __init__(self) -> None:
        self._newest: Trace | None = None

    def set(self, trace: Trace) -> None:
        """Note the trace for this context and the ones it was started from."""
        self._newest = trace
        told: _Cell | None = mark_context()
        while told is not None:
            told.traces[self] = trace
            told = told.parent

    def get(self) -> Trace | None:
        """The last trace; None before the first recall."""
        cell = _CELL.get()
        own = cell.traces.get(self) if cell is not None else None
        return own if own is not None else self._newest


def mark_context() -> _Cell:
    """Make this thread or task known to the contexts that it starts from now on."""
    cell, owner = _CELL.get(), _owner()
    if cell is None or cell.owner != owner:
        # A task that starts its successor, for ever, must not grow a chain for ever.
        parent = cell if cell is not None and cell.depth < _DEEPEST else None
        cell = _Cell(owner, parent, parent.depth + 1 if parent is not None else 0)
        _CELL.set(cell)
    return cell


def _owner() -> tuple[int, int]:
    """The running thread and task: copies of a context inside them are still theirs."""
    try:
        task = asyncio.current_task()
    except RuntimeError:
        task = None
    return threading.get_ident(), id(task)
