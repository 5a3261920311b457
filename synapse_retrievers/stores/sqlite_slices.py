"""Removing edges and counters in slices of nodes, so that other writers wait little."""

import sqlite3
from dataclasses import dataclass

import numpy as np

from synapse_retrievers.stores.adjacency import drop_edges, number_list
from synapse_retrievers.stores.connections import Connections
from synapse_retrievers.stores.packed import (
    RECORD,
    SEGMENTS,
    Records,
    header_ids,
    nodes_of,
    unpack,
)
from synapse_retrievers.stores.sqlite_listing import HEADER, row_range
from synapse_retrievers.types import Bools, Ints, Removed

_NODES_A_SLICE = 2_000
_EDGES_A_SLICE = 20_000


def add(*removed: Removed) -> Removed:
    """The sum of the parts."""
    return Removed(
        sum(part.edges for part in removed),
        sum(part.episodes for part in removed),
        sum(part.nodes for part in removed),
    )


@dataclass(frozen=True, slots=True)
class Slice:
    """Adjacency rows of consecutive or chosen nodes: the headers' row ids and their edges."""

    headers: Ints
    senders: Ints
    records: Records


def read_slice(connection: sqlite3.Connection, headers: Ints) -> Slice:
    """What is stored of these nodes."""
    rows = connection.execute(
        "SELECT a.id, a.records FROM json_each(?) AS asked CROSS JOIN adjacency AS a"
        f" WHERE a.id BETWEEN asked.value AND asked.value + {SEGMENTS - 1}",
        (number_list(headers.tolist()),),
    ).fetchall()
    row_ids = np.array([row_id for row_id, _ in rows], dtype=np.int64)
    records = unpack(b"".join(blob for _, blob in rows), RECORD)
    sizes = [len(blob) // RECORD.itemsize for _, blob in rows]
    return Slice(headers, np.repeat(nodes_of(row_ids), sizes), records)


def headers_after(connection: sqlite3.Connection, last: int, high: int) -> Ints:
    """The next slice of headers above a row id, up to another."""
    rows = connection.execute(
        f"SELECT id FROM adjacency WHERE id > ? AND id <= ? AND {HEADER} ORDER BY id LIMIT ?",
        (last, high, _NODES_A_SLICE),
    ).fetchall()
    return np.array([row_id for (row_id,) in rows], dtype=np.int64)


def drop_chosen(connection: sqlite3.Connection, number: int, part: Slice, chosen: Bools) -> int:
    """Remove the chosen records' edges; how many, each pair once."""
    a = part.senders[chosen]
    b = part.records["neighbor"][chosen].astype(np.int64)
    pairs = np.unique(np.stack([np.minimum(a, b), np.maximum(a, b)]), axis=1)
    if pairs.size:
        drop_edges(connection, number, pairs[0], pairs[1])
    return int(pairs.shape[1])


def forget_edges(
    connections: Connections, number: int, chosen: Ints | None, before: float | None
) -> Removed:
    """Edges, then counters, of the chosen nodes (None: all); with `before` only older ones."""
    removed = [Removed()]
    low, high = row_range(number)
    asked = None if chosen is None else header_ids(number, chosen)
    last = low - 1
    while True:
        with connections.writing() as link, connections.guard(link):
            if asked is None:
                headers = headers_after(link.connection, last, high)
            else:
                headers = asked[asked > last][:_NODES_A_SLICE]
            if not headers.size:
                return add(*removed)
            part, is_done = _forget_slice(link.connection, number, headers, before)
        removed.append(part)
        if is_done:
            last = int(headers[-1])


def _forget_slice(
    connection: sqlite3.Connection, number: int, headers: Ints, before: float | None
) -> tuple[Removed, bool]:
    part = read_slice(connection, headers)
    is_old = np.ones(len(part.records), dtype=np.bool_)
    if before is not None:
        is_old = part.records["state"]["activated_at"] < before
    places = np.flatnonzero(is_old)
    is_done = places.size <= _EDGES_A_SLICE
    is_old[places[_EDGES_A_SLICE:]] = False
    edges = drop_chosen(connection, number, part, is_old)
    if not is_done:
        return Removed(edges=edges), False
    condition = "id IN (SELECT value FROM json_each(?))"
    listed = number_list(headers.tolist())
    if before is None:
        gone = connection.execute(f"DELETE FROM adjacency WHERE {condition}", (listed,))
        return Removed(edges=edges, nodes=gone.rowcount), True
    gone = connection.execute(
        f"DELETE FROM adjacency WHERE {condition} AND degree = 0 AND used_at < ?", (listed, before)
    )
    connection.execute(
        f"UPDATE adjacency SET used = 0, used_at = 0 WHERE {condition} AND used_at < ?",
        (listed, before),
    )
    return Removed(edges=edges, nodes=gone.rowcount), True
