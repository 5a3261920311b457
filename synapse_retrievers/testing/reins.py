"""What a suite holds in its hands: the wrapped retriever, a store, a clock."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from synapse_retrievers.stores.memory import MemoryStore

_Found = TypeVar("_Found")

NOW = 1_700_000_000.0
"""The moment at which the suite's clock starts, in Unix seconds."""


@dataclass(slots=True)
class Wrapped:
    """The reins of the wrapped retriever: an adapter's stub or subclass asks it.

    Attributes:
        forced: What the wrapped retriever returns, or raises, instead of what it would find.
        fault: What fetching by id returns, or raises, instead of what it would find.
        lists: Every list that was returned, the very objects.
        fetches: How often absent objects were fetched.
    """

    forced: list[Any] | Exception | None = None
    fault: object = None
    lists: list[list[Any]] = field(default_factory=list)
    fetches: int = 0

    def answer(self, find: Callable[[], list[Any]]) -> list[Any]:
        """What the wrapped retriever shall return."""
        if isinstance(self.forced, Exception):
            raise self.forced
        found = find() if self.forced is None else self.forced
        self.lists.append(found)
        return found

    def fetched(self, find: Callable[[], _Found]) -> _Found:
        """What fetching shall return."""
        self.fetches += 1
        if isinstance(self.fault, Exception):
            raise self.fault
        if self.fault is not None:
            return None if self.fault == "none" else self.fault  # type: ignore[return-value]
        return find()


_CALLS = frozenset(
    """reading update batch mark_gone claim secret edges nodes episodes forget prune stats
    """.split()  # noqa: SIM905 - a list of words
)


def _is_on_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


class ReinedStore(MemoryStore):
    """A memory store that fails on demand and notes who calls it on an event loop's thread."""

    def __init__(self) -> None:
        super().__init__()
        self.fault: Exception | None = None
        self.calls: list[str] = []
        self.blocking: list[str] = []

    def __getattribute__(self, name: str) -> Any:
        if name in _CALLS:
            self.calls.append(name)
            if _is_on_loop():
                self.blocking.append(name)
            if self.fault is not None:
                raise self.fault
        return super().__getattribute__(name)


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self, now: float = NOW) -> None:
        self.now: float | Exception = now

    def __call__(self) -> float:
        if isinstance(self.now, Exception):
            raise self.now
        return self.now

    def forward(self, seconds: float) -> None:
        """Move it."""
        assert not isinstance(self.now, Exception)
        self.now += seconds
