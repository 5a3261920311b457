"""The default store: one SQLite file."""

import os
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from synapse_retrievers.stores import sqlite_listing, sqlite_removal
from synapse_retrievers.stores.adjacency import number_list
from synapse_retrievers.stores.base import SCHEMA, Rule
from synapse_retrievers.stores.connections import Connections
from synapse_retrievers.stores.episodes import node_numbers
from synapse_retrievers.stores.packed import header_ids
from synapse_retrievers.stores.sqlite_reader import SQLiteReader
from synapse_retrievers.stores.sqlite_update import Update, namespace_number
from synapse_retrievers.types import (
    Bools,
    Changes,
    Edge,
    EdgeStates,
    Episode,
    Namespace,
    Node,
    NodeId,
    Removed,
    StoreStats,
)


class SQLiteStore:
    """Edges and episodes in one file, shared by any number of threads and processes.

    Args:
        path: The file; created if it is missing, its directory is not.
        busy_seconds: How long a write waits for the lock.
        must_open: False: the file is opened, and made, when it is first used.

    Raises:
        StoreCorruptError: The file is damaged or is no store.
        StoreVersionError: A newer release wrote it.
        StoreError: It cannot be opened or created.
    """

    def __init__(
        self, path: str | os.PathLike[str], busy_seconds: float = 1.0, *, must_open: bool = True
    ) -> None:
        absolute = Path(os.path.realpath(path))
        self._path = absolute
        self._url = f"sqlite:///{absolute}"
        self._connections = Connections(absolute, self._url, busy_seconds)
        if must_open:
            self.open()

    def open(self) -> None:
        """Open the file for this thread, waiting for a lock as a write does.

        Raises:
            StoreError: It cannot be opened or created.
        """
        self._connections.open()

    @property
    def url(self) -> str:
        return self._url

    def __repr__(self) -> str:
        return f"SQLiteStore({str(self._path)!r})"

    def __copy__(self) -> "SQLiteStore":
        return self

    def __deepcopy__(self, memo: object) -> "SQLiteStore":
        return self

    @contextmanager
    def reading(self, namespaces: Sequence[Namespace]) -> Iterator[SQLiteReader]:
        with self._connections.reading() as link:
            yield SQLiteReader(self._connections, link, namespaces)

    def update(
        self,
        namespace: Namespace,
        nodes: Sequence[NodeId],
        rule: Rule,
        *,
        query: str | None = None,
        run_key: bytes | None = None,
    ) -> Changes:
        with self._connections.writing() as link:
            guard = self._connections.guard(link)
            update = Update(link.connection, namespace, nodes, query, run_key)
            with guard:
                stored = update.read()
            changes = rule(stored)
            with guard:
                update.write(changes)
        return changes

    @contextmanager
    def batch(self, wait_seconds: float | None = None) -> Iterator[None]:
        with self._connections.writing(wait_seconds):
            yield

    def mark_gone(self, namespace: Namespace, ids: Sequence[NodeId], at: float | None) -> None:
        wanted = "IS NULL" if at is not None else "IS NOT NULL"
        condition = f"id IN (SELECT value FROM json_each(?)) AND gone_at {wanted}"
        # Nearly always there is nothing to do, and looking needs no lock.
        with self._connections.reading() as link, self._connections.guard(link):
            number = namespace_number(link.connection, namespace)
            known = node_numbers(link.connection, list(ids)) if number else {}
            if not known:
                return
            rows = header_ids(number, np.array(list(known.values()), dtype=np.int64))
            listed = number_list(rows.tolist())
            if not link.connection.execute(
                f"SELECT 1 FROM adjacency WHERE {condition} LIMIT 1", (listed,)
            ).fetchone():
                return
        with self._connections.writing() as link, self._connections.guard(link):
            link.connection.execute(
                f"UPDATE adjacency SET gone_at = ? WHERE {condition}", (at, listed)
            )

    def claim(
        self,
        namespace: Namespace,
        node_kind: str,
        collection: str,
        wait_seconds: float | None = None,
    ) -> tuple[str, str]:
        select = "SELECT node_kind, collection FROM namespace WHERE name = ?"
        with self._connections.reading() as link, self._connections.guard(link):
            found = link.connection.execute(select, (namespace,)).fetchone()
        if found and found[0] is not None:
            return found[0], found[1]
        with (
            self._connections.writing(wait_seconds) as link,
            self._connections.guard(link),
        ):
            number = namespace_number(link.connection, namespace, create=True)
            link.connection.execute(
                "UPDATE namespace SET node_kind = ?, collection = ?"
                " WHERE id = ? AND node_kind IS NULL",
                (node_kind, collection, number),
            )
            found = link.connection.execute(select, (namespace,)).fetchone()
        return found[0], found[1]

    def secret(self) -> bytes:
        select = "SELECT value FROM meta WHERE key = 'secret'"
        with self._connections.reading() as link, self._connections.guard(link):
            found = link.connection.execute(select).fetchone()
        if not found:
            with self._connections.writing() as link, self._connections.guard(link):
                link.connection.execute(
                    "INSERT OR IGNORE INTO meta VALUES ('secret', ?)", (secrets.token_bytes(32),)
                )
                found = link.connection.execute(select).fetchone()
        return bytes(found[0])

    def edges(self, namespace: Namespace | None = None) -> Iterator[Edge]:
        with self._connections.reading() as link, self._connections.guard(link):
            return sqlite_listing.edges(link.connection, namespace)

    def nodes(self, namespace: Namespace | None = None) -> Iterator[Node]:
        with self._connections.reading() as link, self._connections.guard(link):
            return sqlite_listing.nodes(link.connection, namespace)

    def episodes(self, namespace: Namespace | None = None) -> Iterator[Episode]:
        with self._connections.reading() as link, self._connections.guard(link):
            return sqlite_listing.episodes(link.connection, namespace)

    def forget(
        self,
        *,
        ids: Sequence[NodeId] | None = None,
        namespace: Namespace | None = None,
        before: float | None = None,
        query: str | None = None,
    ) -> Removed:
        return sqlite_removal.forget(
            self._connections, ids=ids, namespace=namespace, before=before, query=query
        )

    def prune(
        self, is_prunable: Callable[[Namespace, EdgeStates], Bools], gone_before: float
    ) -> Removed:
        return sqlite_removal.prune(self._connections, is_prunable, gone_before)

    def stats(self) -> StoreStats:
        with self._connections.reading() as link, self._connections.guard(link):
            namespaces = sqlite_listing.stats(link.connection)
        files = (Path(f"{self._path}{suffix}") for suffix in ("", "-wal"))
        size = sum(file.stat().st_size for file in files if file.exists())
        return StoreStats(self._url, SCHEMA, size, namespaces)

    def close(self) -> None:
        self._connections.close()
