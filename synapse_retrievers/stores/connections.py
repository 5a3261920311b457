"""Transactions of a SQLite store: one connection a thread, healed when the file was replaced."""

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

from synapse_retrievers.errors import StoreBusyError, StoreError
from synapse_retrievers.stores.driver_errors import is_busy, store_error
from synapse_retrievers.stores.links import Link, LinkTable
from synapse_retrievers.stores.opening import (
    READ_SECONDS,
    RETRY_SECONDS,
    file_of,
    open_link,
)
from synapse_retrievers.stores.packed import DamagedError


class Guard:
    """Turns failures of the driver inside its block into store errors."""

    def __init__(self, connections: "Connections", link: Link) -> None:
        self._connections = connections
        self._link = link

    def __enter__(self) -> None:
        return None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if not isinstance(error, sqlite3.Error | DamagedError | UnicodeEncodeError):
            return
        if isinstance(error, sqlite3.Error) and not is_busy(error):
            # The next call gets a new connection: a file that was mended by then is seen so.
            self._link.is_spent = True
        raise store_error(error, self._connections.url, self._connections.busy_seconds) from error


class Connections:
    """Opens the file for each thread that asks, and runs transactions."""

    def __init__(self, path: Path, url: str, busy_seconds: float) -> None:
        self.path = path
        self.url = url
        self.busy_seconds = busy_seconds
        self._table = LinkTable()

    def open(self) -> None:
        """Open the file for this thread, waiting for a lock as a write does."""
        if not self._current():
            self._taken(0, self.busy_seconds).release()

    @contextmanager
    def reading(self) -> Iterator[Link]:
        """One view of the file; inside a transaction of this thread, what that sees."""
        link = self._current()
        if link:
            yield link
            return
        link = self._taken(0, min(self.busy_seconds, READ_SECONDS))
        self._begin(link, "DEFERRED", READ_SECONDS)
        try:
            yield link
        finally:
            self._end(link, "ROLLBACK")

    @contextmanager
    def writing(self, wait_seconds: float | None = None) -> Iterator[Link]:
        """One write transaction, or a part of the one that this thread is in.

        Args:
            wait_seconds: How long for the lock; None: `busy_seconds`.
        """
        current = self._current()
        if current and current.is_writing:
            with self._savepoint(current):
                yield current
            return
        seconds = self.busy_seconds if wait_seconds is None else wait_seconds
        writer = self._own_table().writer
        if not writer.acquire(timeout=seconds):
            raise StoreBusyError(self.url, seconds)
        try:
            # A thread that writes inside its own view needs a second connection: SQLite would
            # refuse to turn the old snapshot of the first into a writer.
            link = self._taken(1 if current else 0, seconds)
            self._begin(link, "IMMEDIATE", seconds)
            try:
                yield link
            except BaseException:
                self._end(link, "ROLLBACK")
                raise
            self._end(link, "COMMIT")
        finally:
            writer.release()

    def guard(self, link: Link) -> Guard:
        """A block in which failures of the driver become store errors."""
        return Guard(self, link)

    def close(self) -> None:
        """Close every connection of this process; those in a transaction close at its end."""
        for link in list(self._own_table().links.values()):
            link.close()

    def _own_table(self) -> LinkTable:
        if self._table.pid != os.getpid():
            self._table = LinkTable()
        return self._table

    def _current(self) -> Link | None:
        """The link of the transaction that this thread is in, the writing one first."""
        links = [link for link in self._own_table().of_this_thread() if link.is_in_transaction]
        return max(links, key=lambda link: link.is_writing, default=None)

    def _taken(self, place: int, seconds: float) -> Link:
        """The thread's link, open and with its `in_use` held, which `_end` releases."""
        table = self._own_table()
        links = table.of_this_thread()
        if place < len(links):
            link = links[place]
            link.in_use.acquire()
            if not link.is_spent and link.file == file_of(
                self.path, is_immutable=link.is_immutable
            ):
                return link
            link.is_spent = True
            link.release()
            del links[place]
        if not table.gate.acquire(timeout=max(seconds, READ_SECONDS)):
            raise StoreBusyError(self.url, seconds)
        try:
            link = open_link(self.path, self.url, seconds)
            link.in_use.acquire()
            table.add(link, place)
        finally:
            table.gate.release()
        return link

    def _begin(self, link: Link, kind: str, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while True:
            try:
                link.connection.execute(f"BEGIN {kind}")
                if kind == "DEFERRED":
                    # BEGIN alone takes no snapshot, the first read does.
                    link.connection.execute("SELECT 1 FROM namespace").fetchone()
            except sqlite3.Error as error:
                link.rollback()
                if not is_busy(error) or time.monotonic() >= deadline:
                    link.is_spent = link.is_spent or not is_busy(error)
                    link.release()
                    raise store_error(error, self.url, seconds) from error
            else:
                link.is_in_transaction, link.is_writing = True, kind == "IMMEDIATE"
                return
            time.sleep(RETRY_SECONDS)

    def _end(self, link: Link, how: str) -> None:
        if link.pid != os.getpid():
            # The block was entered before a fork: the transaction is the parent's to end.
            return
        link.is_in_transaction = link.is_writing = False
        try:
            with self.guard(link):
                if how == "COMMIT":
                    link.connection.execute("COMMIT")
        finally:
            link.rollback()
            link.release()

    @contextmanager
    def _savepoint(self, link: Link) -> Iterator[None]:
        if not link.connection.in_transaction:
            raise StoreError(f"{self.url}: an earlier error undid this batch: begin it anew")
        link.connection.execute("SAVEPOINT part")
        try:
            yield
        except BaseException:
            with self.guard(link):
                if link.connection.in_transaction:
                    link.connection.execute("ROLLBACK TO part")
                    link.connection.execute("RELEASE part")
            raise
        with self.guard(link):
            link.connection.execute("RELEASE part")
