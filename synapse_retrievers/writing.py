"""Writes that the store cannot take now wait in a bounded queue, in their order."""

import atexit
import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import TypeAlias
from weakref import WeakSet

from synapse_retrievers.errors import StoreBusyError, StoreError
from synapse_retrievers.guard import Guard
from synapse_retrievers.stores.base import Store

Job: TypeAlias = Callable[[Store], int]
"""A whole transaction; what it returns is what the caller is told."""

_LOGGER = logging.getLogger("synapse_retrievers")

WAITING = 1_000
"""How many writes wait at most; what overflows is counted as lost."""


AGAIN_SECONDS = 1.0
"""How long a store that was busy is not waited for again by what may wait itself."""


class Writing:
    """Runs jobs against a store that may be busy, away or broken for a while."""

    def __init__(
        self, store: Callable[[], Store], monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._store = store
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._draining = threading.Lock()
        self._waiting: deque[Job] = deque()
        self._busy_at = -AGAIN_SECONDS
        self.lost = 0
        _ALL.add(self)

    @property
    def waiting(self) -> int:
        """How many jobs wait."""
        return len(self._waiting)

    @property
    def is_busy(self) -> bool:
        """Whether somebody waited for the store in vain just now."""
        return self._monotonic() - self._busy_at < AGAIN_SECONDS

    def now(self, job: Job, wait_seconds: float | None = None) -> int:
        """Run what waits, unless another thread does so already, then the job.

        Args:
            job: To be done.
            wait_seconds: How long for a lock; None: as long as any write.

        Raises:
            StoreError: The job was not done, and does not wait.
        """
        error = None
        # Behind a thread that waits for the lock, the waits of all would add up.
        if self._waiting and self._draining.acquire(blocking=False):
            try:
                self._drain(wait_seconds)
            except StoreError as failed:
                error = failed
            finally:
                self._draining.release()
        if isinstance(error, StoreBusyError):
            raise error
        done = self._run(job, wait_seconds)
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
            # What waits must not vanish with the last retriever.
            _OWING.add(self)

    def drain(self) -> None:
        """Run what waits, in its order.

        Raises:
            StoreError: The first that could not be run, and all behind it, wait on.
        """
        with self._draining:
            self._drain(None)

    def _drain(self, wait_seconds: float | None) -> None:
        while True:
            with self._lock:
                job = self._waiting[0] if self._waiting else None
                if job is None:
                    _OWING.discard(self)
                    return
            self._run(job, wait_seconds)
            with self._lock:
                if self._waiting and self._waiting[0] is job:
                    self._waiting.popleft()

    def _run(self, job: Job, wait_seconds: float | None) -> int:
        try:
            store = self._store()
            if wait_seconds is None:
                return job(store)
            with store.batch(wait_seconds):
                return job(store)
        except StoreBusyError:
            self._busy_at = self._monotonic()
            raise

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
        self._lock, self._draining = threading.Lock(), threading.Lock()
        self._waiting.clear()


_ALL: "WeakSet[Writing]" = WeakSet()
_OWING: "set[Writing]" = set()


def _drain_all() -> None:
    guard = Guard("writing what waited at exit")
    for writing in list(_ALL):
        guard.run(writing.drain, None)


def _forget_all() -> None:
    _OWING.clear()
    for writing in list(_ALL):
        writing.forget()


atexit.register(_drain_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)
