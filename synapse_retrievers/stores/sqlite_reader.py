"""The read path of a SQLite store: a few statements for a whole recall."""

import math
from collections.abc import Sequence

import numpy as np

from synapse_retrievers.stores.adjacency import number_list
from synapse_retrievers.stores.connections import Connections
from synapse_retrievers.stores.episodes import marks, names_of, node_numbers
from synapse_retrievers.stores.links import Link
from synapse_retrievers.stores.packed import (
    EPISODE_SHIFT,
    POSTING,
    POSTING_SHIFT,
    RECORD,
    SEGMENTS,
    USE,
    header_ids,
    unpack,
)
from synapse_retrievers.types import (
    NODE_STATE,
    Ints,
    Namespace,
    Neighbors,
    NodeId,
    NodeStates,
    Postings,
    Uses,
)

_TERMS_A_STATEMENT = 400


class SQLiteReader:
    """A view of some namespaces within one read transaction."""

    def __init__(
        self, connections: Connections, link: Link, namespaces: Sequence[Namespace]
    ) -> None:
        self._guard = connections.guard(link)
        self._connection = link.connection
        with self._guard:
            known: dict[Namespace, tuple[int, int]] = {
                name: (number, episodes)
                for name, number, episodes in self._connection.execute(
                    "SELECT name, id, episodes FROM namespace"
                    f" WHERE name IN ({marks(len(namespaces))})",
                    tuple(namespaces),
                )
            }
        # An unknown namespace has number 0, which no row has.
        self._spaces = [known.get(name, (0, 0)) for name in namespaces]

    def handles(self, ids: Sequence[NodeId]) -> Ints:
        with self._guard:
            found = node_numbers(self._connection, list(ids))
        return np.array([found.get(key, -1) for key in ids], dtype=np.int64)

    def ids(self, handles: Ints) -> list[NodeId]:
        wanted = handles.tolist()
        with self._guard:
            names = names_of(self._connection, wanted)
        return [names.get(handle, "") for handle in wanted]

    def neighbors(self, handles: Ints) -> Neighbors:
        with self._guard:
            # CROSS JOIN keeps the list outside: one range of rows for each node and namespace.
            rows = self._connection.execute(
                "SELECT asked.key, a.records FROM json_each(?) AS asked CROSS JOIN adjacency AS a"
                f" WHERE a.id BETWEEN asked.value AND asked.value + {SEGMENTS - 1}",
                (number_list(self._headers(handles)),),
            ).fetchall()
            records = unpack(b"".join(blob for _, blob in rows), RECORD)
        sizes = [len(blob) // RECORD.itemsize for _, blob in rows]
        asked = np.repeat(np.array([key for key, _ in rows], dtype=np.int64), sizes)
        neighbor = records["neighbor"].astype(np.int64)
        state = records["state"]
        # Segments of one node come in the order of their numbers, not of their neighbors.
        if len({key for key, _ in rows}) != len(rows):
            order = np.lexsort((neighbor, asked))
            asked, neighbor, state = asked[order], neighbor[order], state[order]
        count = max(1, len(handles))
        return Neighbors(asked // count, asked % count, neighbor, state)

    def counters(self, handles: Ints) -> NodeStates:
        states = np.zeros(len(self._spaces) * len(handles), dtype=NODE_STATE)
        states["gone_at"] = np.nan
        with self._guard:
            for key, used, used_at, gone_at in self._connection.execute(
                "SELECT asked.key, a.used, a.used_at, a.gone_at FROM json_each(?) AS asked"
                " CROSS JOIN adjacency AS a WHERE a.id = asked.value",
                (number_list(self._headers(handles)),),
            ):
                states[key] = (used, used_at, math.nan if gone_at is None else gone_at)
        return states.reshape(len(self._spaces), len(handles))

    def degrees(self, handles: Ints, exact_above: int) -> Ints:
        degrees = np.zeros((len(self._spaces), len(handles)), dtype=np.int64)
        with self._guard:
            rows = self._connection.execute(
                "SELECT asked.key, a.degree FROM json_each(?) AS asked"
                " CROSS JOIN adjacency AS a WHERE a.id = asked.value",
                (number_list(self._headers(handles)),),
            ).fetchall()
        if rows:
            found = np.array(rows, dtype=np.int64)
            degrees.reshape(-1)[found[:, 0]] = found[:, 1]
        sums: Ints = degrees.sum(axis=0)
        # Only what several namespaces share can be counted twice.
        unsure = np.flatnonzero((sums > exact_above) & ((degrees > 0).sum(axis=0) > 1))
        if unsure.size:
            edges = self.neighbors(handles[unsure])
            distinct = np.unique(np.stack([edges.sender, edges.neighbor]), axis=1)
            sums[unsure] = np.bincount(distinct[0], minlength=unsure.size)
        return sums

    def postings(self, terms: Sequence[str]) -> list[Postings]:
        terms = list(terms)
        found: list[tuple[int, int, str, int]] = []
        spaces = [number for number, _ in self._spaces if number]
        with self._guard:
            for start in range(0, len(terms) if spaces else 0, _TERMS_A_STATEMENT):
                part = terms[start : start + _TERMS_A_STATEMENT]
                found += self._connection.execute(
                    "SELECT namespace, id, term, df FROM term"
                    f" WHERE namespace IN ({marks(len(spaces))}) AND term IN ({marks(len(part))})",
                    (*spaces, *part),
                ).fetchall()
            rows: list[tuple[int, bytes]] = self._connection.execute(
                "SELECT asked.value, p.records FROM json_each(?) AS asked CROSS JOIN posting AS p"
                f" WHERE p.id BETWEEN asked.value << {POSTING_SHIFT}"
                f" AND (asked.value << {POSTING_SHIFT}) + {(1 << POSTING_SHIFT) - 1}",
                (number_list(term for _, term, _, _ in found),),
            ).fetchall()
        blobs: dict[int, list[bytes]] = {}
        for term, blob in rows:
            blobs.setdefault(term, []).append(blob)
        places = {term: place for place, term in enumerate(terms)}
        return [
            self._postings(
                space,
                {places[text]: (term, df) for n, term, text, df in found if n == space[0]},
                len(terms),
                blobs,
            )
            for space in self._spaces
        ]

    def _postings(
        self,
        space: tuple[int, int],
        found: dict[int, tuple[int, int]],
        asked: int,
        blobs: dict[int, list[bytes]],
    ) -> Postings:
        number, episodes = space
        frequency = np.zeros(asked, dtype=np.int64)
        sizes = []
        parts = []
        places = sorted(found)
        for place in places:
            term, frequency[place] = found[place]
            joined = b"".join(blobs.get(term, ()))
            parts.append(joined)
            sizes.append(len(joined) // POSTING.itemsize)
        with self._guard:
            records = unpack(b"".join(parts), POSTING)
        return Postings(
            episodes,
            frequency,
            np.repeat(np.array(places, dtype=np.int64), sizes),
            records["episode"].astype(np.int64) | (number << EPISODE_SHIFT),
            records["weight"].astype(np.float64),
        )

    def uses(self, episodes: Ints) -> Uses:
        count = len(episodes)
        query = [""] * count
        renewed_at = np.zeros(count)
        with self._guard:
            rows = self._connection.execute(
                "SELECT asked.key, e.query, e.renewed_at, e.uses FROM json_each(?) AS asked"
                " CROSS JOIN episode AS e WHERE e.id = asked.value",
                (number_list(episodes.tolist()),),
            ).fetchall()
            records = unpack(b"".join(row[3] for row in rows), USE)
        for place, text, at, _ in rows:
            query[place] = text
            renewed_at[place] = at
        sizes = [len(row[3]) // USE.itemsize for row in rows]
        return Uses(
            tuple(query),
            renewed_at,
            np.repeat(np.array([row[0] for row in rows], dtype=np.int64), sizes),
            records["node"].astype(np.int64),
            records["strength"].astype(np.float64),
            records["chunk"].astype(np.int64),
        )

    def _headers(self, handles: Ints) -> list[int]:
        """Header row ids, namespace by namespace; where nothing is, one below all rows."""
        nowhere = np.full(len(handles), -SEGMENTS, dtype=np.int64)
        parts = [header_ids(number, handles) if number else nowhere for number, _ in self._spaces]
        return np.concatenate(parts).tolist() if parts else []
