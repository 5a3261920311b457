"""Everything a SQLite store holds, as values in order; read at once, made one by one."""

import sqlite3
from collections.abc import Iterator

import numpy as np

from synapse_retrievers.stores.episodes import decode_episodes
from synapse_retrievers.stores.packed import (
    NAMESPACE_SHIFT,
    RECORD,
    SEGMENTS,
    Records,
    namespace_base,
    nodes_of,
    unpack,
)
from synapse_retrievers.types import (
    Edge,
    Episode,
    Ints,
    Namespace,
    NamespaceStats,
    Node,
    NodeId,
)

HEADER = f"(id & {8 * SEGMENTS - 1}) = 0"
"""Condition on adjacency: the row is the header of kind `used`."""


def row_range(namespace: int) -> tuple[int, int]:
    """The lowest and highest adjacency row id of a namespace."""
    base = namespace_base(namespace)
    return base, base + (1 << NAMESPACE_SHIFT) - 1


def spaces(
    connection: sqlite3.Connection, namespace: Namespace | None
) -> list[tuple[Namespace, int]]:
    """Name and number of the namespace, or of all, by name."""
    rows = connection.execute("SELECT name, id FROM namespace ORDER BY name").fetchall()
    return [row for row in rows if namespace is None or row[0] == namespace]


def read_records(connection: sqlite3.Connection, low: int, high: int) -> tuple[Ints, Records]:
    """Sender and record of every edge in a range of adjacency rows, both directions."""
    rows = connection.execute(
        "SELECT id, records FROM adjacency WHERE id BETWEEN ? AND ?", (low, high)
    ).fetchall()
    records = unpack(b"".join(blob for _, blob in rows), RECORD)
    sizes = [len(blob) // RECORD.itemsize for _, blob in rows]
    senders = nodes_of(np.array([row_id for row_id, _ in rows], dtype=np.int64))
    return np.repeat(senders, sizes), records


def edges(connection: sqlite3.Connection, namespace: Namespace | None) -> Iterator[Edge]:
    """Every edge once, ascending."""
    keys: dict[int, NodeId] = dict(connection.execute("SELECT id, key FROM node ORDER BY key"))
    ranks = np.zeros(max(keys, default=0) + 1, dtype=np.int64)
    ranks[list(keys)] = np.arange(len(keys))
    found = []
    for name, number in spaces(connection, namespace):
        senders, records = read_records(connection, *row_range(number))
        first, second = ranks[senders], ranks[records["neighbor"]]
        once = np.flatnonzero(first < second)
        order = once[np.lexsort((second[once], first[once]))]
        found.append((name, senders[order], records[order]))
    return (
        Edge((keys[sender], keys[neighbor]), name, state[1], state[2], state[0], state[3], state[4])
        for name, senders, records in found
        for sender, (neighbor, state) in zip(senders.tolist(), records.tolist(), strict=True)
    )


def nodes(connection: sqlite3.Connection, namespace: Namespace | None) -> Iterator[Node]:
    """Every counted node, ascending."""
    found = [
        (name, row)
        for name, number in spaces(connection, namespace)
        for row in connection.execute(
            "SELECT key, degree, used, used_at, gone_at FROM adjacency AS a JOIN node AS n"
            " ON n.id = (a.id >> 15) & 268435455"
            f" WHERE a.id BETWEEN ? AND ? AND {HEADER.replace('id', 'a.id')} ORDER BY key",
            row_range(number),
        )
    ]
    return (Node(row[0], name, *row[1:]) for name, row in found)


def episodes(connection: sqlite3.Connection, namespace: Namespace | None) -> Iterator[Episode]:
    """Every episode, namespace by namespace as they were first learned."""
    found: list[Episode] = []
    for name, number in spaces(connection, namespace):
        rows = connection.execute(
            "SELECT query, renewed_at, uses, terms FROM episode WHERE namespace = ? ORDER BY id",
            (number,),
        ).fetchall()
        found += decode_episodes(name, rows, connection)
    return iter(found)


def stats(connection: sqlite3.Connection) -> dict[Namespace, NamespaceStats]:
    """What each namespace holds."""
    result = {}
    for name, number, kind, collection, count in connection.execute(
        "SELECT name, id, node_kind, collection, episodes FROM namespace ORDER BY name"
    ).fetchall():
        headers, degrees = connection.execute(
            f"SELECT count(*), coalesce(sum(degree), 0) FROM adjacency WHERE id BETWEEN ? AND ?"
            f" AND {HEADER}",
            row_range(number),
        ).fetchone()
        result[name] = NamespaceStats(headers, degrees // 2, count, kind, collection)
    return result
