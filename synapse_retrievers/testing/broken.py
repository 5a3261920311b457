"""Stores that cannot be used, each in its own way."""

import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

BROKEN = (
    "missing directory",
    "directory",
    "locked",
    "corrupt",
    "garbage",
    "truncated",
    "newer schema",
    "foreign tables",
)
"""Ways in which a store that was good can be unusable when a process opens it."""


@contextmanager
def broken(kind: str, path: Path) -> Iterator[None]:
    """The good, closed store at `path`, made unusable for the time of the block."""
    content = path.read_bytes()
    try:
        if kind == "locked":
            with _locked(path):
                yield
        else:
            _break(kind, path)
            yield
    finally:
        _remove(path)
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)


def _break(kind: str, path: Path) -> None:
    content = path.read_bytes()
    if kind == "newer schema":
        with closing(sqlite3.connect(path)) as file:
            file.execute("PRAGMA user_version = 99")
        return
    _remove(path)
    if kind == "missing directory":
        shutil.rmtree(path.parent)
    elif kind == "directory":
        path.mkdir()
    elif kind == "corrupt":
        path.write_bytes(content[:4096] + b"\xff" * (len(content) - 4096))
    elif kind == "garbage":
        path.write_bytes(b"this is no database at all\n" * 400)
    elif kind == "truncated":
        path.write_bytes(content[: len(content) // 2 + 100])
    elif kind == "foreign tables":
        with closing(sqlite3.connect(path)) as file:
            file.execute("CREATE TABLE namespace (what TEXT)")
            file.execute("PRAGMA user_version = 1")


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Nobody else can even read."""
    with closing(sqlite3.connect(path, isolation_level=None)) as file:
        file.execute("PRAGMA locking_mode = EXCLUSIVE")
        file.execute("BEGIN EXCLUSIVE")
        file.execute("CREATE TABLE held (one)")
        yield
        file.execute("ROLLBACK")


def _remove(path: Path) -> None:
    if path.is_dir():
        path.rmdir()
    for suffix in ("", "-wal", "-shm"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)


@contextmanager
def busy(path: Path) -> Iterator[None]:
    """Another connection holds the write lock; reading goes on."""
    with closing(sqlite3.connect(path, isolation_level=None)) as file:
        file.execute("BEGIN IMMEDIATE")
        yield
        file.execute("ROLLBACK")


@contextmanager
def read_only(path: Path) -> Iterator[None]:
    """Neither the file nor its directory can be written; skips where this user may all."""
    modes = {path: path.stat().st_mode, path.parent: path.parent.stat().st_mode}
    try:
        path.chmod(0o444)
        path.parent.chmod(0o555)
        if os.access(path, os.W_OK):
            pytest.skip("this user may write everything")
        yield
    finally:
        for place, mode in modes.items():
            place.chmod(mode)
