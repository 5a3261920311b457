"""What the caller is told when SQLite fails."""

import sqlite3

from synapse_retrievers.errors import StoreBusyError, StoreCorruptError, StoreError

_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_ADVICE = {
    sqlite3.SQLITE_READONLY: "is read-only: make the file and its directory writable, "
    "or name another file",
    sqlite3.SQLITE_FULL: "could not grow, the disk is full: free some space and call again",
    sqlite3.SQLITE_CANTOPEN: "cannot be opened: check that it is a file in an existing directory "
    "that this user may write",
    sqlite3.SQLITE_IOERR: "could not be read or written: check the disk, then call again",
}


def _code(error: sqlite3.Error) -> int:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def is_busy(error: sqlite3.Error) -> bool:
    """Whether another connection held the lock."""
    return _code(error) in _BUSY


def store_error(error: Exception, url: str, seconds: float) -> StoreError:
    """The store's error for one of the driver, of damaged records or of unfit text."""
    if isinstance(error, UnicodeEncodeError):
        return StoreError(f"{url} stores text that UTF-8 can hold, not {error.object!r:.100}")
    if not isinstance(error, sqlite3.Error):
        return StoreCorruptError(url, error)
    code = _code(error)
    if code in _BUSY:
        return StoreBusyError(url, seconds)
    if code in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB} or "no such " in str(error):
        return StoreCorruptError(url, error)
    return StoreError(f"{url} {_ADVICE.get(code, 'failed: run `synapse doctor`')} ({error})")
