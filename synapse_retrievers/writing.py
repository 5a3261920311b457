"""Writes that the store cannot take now wait in a bounded queue, in their order."""

import logging
import threading
from collections import deque
from collections.abc import Callable
from typing import TypeAlias

from synapse_retrievers.errors import StoreBusyError, StoreError
from synapse_retrievers.stores.base import Store

Job: TypeAlias = Callable[[Store], int]
"""A whole transaction; what it returns is what the caller is told."""

_LOGGER = logging.getLogger("synapse_retrievers")

WAITING = 1_000
"""How many writes wait at most; what overflows is counted as lost."""


class Writing:
    """Runs jobs against a store that may be busy, away or broken for a while."""

    def __init__(self, store: Callable[[], Store]) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._waiting: deque[Job] = deque()
        self.lost = 0

    @property
    def waiting(self) -> int:
        """How many jobs wait."""
        return len(self._waiting)

    def now(self, job: Job) -> int:
        """Run what waits, then the job.

        Raises:
            StoreError: The job was not done, and does not wait.
        """
        error = self.try_drain()
        if isinstance(error, StoreBusyError):
            raise error
        done = job(self._store())
        if error is not None:
            self._drop(error)
        return done

    def later(self, job: Job) -> None:
        """Let the job wait; the one that waits longest is lost if there is no room."""
        with self._lock:
            if len(self._waiting) >= WAITING:
                self._waiting.popleft()
                self.lost += 1
            self._waiting.append(job)

    def drain(self) -> None:
        """Run what waits, in its order.

        Raises:
            StoreError: The first that could not be run, and all behind it, wait on.
        """
        while self._waiting:
            with self._lock:
                if not self._waiting:
                    return
                job = self._waiting[0]
                job(self._store())
                self._waiting.popleft()

    def _drop(self, error: StoreError) -> None:
        """Lose the first that waits: the store works, and yet refuses it (`error`)."""
        with self._lock:
            if self._waiting:
                self._waiting.popleft()
                self.lost += 1
        _LOGGER.warning("a lesson was lost, the store refuses it: %s", error)

    def try_drain(self) -> StoreError | None:
        """As `drain`, but returns what stopped it."""
        try:
            self.drain()
        except StoreError as error:
            return error
        return None

    def forget(self) -> None:
        """Drop what waits: a forked child must not write its parent's jobs a second time."""
        self._lock = threading.Lock()
        self._waiting.clear()
