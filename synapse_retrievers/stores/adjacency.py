"""Reads and writes the packed adjacency rows of some nodes of one namespace."""

import math
import sqlite3
from collections.abc import Iterable

import numpy as np

from synapse_retrievers.errors import StoreError
from synapse_retrievers.stores.packed import RECORD, SEGMENTS, Records, header_ids, split, unpack
from synapse_retrievers.types import EDGE_STATE, NODE_STATE, EdgeStates, Ints

_SHIFT = 32
_NEIGHBORS = (1 << _SHIFT) - 1
_NOTHING = np.zeros(0, dtype=RECORD)


def number_list(values: Iterable[int]) -> str:
    """Integers for `json_each`, which has no limit on how many."""
    return f"[{','.join(map(str, values))}]"


def edge_keys(positions: Ints, neighbors: Ints) -> Ints:
    """The sort keys of edges that leave the nodes at these positions."""
    return (positions << _SHIFT) | neighbors


class Adjacency:
    """Headers of some nodes and those segments of theirs that were asked for.

    All loaded records lie in one array, ascending by node position and neighbor, so that a whole
    update is one search and one merge. `counters` may be written to by the caller.

    Args:
        connection: In a transaction.
        namespace: Its number.
        nodes: Distinct numbers; -1 where the store has none.
    """

    def __init__(self, connection: sqlite3.Connection, namespace: int, nodes: Ints) -> None:
        count = len(nodes)
        self._connection = connection
        self._namespace = namespace
        self.headers = header_ids(namespace, nodes)
        self.is_new = np.ones(count, dtype=np.bool_)
        self.counters = np.zeros(count, dtype=NODE_STATE)
        self.counters["gone_at"] = np.nan
        self._degrees = np.zeros(count, dtype=np.int64)
        self._directory = [(position << _SHIFT, 0) for position in range(count)]
        parts: dict[tuple[int, int], bytes] = {}
        for position, degree, used, used_at, gone_at, segments, blob in connection.execute(
            "SELECT asked.key, degree, used, used_at, gone_at, segments, records"
            " FROM json_each(?) AS asked CROSS JOIN adjacency AS a WHERE a.id = asked.value",
            (number_list(self.headers.tolist()),),
        ).fetchall():
            self.is_new[position] = False
            self._degrees[position] = degree
            self.counters[position] = (used, used_at, math.nan if gone_at is None else gone_at)
            parts[position, 0] = blob
            if segments > 1:
                self._read_directory(position)
        self._directory.sort()
        self._loaded = {(position, 0) for position in range(count)}
        self._set_records(parts)

    def _read_directory(self, position: int) -> None:
        header = int(self.headers[position])
        self._directory += [
            ((position << _SHIFT) | first, row_id - header)
            for first, row_id in self._connection.execute(
                "SELECT first, id FROM adjacency WHERE id BETWEEN ? AND ?",
                (header + 1, header + SEGMENTS - 1),
            )
        ]

    def _set_records(self, parts: dict[tuple[int, int], bytes]) -> None:
        order = [(first >> _SHIFT, number) for first, number in self._directory]
        blobs = [(key[0], parts[key]) for key in order if key in parts]
        records = unpack(bytearray().join(blob for _, blob in blobs), RECORD)
        sizes = [len(blob) // RECORD.itemsize for _, blob in blobs]
        positions = np.repeat(np.array([place for place, _ in blobs], dtype=np.int64), sizes)
        self._records = records
        self._keys = edge_keys(positions, records["neighbor"])

    def _places(self, keys: Ints) -> list[int]:
        """Which entries of the directory hold these keys, or would; ascending."""
        firsts = np.array([first for first, _ in self._directory], dtype=np.int64)
        places = np.searchsorted(firsts, keys, side="right") - 1
        return sorted(set(places.tolist()))

    def load(self, keys: Ints) -> None:
        """Read the segments that hold, or would hold, these edges, unless they are there."""
        if len(self._directory) == len(self.headers):
            return
        wanted = {
            (first >> _SHIFT, number)
            for first, number in (self._directory[place] for place in self._places(keys))
        }
        missing = wanted - self._loaded
        if not missing:
            return
        row_ids = {int(self.headers[place]) + number: (place, number) for place, number in missing}
        parts = {
            row_ids[row_id]: unpack(blob, RECORD)
            for row_id, blob in self._connection.execute(
                "SELECT id, records FROM adjacency WHERE id IN (SELECT value FROM json_each(?))",
                (number_list(row_ids),),
            )
        }
        records = np.concatenate([self._records, *parts.values()])
        new_keys = [edge_keys(np.array(key[0]), part["neighbor"]) for key, part in parts.items()]
        all_keys = np.concatenate([self._keys, *new_keys])
        order = np.argsort(all_keys, kind="stable")
        self._records, self._keys = records[order], all_keys[order]
        self._loaded |= missing

    def states(self, keys: Ints) -> EdgeStates:
        """The edges (loaded), `activations` 0 where there is none."""
        states = np.zeros(len(keys), dtype=EDGE_STATE)
        places, is_there = self._find(keys)
        states[is_there] = self._records["state"][places[is_there]]
        return states

    def _find(self, keys: Ints) -> tuple[Ints, np.ndarray[tuple[int], np.dtype[np.bool_]]]:
        places = np.searchsorted(self._keys, keys)
        if not self._keys.size:
            return places, np.zeros(len(keys), dtype=np.bool_)
        return places, self._keys[np.minimum(places, self._keys.size - 1)] == keys

    def _merge(self, keys: Ints, states: EdgeStates) -> None:
        """Put the edges (ascending, loaded) among the records; `activations` 0 takes one away."""
        count = len(self.headers)
        is_kept = states["activations"] > 0
        places, is_there = self._find(keys)
        self._records["state"][places[is_there & is_kept]] = states[is_there & is_kept]
        is_lost = is_there & ~is_kept
        if is_lost.any():
            self._records = np.delete(self._records, places[is_lost])
            self._keys = np.delete(self._keys, places[is_lost])
            self._degrees -= np.bincount(keys[is_lost] >> _SHIFT, minlength=count)
        is_added = ~is_there & is_kept
        if is_added.any():
            added = np.zeros(int(is_added.sum()), dtype=RECORD)
            added["neighbor"] = keys[is_added] & _NEIGHBORS
            added["state"] = states[is_added]
            places = np.searchsorted(self._keys, keys[is_added])
            self._records = np.insert(self._records, places, added)
            self._keys = np.insert(self._keys, places, keys[is_added])
            self._degrees += np.bincount(keys[is_added] >> _SHIFT, minlength=count)

    def write(self, keys: Ints, states: EdgeStates, positions: Iterable[int]) -> None:
        """Merge the edges and write the segments they touch, and these nodes' headers.

        Args:
            keys: Distinct, ascending; every node they leave from is among `positions`.
            states: The edges; `activations` 0 takes one away.
            positions: Whose degree and counters are written.
        """
        self.load(keys)
        touched = self._places(keys)
        self._merge(keys, states)
        rows: list[tuple[object, ...]] = []
        records: dict[int, Records] = {}
        counts: dict[int, int] = {}
        if len(self._directory) > len(self.headers):
            for first, _ in self._directory:
                counts[first >> _SHIFT] = counts.get(first >> _SHIFT, 0) + 1
        for place in touched:
            first, number = self._directory[place]
            position = first >> _SHIFT
            parts = split(self._cut(place))
            counts[position] = counts.get(position, 1) + len(parts) - 1
            if number == 0:
                records[position] = parts[0]
            elif len(parts[0]):
                rows.append(self._segment(position, number, first, parts[0]))
            else:
                counts[position] -= 1
                self._connection.execute(
                    "DELETE FROM adjacency WHERE id = ?", (int(self.headers[position]) + number,)
                )
            for part, free in zip(parts[1:], self._free(position, len(parts) - 1), strict=True):
                first = int(part["neighbor"][0])
                rows.append(self._segment(position, free, first, part))
        self._write_headers(positions, records, counts, rows)

    def _cut(self, place: int) -> Records:
        """The loaded records of one entry of the directory."""
        first = self._directory[place][0]
        is_last = place + 1 == len(self._directory)
        after = np.iinfo(np.int64).max if is_last else self._directory[place + 1][0]
        start, end = np.searchsorted(self._keys, [first, after])
        return self._records[start:end]

    def _segment(
        self, position: int, number: int, first: int, records: Records
    ) -> tuple[object, ...]:
        row_id = int(self.headers[position]) + number
        return (row_id, first & _NEIGHBORS, 0, 0.0, 0.0, None, 0, records.tobytes())

    def _free(self, position: int, count: int) -> list[int]:
        """Segment numbers that the node does not use yet; they count as used from now on."""
        if not count:
            return []
        taken = {number for first, number in self._directory if first >> _SHIFT == position}
        taken |= {number for place, number in self._loaded if place == position}
        free = [number for number in range(1, SEGMENTS) if number not in taken][:count]
        if len(free) < count:
            raise StoreError("a node has more neighbors than a store holds: prune or forget it")
        self._loaded |= {(position, number) for number in free}
        return free

    def _write_headers(
        self,
        positions: Iterable[int],
        records: dict[int, Records],
        counts: dict[int, int],
        rows: list[tuple[object, ...]],
    ) -> None:
        """Write all; a header whose records did not change keeps them."""
        updates = []
        counters = self.counters.tolist()
        for position in positions:
            # SQLite stores NaN as NULL.
            counted = (int(self._degrees[position]), *counters[position], counts.get(position, 1))
            row_id = int(self.headers[position])
            if position in records or self.is_new[position]:
                blob = records.get(position, _NOTHING).tobytes()
                rows.append((row_id, 0, *counted, blob))
            else:
                updates.append((*counted, row_id))
        self._connection.executemany(
            "INSERT OR REPLACE INTO adjacency VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows
        )
        if updates:
            self._connection.executemany(
                "UPDATE adjacency SET degree = ?, used = ?, used_at = ?, gone_at = ?,"
                " segments = ? WHERE id = ?",
                updates,
            )


def drop_edges(
    connection: sqlite3.Connection, namespace: int, senders: Ints, neighbors: Ints
) -> None:
    """Remove edges, both directions; each is given once, in either direction."""
    a = np.concatenate([senders, neighbors])
    b = np.concatenate([neighbors, senders])
    nodes, positions = np.unique(a, return_inverse=True)
    keys = np.sort(edge_keys(positions, b))
    adjacency = Adjacency(connection, namespace, nodes)
    adjacency.write(keys, np.zeros(len(keys), dtype=EDGE_STATE), range(len(nodes)))
