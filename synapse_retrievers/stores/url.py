"""Which store a path or URL means; one object for each in the process."""

import copyreg
import os
import threading
import weakref
from pathlib import Path

from synapse_retrievers.errors import StoreError
from synapse_retrievers.stores.base import Store
from synapse_retrievers.stores.memory import MemoryStore
from synapse_retrievers.stores.sqlite import SQLiteStore

VARIABLE = "SYNAPSE_RETRIEVERS_STORE"
DEFAULT = "synapse.db"

_FILES: weakref.WeakValueDictionary[str, SQLiteStore] = weakref.WeakValueDictionary()
# Held for good: a memory that its name reaches must not vanish between two uses of it.
_MEMORIES: dict[str, MemoryStore] = {}
_LOCK = threading.Lock()

if hasattr(os, "register_at_fork"):
    # A lock that another thread holds while this one forks would stay locked in the child.
    os.register_at_fork(
        before=_LOCK.acquire, after_in_parent=_LOCK.release, after_in_child=_LOCK.release
    )


def open_store(where: str | os.PathLike[str] | None = None, *, must_open: bool = True) -> Store:
    """The store at a path or URL; the same object for the same place.

    Args:
        where: A path; `sqlite:///relative.db`, `sqlite:////absolute.db`; `memory:` (a new one
            each time) or `memory:name` (one a process); None = the environment's
            SYNAPSE_RETRIEVERS_STORE, else `synapse.db` in the working directory.
        must_open: False: a file is opened, and made, when it is first used.

    Raises:
        StoreError: There is no such kind of store, or it cannot be opened.
    """
    text = os.fspath(os.environ.get(VARIABLE) or DEFAULT if where is None else where)
    if isinstance(where, os.PathLike):
        return _open_file(text, must_open)
    scheme, colon, rest = text.partition(":")
    if colon and scheme == "memory":
        return _open_memory(rest)
    if text.startswith("sqlite:///"):
        return _open_file(text.removeprefix("sqlite:///"), must_open)
    # One letter before the colon is a Windows drive; a file name may hold a colon elsewhere.
    if colon and (rest.startswith("//") or scheme in {"sqlite", "postgresql", "postgres"}):
        raise StoreError(_no_such_store(scheme))
    return _open_file(text, must_open)


def place_of(where: object) -> str:
    """What is meant, for people: the absolute path of a file, else as given."""
    if isinstance(where, os.PathLike) or (isinstance(where, str) and ":" not in where):
        return str(Path(where).absolute())
    return "by default" if where is None else str(where)


def _no_such_store(scheme: str) -> str:
    known = "a path, sqlite:///file.db or memory:"
    if scheme == "sqlite":
        return f"a sqlite URL has three slashes before a path: give {known}"
    if scheme in {"postgresql", "postgres"}:
        return f"this release has no PostgreSQL store, a later one brings it: give {known}"
    return f"there is no {scheme!r} store: give {known}"


def _open_file(path: str, must_open: bool) -> SQLiteStore:
    if not path or "\0" in path:
        raise StoreError(f"{path!r} names no file: give a path or memory:")
    real = os.path.realpath(Path(path).expanduser())
    with _LOCK:
        store = _FILES.get(real)
        if store is None:
            store = _FILES[real] = SQLiteStore(real, must_open=False)
    if must_open:
        store.open()
    return store


def _open_memory(name: str) -> MemoryStore:
    if not name:
        return MemoryStore()
    with _LOCK:
        return _MEMORIES.setdefault(name, MemoryStore(name))


def _reduce(store: SQLiteStore | MemoryStore) -> tuple[object, tuple[str]]:
    if store.url == "memory:":
        raise StoreError("a private memory store cannot leave its process: name it, memory:name")
    return open_store, (store.url,)


copyreg.pickle(SQLiteStore, _reduce)  # type: ignore[arg-type]
copyreg.pickle(MemoryStore, _reduce)  # type: ignore[arg-type]
