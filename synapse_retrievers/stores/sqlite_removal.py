"""Forgetting and pruning in a SQLite store, in slices, so that other writers wait little."""

import sqlite3
from collections.abc import Callable, Sequence

import numpy as np

from synapse_retrievers.errors import ParamError
from synapse_retrievers.stores.adjacency import number_list
from synapse_retrievers.stores.connections import Connections
from synapse_retrievers.stores.episodes import drop_episodes, node_numbers
from synapse_retrievers.stores.packed import (
    USE,
    nodes_of,
    unpack,
)
from synapse_retrievers.stores.sqlite_listing import HEADER, row_range, spaces
from synapse_retrievers.stores.sqlite_slices import (
    add,
    drop_chosen,
    forget_edges,
    headers_after,
    read_slice,
)
from synapse_retrievers.stores.sqlite_update import namespace_number
from synapse_retrievers.types import Bools, EdgeStates, Ints, Namespace, NodeId, Removed

_EPISODES_A_SLICE = 2_000

IsPrunable = Callable[[Namespace, EdgeStates], Bools]


def forget(
    connections: Connections,
    *,
    ids: Sequence[NodeId] | None,
    namespace: Namespace | None,
    before: float | None,
    query: str | None,
) -> Removed:
    """Remove what meets all of the conditions that are not None."""
    if ids is None and namespace is None and before is None and query is None:
        raise ParamError("forget", None, "for at least one of ids, namespace, before, query")
    with connections.reading() as link, connections.guard(link):
        found = spaces(link.connection, namespace)
        known = node_numbers(link.connection, list(ids)) if ids is not None else {}
    chosen = None if ids is None else np.array(sorted(known.values()), dtype=np.int64)
    removed = [Removed()]
    for name, number in found:
        if ids is None and before is None and query is None:
            removed.append(_forget_namespace(connections, name))
            continue
        if chosen is not None and not chosen.size:
            continue
        if query is None:
            removed.append(forget_edges(connections, number, chosen, before))
        removed.append(_forget_uses(connections, number, chosen, before, query))
    sweep_keys(connections)
    return add(*removed)


