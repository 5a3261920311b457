"""Opens a store's file: creates it if it is missing, refuses what is no store."""

import os
import secrets
import sqlite3
import time
from contextlib import suppress
from pathlib import Path

from synapse_retrievers.errors import StoreCorruptError, StoreError
from synapse_retrievers.stores.base import SCHEMA
from synapse_retrievers.stores.driver_errors import is_busy, store_error
from synapse_retrievers.stores.links import Link, is_inherited
from synapse_retrievers.stores.migrations import migrate, version_of

READ_SECONDS = 0.1
"""How long a view may wait for a lock: a recall may be waiting for it."""
RETRY_SECONDS = 0.002

_IMMUTABLE = "ro&immutable=1"
_MAGIC = b"SQLite format 3\0"


def file_of(path: Path, *, is_immutable: bool) -> tuple[int, ...] | None:
    """Which file the path leads to now; None if there is none.

    An immutable connection sees nothing of what others write: to it that is another file.
    """
    try:
        found = os.stat(path)  # noqa: PTH116 - half the time of path.stat()
    except OSError:
        return None
    if not is_immutable:
        return found.st_dev, found.st_ino
    return found.st_dev, found.st_ino, found.st_mtime_ns, _wal_bytes(path)


def _wal_bytes(path: Path) -> int:
    try:
        return Path(f"{path}-wal").stat().st_size
    except OSError:
        return 0


def open_link(path: Path, url: str, wait_seconds: float) -> Link:
    """A connection of this thread to the file, at the schema of this release.

    Args:
        path: The file; made if it is missing.
        url: What errors call it.
        wait_seconds: How long a locked file is waited for.

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
    deadline = time.monotonic() + wait_seconds
    while True:
        try:
            mode = _mode(path)
            file = file_of(path, is_immutable=mode == _IMMUTABLE)
            return Link(_prepared(path, url, mode), path, file, mode == _IMMUTABLE)
        except sqlite3.Error as error:
            if not is_busy(error) or time.monotonic() > deadline:
                raise store_error(error, url, wait_seconds) from error
        time.sleep(RETRY_SECONDS)


def _create(path: Path, url: str) -> None:
    if path.exists():
        return
    # What a deleted file has left must be taken away under the file's own name.
    is_clean = not Path(f"{path}-wal").exists()
    try:
        if not (is_clean and _create_whole(path, url)):
            os.close(_new_file(path))
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
    if not is_clean:
        # Left by a file that was deleted while open; SQLite would take them for this one's.
        for suffix in ("-wal", "-shm"):
            Path(f"{path}{suffix}").unlink(missing_ok=True)


def _new_file(path: Path) -> int:
    return os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)


def _create_whole(path: Path, url: str) -> bool:
    """Make the file under another name first: nobody ever meets it locked and half made.

    Returns:
        Whether that can be done here: it takes hard links.
    """
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    os.close(_new_file(draft))
    try:
        _prepared(draft, url, "rw").close()
        os.link(draft, path)
    except FileExistsError:
        return True
    except (OSError, sqlite3.Error):
        return False
    finally:
        for suffix in ("", "-wal", "-shm"):
            with suppress(OSError):
                Path(f"{draft}{suffix}").unlink()
    return True


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


def _prepared(path: Path, url: str, mode: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"{path.as_uri()}?mode={mode}",
        uri=True,
        timeout=0.0,  # who waits, and how long, is said by each transaction
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
    # Reading a WAL file needs its shared memory, which cannot be made here.
    return "ro" if _wal_bytes(path) else _IMMUTABLE
