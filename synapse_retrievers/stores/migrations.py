"""The schema of a SQLite store, as numbered steps."""

import sqlite3
from dataclasses import dataclass

from synapse_retrievers.errors import StoreCorruptError, StoreVersionError
from synapse_retrievers.stores.base import SCHEMA

APPLICATION_ID = 0x53594E52
"""Marks the file as ours (the letters SYNR)."""


@dataclass(frozen=True, slots=True)
class Step:
    """One change of the schema; `version` is the schema after it."""

    version: int
    name: str
    statements: tuple[str, ...]


STEPS = (
    Step(
        1,
        "initial",
        (
            "CREATE TABLE migration (version INTEGER PRIMARY KEY, name TEXT NOT NULL)",
            "CREATE TABLE meta (key TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID",
            (
                "CREATE TABLE namespace (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE,"
                " node_kind TEXT, collection TEXT, next_episode INTEGER NOT NULL DEFAULT 1,"
                " episodes INTEGER NOT NULL DEFAULT 0)"
            ),
            "CREATE TABLE node (id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE)",
            # The records stand last: a scan of the columns before them then never loads the
            # overflow pages.
            (
                "CREATE TABLE adjacency (id INTEGER PRIMARY KEY, first INTEGER NOT NULL,"
                " degree INTEGER NOT NULL, used REAL NOT NULL, used_at REAL NOT NULL, gone_at REAL,"
                " segments INTEGER NOT NULL, records BLOB NOT NULL)"
            ),
            (
                "CREATE TABLE episode (id INTEGER PRIMARY KEY, namespace INTEGER NOT NULL,"
                " query TEXT NOT NULL, renewed_at REAL NOT NULL, uses BLOB NOT NULL,"
                " terms BLOB NOT NULL, UNIQUE (namespace, query))"
            ),
            "CREATE INDEX episode_renewed ON episode (namespace, renewed_at)",
            (
                "CREATE TABLE term (id INTEGER PRIMARY KEY, namespace INTEGER NOT NULL,"
                " term TEXT NOT NULL, df INTEGER NOT NULL, UNIQUE (namespace, term))"
            ),
            "CREATE TABLE posting (id INTEGER PRIMARY KEY, records BLOB NOT NULL)",
            (
                "CREATE TABLE lesson (namespace INTEGER NOT NULL, key BLOB NOT NULL,"
                " taught_at REAL NOT NULL, PRIMARY KEY (namespace, key)) WITHOUT ROWID"
            ),
            "CREATE INDEX lesson_taught ON lesson (namespace, taught_at)",
        ),
    ),
)


def version_of(connection: sqlite3.Connection, url: str) -> int:
    """The schema version of an open file, 0 for a new one.

    Raises:
        StoreVersionError: A newer release wrote it.
        StoreCorruptError: It is a database of something else.
    """
    application, version, objects = _marks(connection)
    if application == APPLICATION_ID:
        if version > SCHEMA:
            raise StoreVersionError(url, version, SCHEMA)
        return version
    if application or version or objects:
        raise StoreCorruptError(url, "it is a database of another application")
    return 0


def _marks(connection: sqlite3.Connection) -> tuple[int, int, int]:
    """Application id, version and number of tables, all of one moment."""
    is_own = not connection.in_transaction
    # One snapshot: another process may be making this very file a store just now.
    if is_own:
        connection.execute("BEGIN")
    try:
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        (objects,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    finally:
        if is_own and connection.in_transaction:
            connection.execute("ROLLBACK")
    return int(application), int(version), int(objects)


def migrate(connection: sqlite3.Connection, url: str) -> None:
    """Bring the file to this release's schema; a step and its record are one transaction."""
    for step in STEPS:
        if step.version <= version_of(connection, url):
            continue
        connection.execute("BEGIN IMMEDIATE")
        try:
            # Another process may have done the step while this one waited for the lock.
            if step.version > version_of(connection, url):
                _apply(connection, step)
            connection.execute("COMMIT")
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")


def _apply(connection: sqlite3.Connection, step: Step) -> None:
    for statement in step.statements:
        connection.execute(statement)
    connection.execute("INSERT INTO migration VALUES (?, ?)", (step.version, step.name))
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {step.version}")
