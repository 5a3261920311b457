"""Work that must not be done on an event loop's thread is handed to one worker, in order."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as LateError


class Soon:
    """One worker thread, started when it is first needed and joined at exit."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._worker: ThreadPoolExecutor | None = None
        self._thread: int | None = None
        self._last: Future[object] | None = None

    @staticmethod
    def is_on_loop() -> bool:
        """Whether an event loop runs on this thread."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return False
        return True

    def submit(self, action: Callable[[], object]) -> None:
        """Do it after everything that was handed over before."""
        with self._lock:
            if self._worker is None:
                self._worker = ThreadPoolExecutor(1, "synapse", self._note_thread)
            self._last = self._worker.submit(action)

    def settle(self, seconds: float | None = None) -> None:
        """Wait until everything that was handed over before is done; at once on the worker.

        Args:
            seconds: How long at most; None: without end.
        """
        last = self._last
        if last is not None and threading.get_ident() != self._thread:
            try:
                last.exception(seconds)
            except LateError:
                return
            self._last = None if self._last is last else self._last

    def forget(self) -> None:
        """A forked child has no worker yet, and does nothing of its parent's."""
        self.__init__()  # type: ignore[misc]  # a new lock too: the old one may be held

    def _note_thread(self) -> None:
        self._thread = threading.get_ident()
