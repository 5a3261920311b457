"""The read path of a SQLite store: a few statements for a whole recall."""

from collections.abc import Sequence

import numpy as np

from synapse_retrievers.stores.adjacency import number_list
from synapse_retrievers.stores.connections import Connections
from synapse_retrievers.stores.episodes import marks, names_of, node_numbers
from synapse_retrievers.stores.links import Link
from synapse_retrievers.stores.packed import (
    EPISODE_SHIFT,
    NODE_SHIFT,
    POSTING,
    POSTING_SHIFT,
    RECORD,
    SEGMENTS,
    TERM,
    namespace_base,
    unpack,
    uses_in,
)
from synapse_retrievers.types import (
    Floats,
    Headers,
    Ints,
    Namespace,
    Neighbors,
    NodeId,
    Postings,
    Terms,
    Uses,
)

_TERMS_A_STATEMENT = 400
_NO_TERM = (-1, 0)
_COUNTED = "degree, a.used, a.used_at, a.gone_at"


class SQLiteReader:
    """A view of some namespaces within one read transaction."""

    def __init__(
        self, connections: Connections, link: Link, namespaces: Sequence[Namespace]
    ) -> None:
        self._guard = connections.guard(link)
        self._connection = link.connection
        with self._guard:
            found: dict[Namespace, tuple[int, int]] = {
                name: (number, episodes)
                for name, number, episodes in self._connection.execute(
                    "SELECT name, id, episodes FROM namespace"
                    f" WHERE name IN ({marks(len(namespaces))})",
                    tuple(namespaces),
                )
            }
        self.namespaces = tuple(name for name in namespaces if name in found)
        self._spaces = [found[name] for name in self.namespaces]
        self._space_of_term: dict[int, int] = {}

    def handles(self, ids: Sequence[NodeId]) -> Ints:
        if not self._spaces:
            return np.full(len(ids), -1, dtype=np.int64)
        with self._guard:
            found = node_numbers(self._connection, ids)
        return np.array([found.get(key, -1) for key in ids], dtype=np.int64)

    def ids(self, handles: Ints) -> list[NodeId]:
        wanted = handles.tolist()
        with self._guard:
            names = names_of(self._connection, wanted)
        return [names.get(handle, "") for handle in wanted]

    def neighbors(self, handles: Ints) -> Neighbors:
        count = len(handles)
        with self._guard:
            # CROSS JOIN keeps the list outside: one range of rows for each node and namespace.
            rows = self._connection.execute(
                f"SELECT asked.key, a.{_COUNTED}, a.segments, a.records"
                " FROM json_each(?) AS asked CROSS JOIN adjacency AS a"
                f" WHERE a.id BETWEEN asked.value AND asked.value + {SEGMENTS - 1}",
                (self._header_list(handles),),
            ).fetchall()
            records = unpack(b"".join([row[6] for row in rows]), RECORD)
        sizes = [len(row[6]) // RECORD.itemsize for row in rows]
        asked = np.array([row[0] for row in rows], dtype=np.int64).repeat(sizes)
        neighbor = records["neighbor"].astype(np.int64)
        state = records["state"]
        headers = [row[:5] for row in rows if row[5]]
        # Segments of one node come in the order of their numbers, not of their neighbors.
        if len(headers) != len(rows):
            order = np.lexsort((neighbor, asked))
            asked, neighbor, state = asked[order], neighbor[order], state[order]
        namespace, sender = self._divided(asked, count)
        return Neighbors(namespace, sender, neighbor, state, self._headers(headers, count))

    def headers(self, handles: Ints) -> Headers:
        with self._guard:
            rows = self._connection.execute(
                f"SELECT asked.key, a.{_COUNTED} FROM json_each(?) AS asked"
                " CROSS JOIN adjacency AS a WHERE a.id = asked.value",
                (self._header_list(handles),),
            ).fetchall()
        return self._headers(rows, len(handles))

    def _headers(self, rows: Sequence[tuple[float | None, ...]], count: int) -> Headers:
        """Rows (place in the header list, degree, used, used_at, gone_at) as arrays."""
        columns = np.zeros((4, len(self._spaces) * count))
        columns[3] = np.nan
        if rows:
            found = np.array(rows, dtype=np.float64).T  # NULL becomes NaN
            columns[:, found[0].astype(np.int64)] = found[1:]
        degree, used, used_at, gone_at = columns.reshape(4, len(self._spaces), count)
        return Headers(degree.astype(np.int64), used, used_at, gone_at)

    def _divided(self, places: Ints, count: int) -> tuple[Ints, Ints]:
        """Places in the header list as namespace and node."""
        if len(self._spaces) == 1:
            return np.zeros(len(places), np.int64), places
        namespace, node = np.divmod(places, max(1, count))
        return namespace, node

    def _header_list(self, handles: Ints) -> str:
        """Header row ids, namespace by namespace; of handle -1, one below all rows."""
        nodes = handles.tolist()
        bases = [namespace_base(number) for number, _ in self._spaces]
        return number_list([base | (node << NODE_SHIFT) for base in bases for node in nodes])

    def terms(self, terms: Sequence[str]) -> Terms:
        handles, frequencies = [], []
        for number, episodes in self._spaces:
            found: dict[str, tuple[int, int]] = {}
            for start in range(0, len(terms) if episodes else 0, _TERMS_A_STATEMENT):
                part = terms[start : start + _TERMS_A_STATEMENT]
                with self._guard:
                    rows = self._connection.execute(
                        "SELECT term, id, df FROM term WHERE namespace = ?"
                        f" AND term IN ({marks(len(part))})",
                        (number, *part),
                    ).fetchall()
                found.update({text: (term, df) for text, term, df in rows})
            self._space_of_term.update(dict.fromkeys((term for term, _ in found.values()), number))
            handles.append([found.get(term, _NO_TERM)[0] for term in terms])
            frequencies.append([found.get(term, _NO_TERM)[1] for term in terms])
        return Terms([episodes for _, episodes in self._spaces], handles, frequencies)

    def postings(self, terms: Sequence[int]) -> Postings:
        with self._guard:
            rows: list[tuple[int, bytes]] = self._connection.execute(
                "SELECT asked.key, p.records FROM json_each(?) AS asked CROSS JOIN posting AS p"
                " WHERE p.id BETWEEN asked.value"
                f" AND asked.value + {(1 << POSTING_SHIFT) - 1}",
                (number_list([term << POSTING_SHIFT for term in terms]),),
            ).fetchall()
            records = unpack(b"".join([row[1] for row in rows]), POSTING)
        sizes = [len(row[1]) // POSTING.itemsize for row in rows]
        space = self._space_of_term.get(terms[0], 0) if terms else 0
        return Postings(
            np.array([row[0] for row in rows], dtype=np.int64).repeat(sizes),
            records["episode"].astype(np.int64) | (space << EPISODE_SHIFT),
            records["weight"].astype(np.float64),
        )

    def weights(self, episodes: Ints, terms: Sequence[int]) -> Floats:
        found = np.zeros((len(episodes), len(terms)))
        asked = np.array(terms, dtype=np.int64)
        order = np.argsort(asked)
        with self._guard:
            rows: list[tuple[int, bytes]] = self._connection.execute(
                "SELECT asked.key, e.terms FROM json_each(?) AS asked"
                " CROSS JOIN episode AS e WHERE e.id = asked.value",
                (number_list(episodes.tolist()),),
            ).fetchall()
            records = unpack(b"".join([row[1] for row in rows]), TERM)
        if len(records) and len(terms):
            sizes = [len(row[1]) // TERM.itemsize for row in rows]
            row = np.array([row[0] for row in rows], dtype=np.int64).repeat(sizes)
            place = np.minimum(np.searchsorted(asked[order], records["term"]), len(terms) - 1)
            column = order[place]
            is_asked = asked[column] == records["term"]
            found[row[is_asked], column[is_asked]] = records["weight"][is_asked]
        return found

    def uses(self, episodes: Ints) -> Uses:
        count = len(episodes)
        found = Uses([""] * count, [0.0] * count, [[] for _ in range(count)])
        with self._guard:
            for place, text, at, blob in self._connection.execute(
                "SELECT asked.key, e.query, e.renewed_at, e.uses FROM json_each(?) AS asked"
                " CROSS JOIN episode AS e WHERE e.id = asked.value",
                (number_list(episodes.tolist()),),
            ):
                found.query[place] = text
                found.renewed_at[place] = at
                found.nodes[place] = uses_in(blob)
        return found