def _forget_namespace(connections: Connections, name: Namespace) -> Removed:
    with connections.writing() as link, connections.guard(link):
        connection = link.connection
        number = namespace_number(connection, name)
        if not number:
            return Removed()
        low, high = row_range(number)
        nodes, degrees = connection.execute(
            f"SELECT count(*), coalesce(sum(degree), 0) FROM adjacency"
            f" WHERE id BETWEEN ? AND ? AND {HEADER}",
            (low, high),
        ).fetchone()
        (episodes,) = connection.execute(
            "SELECT episodes FROM namespace WHERE id = ?", (number,)
        ).fetchone()
        connection.execute("DELETE FROM adjacency WHERE id BETWEEN ? AND ?", (low, high))
        connection.execute(
            "DELETE FROM posting WHERE (id >> 20) IN (SELECT id FROM term WHERE namespace = ?)",
            (number,),
        )
        for table in ("term", "episode", "lesson"):
            connection.execute(f"DELETE FROM {table} WHERE namespace = ?", (number,))
        connection.execute("DELETE FROM namespace WHERE id = ?", (number,))
        return Removed(degrees // 2, episodes, nodes)


def _forget_uses(
    connections: Connections,
    number: int,
    chosen: Ints | None,
    before: float | None,
    query: str | None,
) -> Removed:
    """Uses of the chosen nodes (None: whole episodes), of episodes that meet the conditions."""
    conditions = ["namespace = ?", "id > ?"]
    values: list[object] = []
    if before is not None:
        conditions.append("renewed_at < ?")
        values.append(before)
    if query is not None:
        conditions.append("query = ?")
        values.append(query)
    last, removed = 0, 0
    while True:
        with connections.writing() as link, connections.guard(link):
            rows = link.connection.execute(
                f"SELECT id, uses FROM episode WHERE {' AND '.join(conditions)}"
                f" ORDER BY id LIMIT {_EPISODES_A_SLICE}",
                (number, last, *values),
            ).fetchall()
            if not rows:
                return Removed(episodes=removed)
            if chosen is None:
                emptied = [row_id for row_id, _ in rows]
            else:
                emptied = _strip(link.connection, rows, chosen)
            drop_episodes(link.connection, number, emptied)
        removed += len(emptied)
        last = rows[-1][0]


def _strip(
    connection: sqlite3.Connection, rows: Sequence[tuple[int, bytes]], chosen: Ints
) -> list[int]:
    """Take the nodes out of the episodes; those that are left without a use."""
    records = unpack(b"".join(blob for _, blob in rows), USE)
    touched = np.isin(records["node"], chosen) | np.isin(records["chunk"], chosen)
    sizes = [len(blob) // USE.itemsize for _, blob in rows]
    places = np.unique(np.repeat(np.arange(len(rows)), sizes)[touched])
    emptied = []
    changed = []
    for place in places.tolist():
        row_id, blob = rows[place]
        uses = unpack(blob, USE).copy()
        uses["chunk"][np.isin(uses["chunk"], chosen)] = -1
        uses = uses[~np.isin(uses["node"], chosen)]
        if len(uses):
            changed.append((uses.tobytes(), row_id))
        else:
            emptied.append(row_id)
    connection.executemany("UPDATE episode SET uses = ? WHERE id = ?", changed)
    return emptied


def prune(connections: Connections, is_prunable: IsPrunable, gone_before: float) -> Removed:
    """Remove prunable edges, gone nodes and empty counters."""
    with connections.reading() as link, connections.guard(link):
        found = spaces(link.connection, None)
    removed = [Removed()]
    for name, number in found:
        removed.append(_prune_edges(connections, name, number, is_prunable))
        removed.append(_prune_nodes(connections, number, gone_before))
    sweep_keys(connections)
    return add(*removed)


def _prune_edges(
    connections: Connections, name: Namespace, number: int, is_prunable: IsPrunable
) -> Removed:
    low, high = row_range(number)
    last = low - 1
    removed = 0
    while True:
        with connections.reading() as link:
            with connections.guard(link):
                headers = headers_after(link.connection, last, high)
                part = read_slice(link.connection, headers)
            has_some = bool(len(part.records)) and bool(
                is_prunable(name, part.records["state"]).any()
            )
        if not headers.size:
            return Removed(edges=removed)
        last = int(headers[-1])
        if not has_some:
            continue
        # Looked at again under the lock: an edge may have been reinforced in between.
        with connections.writing() as link:
            with connections.guard(link):
                part = read_slice(link.connection, headers)
            chosen = is_prunable(name, part.records["state"])
            with connections.guard(link):
                removed += drop_chosen(link.connection, number, part, chosen)


def _prune_nodes(connections: Connections, number: int, gone_before: float) -> Removed:
    low, high = row_range(number)
    with connections.reading() as link, connections.guard(link):
        rows = link.connection.execute(
            f"SELECT id FROM adjacency WHERE id BETWEEN ? AND ? AND {HEADER} AND gone_at < ?",
            (low, high, gone_before),
        ).fetchall()
    gone = nodes_of(np.array([row_id for (row_id,) in rows], dtype=np.int64))
    removed = [Removed()]
    if gone.size:
        removed.append(forget_edges(connections, number, gone, None))
        removed.append(_forget_uses(connections, number, gone, None, None))
    with connections.writing() as link, connections.guard(link):
        empty = link.connection.execute(
            f"DELETE FROM adjacency WHERE id BETWEEN ? AND ? AND {HEADER}"
            " AND degree = 0 AND used = 0 AND gone_at IS NULL",
            (low, high),
        )
    return add(*removed, Removed(nodes=empty.rowcount))


def sweep_keys(connections: Connections) -> None:
    """Remove the ids of nodes that nothing refers to any more."""
    with connections.reading() as link, connections.guard(link):
        if not _unreferenced(link.connection).size:
            return
    with connections.writing() as link, connections.guard(link):
        unused = _unreferenced(link.connection)
        link.connection.execute(
            "DELETE FROM node WHERE id IN (SELECT value FROM json_each(?))",
            (number_list(unused.tolist()),),
        )


def _unreferenced(connection: sqlite3.Connection) -> Ints:
    nodes = connection.execute("SELECT id FROM node").fetchall()
    headers = connection.execute(f"SELECT id FROM adjacency WHERE {HEADER}").fetchall()
    uses = b"".join(blob for (blob,) in connection.execute("SELECT uses FROM episode"))
    records = unpack(uses, USE)
    referenced = np.concatenate(
        [
            nodes_of(np.array([row_id for (row_id,) in headers], dtype=np.int64)),
            records["node"],
            records["chunk"],
        ]
    )
    return np.setdiff1d(np.array([node for (node,) in nodes], dtype=np.int64), referenced)
