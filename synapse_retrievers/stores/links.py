"""Open connections by thread, and what becomes of them when the process forks."""

import ctypes
import os
import sqlite3
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

_FORK_WAIT_SECONDS = 1.0


_INHERITED: set[Path] = set()


def _keep_for_good(
    connection: object,
    increment: Callable[[object], None] = ctypes.pythonapi.Py_IncRef,
    reference: Callable[[object], object] = ctypes.py_object,
) -> None:
    """One reference more than there are keeps the destructor away."""
    increment(reference(connection))


class Link:
    """One connection, the process and the file it belongs to, and the transaction it is in.

    `in_use` is held while its thread is in a transaction, or while somebody closes it.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        path: Path,
        file: tuple[int, ...] | None,
        is_immutable: bool,
    ) -> None:
        self.connection = connection
        self.path = path
        self.file = file
        self.is_immutable = is_immutable
        self.pid = os.getpid()
        self.thread = threading.get_ident()
        self.in_use = threading.Lock()
        self.is_in_transaction = False
        self.is_writing = False
        self.is_spent = False
        self.is_closed = False
        self.inherited = _INHERITED

    def release(self) -> None:
        """Close what somebody asked to be closed meanwhile, and let go."""
        if self.is_spent:
            self.connection.close()
            self.is_closed = True
        self.in_use.release()

    def close(self) -> None:
        """Close now, or at the end of its transaction if its thread is in one."""
        self.is_spent = True
        if self.pid == os.getpid() and self.in_use.acquire(blocking=False):
            self.release()

    def rollback(self) -> None:
        """Undo what the transaction wrote; SQLite may have done so itself."""
        # A connection that cannot even roll back is closed by its caller, which undoes all.
        with suppress(sqlite3.Error):
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK")

    # Bound here, because the names of a module may be gone when the interpreter ends.
    def __del__(
        self,
        getpid: Callable[[], int] = os.getpid,
        keep: Callable[[object], None] = _keep_for_good,
    ) -> None:
        if self.is_closed:
            return
        if self.pid == getpid():
            self.connection.close()
        else:
            # Closing what the parent opened would roll back and checkpoint through memory that
            # the two processes share.
            keep(self.connection)
            self.inherited.add(self.path)


class LinkTable:
    """The links of one process to one file: a fork starts with a new table.

    `writer` is held by the thread that writes, `gate` while a link is made.
    """

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.local = threading.local()
        self.writer = threading.Lock()
        self.gate = threading.Lock()
        self.links: weakref.WeakValueDictionary[int, Link] = weakref.WeakValueDictionary()
        _TABLES.add(self)

    def of_this_thread(self) -> list[Link]:
        """The thread's links: the first for all, a second to write while the first reads."""
        if not hasattr(self.local, "links"):
            self.local.links = []
        links: list[Link] = self.local.links
        return links

    def add(self, link: Link, place: int) -> None:
        """Make it the thread's link."""
        self.of_this_thread().insert(place, link)
        self.links[id(link)] = link


_TABLES: weakref.WeakSet[LinkTable] = weakref.WeakSet()
_held: list[threading.Lock] = []


def is_inherited(path: Path) -> bool:
    """Whether this process was forked while its parent had a transaction on this file.

    SQLite then takes the parent's locks for this process's own, and whatever is written could be
    lost without a word.
    """
    return path in _INHERITED


def _hold(lock: threading.Lock) -> bool:
    if lock.acquire(timeout=_FORK_WAIT_SECONDS):
        _held.append(lock)
        return True
    return False


def _close_all() -> None:
    """Leave nothing open that the child would share; wait a little for transactions to end."""
    for table in list(_TABLES):
        if table.pid != os.getpid() or not _hold(table.gate):
            continue
        for link in list(table.links.values()):
            is_own = link.is_in_transaction and link.thread == threading.get_ident()
            if not link.is_closed and not is_own and _hold(link.in_use):
                link.connection.close()
                link.is_spent = link.is_closed = True


def _let_go() -> None:
    while _held:
        _held.pop().release()


def _note_inherited() -> None:
    _held.clear()
    for table in list(_TABLES):
        _INHERITED.update(link.path for link in table.links.values() if not link.is_closed)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_close_all, after_in_parent=_let_go, after_in_child=_note_inherited)
