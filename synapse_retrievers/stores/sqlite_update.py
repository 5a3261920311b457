"""One update of a SQLite store: what is stored goes to the rule, what it returns is written."""

import sqlite3
from collections.abc import Sequence
from dataclasses import fields

import numpy as np

from synapse_retrievers.stores.adjacency import Adjacency, edge_keys
from synapse_retrievers.stores.episodes import (
    evict_episodes,
    intern_nodes,
    node_numbers,
    read_episode,
    write_episode,
)
from synapse_retrievers.types import (
    EDGE_STATE,
    NODE_STATE,
    Bools,
    Changes,
    EdgeStates,
    Ints,
    Namespace,
    NodeId,
    NodeStates,
    Stored,
)


def namespace_number(
    connection: sqlite3.Connection, namespace: Namespace, *, create: bool = False
) -> int:
    """The namespace's number, 0 if there is none."""
    select = "SELECT id FROM namespace WHERE name = ?"
    found = connection.execute(select, (namespace,)).fetchone()
    if not found and create:
        connection.execute("INSERT INTO namespace (name) VALUES (?)", (namespace,))
        found = connection.execute(select, (namespace,)).fetchone()
    return int(found[0]) if found else 0


class Update:
    """Reads and writes within one transaction."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        namespace: Namespace,
        nodes: Sequence[NodeId],
        query: str | None,
        run_key: bytes | None,
    ) -> None:
        self._connection = connection
        self._name = namespace
        self._nodes = tuple(sorted(set(nodes)))
        self._query = query
        self._run_key = run_key
        self._namespace = 0
        self._numbers: dict[NodeId, int] = {}
        self._adjacency: Adjacency | None = None
        self._pairs: Ints = np.stack(np.triu_indices(len(self._nodes), 1), axis=1)

    def read(self) -> Stored:
        """What is stored of the nodes, the query and the run key."""
        count = len(self._nodes)
        edges = np.zeros(len(self._pairs), dtype=EDGE_STATE)
        counters = np.zeros(count, dtype=NODE_STATE)
        counters["gone_at"] = np.nan
        episode = taught_at = None
        self._namespace = namespace_number(self._connection, self._name)
        self._numbers = node_numbers(self._connection, self._nodes)
        if self._namespace:
            edges, counters = self._read_nodes()
            if self._query is not None:
                episode = read_episode(self._connection, self._namespace, self._name, self._query)
            taught_at = self._taught_at()
        return Stored(self._name, self._nodes, self._pairs, edges, counters, episode, taught_at)

    def _handles(self) -> Ints:
        return np.array([self._numbers.get(key, -1) for key in self._nodes], dtype=np.int64)

    def _read_nodes(self) -> tuple[EdgeStates, NodeStates]:
        handles = self._handles()
        self._adjacency = Adjacency(self._connection, self._namespace, handles)
        a, b = self._pairs.T
        # A key with neighbor -1 would be one of a wrong node.
        is_known = (handles[a] > 0) & (handles[b] > 0)
        keys = edge_keys(a, handles[b])[is_known]
        self._adjacency.load(keys)
        edges = np.zeros(len(self._pairs), dtype=EDGE_STATE)
        edges[is_known] = self._adjacency.states(keys)
        return edges, self._adjacency.counters.copy()

    def _taught_at(self) -> float | None:
        if self._run_key is None:
            return None
        found = self._connection.execute(
            "SELECT taught_at FROM lesson WHERE namespace = ? AND key = ?",
            (self._namespace, self._run_key),
        ).fetchone()
        return found[0] if found else None

    def write(self, changes: Changes) -> None:
        """Write what the rule returned; nothing at all if it returned nothing."""
        if all(getattr(changes, part.name) is None for part in fields(changes)):
            return
        self._namespace = namespace_number(self._connection, self._name, create=True)
        if changes.edges is not None or changes.counters is not None:
            self._write_nodes(changes.edges, changes.counters)
        if changes.episode is not None:
            write_episode(self._connection, self._namespace, changes.episode, self._numbers)
        if changes.episode_cap is not None:
            evict_episodes(self._connection, self._namespace, changes.episode_cap)
        if changes.forget_keys_before is not None:
            self._connection.execute(
                "DELETE FROM lesson WHERE namespace = ? AND taught_at < ?",
                (self._namespace, changes.forget_keys_before),
            )
        if changes.taught_at is not None and self._run_key is not None:
            self._connection.execute(
                "INSERT OR REPLACE INTO lesson VALUES (?, ?, ?)",
                (self._namespace, self._run_key, changes.taught_at),
            )

    def _write_nodes(self, edges: EdgeStates | None, counters: NodeStates | None) -> None:
        count = len(self._nodes)
        is_written = np.zeros(count, dtype=np.bool_)
        if self._adjacency:
            is_written |= ~self._adjacency.is_new
        if counters is not None:
            is_written |= (counters["used"] != 0) | (counters["used_at"] != 0)
            is_written |= ~np.isnan(counters["gone_at"])
        if edges is not None:
            is_written[self._pairs[edges["activations"] > 0].ravel()] = True
        places = np.flatnonzero(is_written)
        if not places.size:
            return
        names = [self._nodes[place] for place in places]
        if not self._adjacency or any(name not in self._numbers for name in names):
            # Nodes that are made now may belong to a segment that reading had no reason to load.
            intern_nodes(self._connection, names, self._numbers)
            self._adjacency = Adjacency(self._connection, self._namespace, self._handles())
        if counters is not None:
            self._adjacency.counters[:] = counters
        keys, pairs = self._edge_keys(is_written)
        if edges is None:
            keys, edges = keys[:0], np.zeros(0, dtype=EDGE_STATE)
        else:
            edges = edges[pairs]
        self._adjacency.write(keys, edges, places.tolist())

    def _edge_keys(self, is_written: Bools) -> tuple[Ints, Ints]:
        """Sort keys of both directions of the pairs of written nodes, and which pair each is."""
        handles = self._handles()
        pairs = np.flatnonzero(is_written[self._pairs].all(axis=1))
        a, b = self._pairs[pairs].T
        keys = np.concatenate([edge_keys(a, handles[b]), edge_keys(b, handles[a])])
        order = np.argsort(keys)
        return keys[order], np.concatenate([pairs, pairs])[order]
