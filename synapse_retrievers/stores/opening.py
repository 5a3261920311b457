"""Opens a store's file: creates it if it is missing, refuses what is no store."""

import os
import sqlite3
import time
from pathlib import Path

from synapse_retrievers.errors import StoreCorruptError, StoreError
from synapse_retrievers.stores.base import SCHEMA
from synapse_retrievers.stores.driver_errors import is_busy, store_error
from synapse_retrievers.stores.links import Link, is_inherited
from synapse_retrievers.stores.migrations import migrate, version_of

BUSY_TIMEOUT_SECONDS = 0.1
"""How long one statement may wait for a lock."""
RETRY_SECONDS = 0.002

_MAGIC = b"SQLite format 3\0"


def file_of(path: Path) -> tuple[int, int] | None:
    """Which file the path leads to now; None if there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


_LOCKED_SECONDS = 0.1


def open_link(path: Path, url: str, busy_seconds: float) -> Link:
    """A connection of this thread to the file, at the schema of this release.

    Raises:
        StoreCorruptError: The file is damaged or is no store.
        StoreVersionError: A newer release wrote it.
        StoreBusyError: It stayed locked.
        StoreError: It cannot be opened or created.
    """
    if is_inherited(path):
        raise StoreError(
            f"this process was forked while a transaction on {url} was open, its locks cannot be "
            "told apart: fork outside of `reading` and `batch`, or start processes by spawn"
        )
    _create(path, url)
    _check_magic(path, url)
    # Somebody may be creating the same new file just now; one that is there and locked is not
    # waited for, because a recall may be waiting for us.
    is_new = path.stat().st_size == 0
    deadline = time.monotonic() + (busy_seconds if is_new else min(busy_seconds, _LOCKED_SECONDS))
    while True:
        try:
            return Link(_prepared(path, url), path, file_of(path) or (0, 0))
        except sqlite3.Error as error:
            if not is_busy(error) or time.monotonic() > deadline:
                raise store_error(error, url, busy_seconds) from error
        time.sleep(RETRY_SECONDS)


def _create(path: Path, url: str) -> None:
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        return
    except FileNotFoundError as error:
        raise StoreError(
            f"{url}: the directory {path.parent} does not exist: create it, or name another file"
        ) from error
    except OSError as error:
        raise StoreError(
            f"{url} cannot be created ({error.strerror}): make the directory writable, "
            "or name another file"
        ) from error
    # Left by a file that was deleted while open; SQLite would take them for this one's.
    for suffix in ("-wal", "-shm"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)


def _check_magic(path: Path, url: str) -> None:
    """Refuse what SQLite takes for an empty database, because it is so short."""
    try:
        with path.open("rb") as file:
            start = file.read(len(_MAGIC))
    except OSError as error:
        raise StoreError(
            f"{url} cannot be opened ({error.strerror}): check that it is a file that this user "
            "may read, or name another file"
        ) from error
    if start and start != _MAGIC:
        raise StoreCorruptError(url, "it is no SQLite file")


def _prepared(path: Path, url: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"{path.as_uri()}?mode={_mode(path)}",
        uri=True,
        timeout=BUSY_TIMEOUT_SECONDS,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=256,
    )
    try:
        version = version_of(connection, url)
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA cache_size = -16000")
        if version != SCHEMA:
            connection.execute("PRAGMA journal_mode = WAL")
            migrate(connection, url)
    except BaseException:
        connection.close()
        raise
    return connection


def _mode(path: Path) -> str:
    if os.access(path, os.W_OK) and os.access(path.parent, os.W_OK):
        return "rw"
    wal = Path(f"{path}-wal")
    # Reading a WAL file needs its shared memory; where that cannot be made, nobody writes.
    return "ro" if wal.exists() and wal.stat().st_size else "ro&immutable=1"
