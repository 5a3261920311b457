"""Reads and writes the episodes, terms and postings of one namespace."""

import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from synapse_retrievers.stores.adjacency import number_list
from synapse_retrievers.stores.packed import (
    POSTING_SHIFT,
    TERM,
    USE,
    begins_new_row,
    episode_id,
    posting_id,
    revise,
    sequence_of,
    unpack,
)
from synapse_retrievers.types import Episode, Namespace, NodeId, Use

TEXTS_A_STATEMENT = 500
"""SQLite binds at most 999 values where it is old; JSON would spoil texts with NULs."""


def marks(count: int) -> str:
    """Places for that many bound values."""
    return ",".join("?" * count)


def node_numbers(connection: sqlite3.Connection, ids: Sequence[NodeId]) -> dict[NodeId, int]:
    """The number of each id that the store knows."""
    found: dict[NodeId, int] = {}
    for start in range(0, len(ids), TEXTS_A_STATEMENT):
        part = ids[start : start + TEXTS_A_STATEMENT]
        found.update(
            connection.execute(
                f"SELECT key, id FROM node WHERE key IN ({marks(len(part))})", part
            ).fetchall()
        )
    return found


def intern_nodes(
    connection: sqlite3.Connection, ids: Sequence[NodeId], known: dict[NodeId, int]
) -> None:
    """Give a number to each id that has none, and add all to `known`."""
    unknown = [key for key in dict.fromkeys(ids) if key not in known]
    if unknown:
        connection.executemany(
            "INSERT OR IGNORE INTO node (key) VALUES (?)", [(key,) for key in unknown]
        )
        known.update(node_numbers(connection, unknown))


def names_of(connection: sqlite3.Connection, nodes: Iterable[int]) -> dict[int, NodeId]:
    """The id of each number that the store knows."""
    return dict(
        connection.execute(
            "SELECT id, key FROM node WHERE id IN (SELECT value FROM json_each(?))",
            (number_list(nodes),),
        ).fetchall()
    )


def terms_of(connection: sqlite3.Connection, terms: Iterable[int]) -> dict[int, str]:
    """The text of each term number."""
    return dict(
        connection.execute(
            "SELECT id, term FROM term WHERE id IN (SELECT value FROM json_each(?))",
            (number_list(terms),),
        ).fetchall()
    )


def decode_episodes(
    namespace: Namespace,
    rows: Sequence[tuple[str, float, bytes, bytes]],
    connection: sqlite3.Connection,
) -> list[Episode]:
    """Rows (query, renewed_at, uses, terms) as values."""
    uses = [unpack(row[2], USE).tolist() for row in rows]
    terms = [unpack(row[3], TERM).tolist() for row in rows]
    names = names_of(connection, {n for part in uses for u, _, c in part for n in (u, c)} - {-1})
    texts = terms_of(connection, {term for part in terms for term, _ in part})
    return [
        Episode(
            namespace,
            query,
            {texts[term]: weight for term, weight in row_terms},
            {names[n]: Use(s, names[c] if c >= 0 else None) for n, s, c in row_uses},
            renewed_at,
        )
        for (query, renewed_at, _, _), row_uses, row_terms in zip(rows, uses, terms, strict=True)
    ]


def read_episode(
    connection: sqlite3.Connection, namespace: int, name: Namespace, query: str
) -> Episode | None:
    """The episode of this query, if there is one."""
    rows = connection.execute(
        "SELECT query, renewed_at, uses, terms FROM episode WHERE namespace = ? AND query = ?",
        (namespace, query),
    ).fetchall()
    return decode_episodes(name, rows, connection)[0] if rows else None


def write_episode(
    connection: sqlite3.Connection, namespace: int, episode: Episode, numbers: dict[NodeId, int]
) -> None:
    """Put the episode in the place of the one with its query; without uses only take that away."""
    found = connection.execute(
        "SELECT id, terms FROM episode WHERE namespace = ? AND query = ?",
        (namespace, episode.query),
    ).fetchone()
    if not episode.used:
        if found:
            drop_episodes(connection, namespace, [found[0]])
        return
    chunks = [use.chunk for use in episode.used.values() if use.chunk is not None]
    intern_nodes(connection, [*episode.used, *chunks], numbers)
    uses = np.array(
        [
            (numbers[key], use.strength, -1 if use.chunk is None else numbers[use.chunk])
            for key, use in episode.used.items()
        ],
        dtype=USE,
    ).tobytes()
    row_id = found[0] if found else _new_episode(connection, namespace)
    old = {} if not found else dict(unpack(found[1], TERM).tolist())
    terms = _write_terms(connection, namespace, sequence_of(row_id), episode.terms, old)
    connection.execute(
        "INSERT OR REPLACE INTO episode VALUES (?, ?, ?, ?, ?, ?)",
        (row_id, namespace, episode.query, episode.renewed_at, uses, terms),
    )


def _new_episode(connection: sqlite3.Connection, namespace: int) -> int:
    (sequence,) = connection.execute(
        "SELECT next_episode FROM namespace WHERE id = ?", (namespace,)
    ).fetchone()
    connection.execute(
        "UPDATE namespace SET next_episode = next_episode + 1, episodes = episodes + 1"
        " WHERE id = ?",
        (namespace,),
    )
    return episode_id(namespace, sequence)


def _write_terms(
    connection: sqlite3.Connection,
    namespace: int,
    sequence: int,
    terms: Mapping[str, float],
    old: dict[int, float],
) -> bytes:
    """Make the postings agree with the episode's terms; the terms as the episode's row has them."""
    numbers = _term_numbers(connection, namespace, list(terms))
    unknown = [(namespace, term) for term in terms if term not in numbers]
    if unknown:
        connection.executemany("INSERT INTO term (namespace, term, df) VALUES (?, ?, 0)", unknown)
        numbers.update(_term_numbers(connection, namespace, [term for _, term in unknown]))
    new = {numbers[term]: weight for term, weight in terms.items()}
    edits: dict[int, list[tuple[int, float | None]]] = {
        posting_id(term, sequence): [(sequence, weight)]
        for term, weight in new.items()
        if old.get(term) != weight
    }
    edits.update({posting_id(term, sequence): [(sequence, None)] for term in old.keys() - new})
    _revise_postings(connection, edits)
    steps = [(1, term) for term in new.keys() - old] + [(-1, term) for term in old.keys() - new]
    _count_terms(connection, steps)
    return np.array(list(new.items()), dtype=TERM).tobytes()


def _term_numbers(
    connection: sqlite3.Connection, namespace: int, terms: Sequence[str]
) -> dict[str, int]:
    found: dict[str, int] = {}
    for start in range(0, len(terms), TEXTS_A_STATEMENT):
        part = terms[start : start + TEXTS_A_STATEMENT]
        found.update(
            connection.execute(
                f"SELECT term, id FROM term WHERE namespace = ? AND term IN ({marks(len(part))})",
                (namespace, *part),
            ).fetchall()
        )
    return found


def _count_terms(connection: sqlite3.Connection, steps: Sequence[tuple[int, int]]) -> None:
    if not steps:
        return
    connection.executemany("UPDATE term SET df = df + ? WHERE id = ?", steps)
    fewer = [(term,) for step, term in steps if step < 0]
    if fewer:
        connection.executemany("DELETE FROM term WHERE id = ? AND df <= 0", fewer)


def _revise_postings(
    connection: sqlite3.Connection, edits: Mapping[int, Sequence[tuple[int, float | None]]]
) -> None:
    """Edits by the row that each would begin in; they go to the row that is there for it."""
    if not edits:
        return
    rows: dict[int, tuple[int, bytes]] = {
        wanted: (row_id, blob)
        for wanted, row_id, blob in connection.execute(
            "SELECT asked.value, p.id, p.records FROM json_each(?) AS asked"
            " CROSS JOIN posting AS p WHERE p.id = (SELECT max(id) FROM posting"
            f" WHERE id BETWEEN (asked.value >> {POSTING_SHIFT}) << {POSTING_SHIFT}"
            " AND asked.value)",
            (number_list(edits),),
        )
    }
    blobs: dict[int, bytes] = {}
    merged: dict[int, list[tuple[int, float | None]]] = {}
    for wanted, edit in edits.items():
        row_id, blob = rows.get(wanted, (wanted, b""))
        if row_id != wanted and begins_new_row(blob, edit):
            row_id, blob = wanted, b""
        blobs[row_id] = blob
        merged.setdefault(row_id, []).extend(edit)
    after = [(row_id, revise(blobs[row_id], edit)) for row_id, edit in merged.items()]
    connection.executemany(
        "INSERT OR REPLACE INTO posting VALUES (?, ?)", [row for row in after if row[1]]
    )
    emptied = [(row_id,) for row_id, blob in after if not blob]
    if emptied:
        connection.executemany("DELETE FROM posting WHERE id = ?", emptied)


def drop_episodes(connection: sqlite3.Connection, namespace: int, episodes: Sequence[int]) -> None:
    """Remove these episodes (row ids that exist) with their postings."""
    if not episodes:
        return
    edits: dict[int, list[tuple[int, float | None]]] = defaultdict(list)
    fewer: dict[int, int] = defaultdict(int)
    listed = number_list(episodes)
    for row_id, blob in connection.execute(
        "SELECT id, terms FROM episode WHERE id IN (SELECT value FROM json_each(?))", (listed,)
    ):
        sequence = sequence_of(row_id)
        for term in unpack(blob, TERM)["term"].tolist():
            edits[posting_id(term, sequence)].append((sequence, None))
            fewer[term] -= 1
    _revise_postings(connection, edits)
    _count_terms(connection, [(step, term) for term, step in fewer.items()])
    connection.execute(
        "DELETE FROM episode WHERE id IN (SELECT value FROM json_each(?))", (listed,)
    )
    connection.execute(
        "UPDATE namespace SET episodes = episodes - ? WHERE id = ?", (len(episodes), namespace)
    )


def evict_episodes(connection: sqlite3.Connection, namespace: int, cap: int) -> None:
    """Remove the longest unrenewed episodes above the cap."""
    (count,) = connection.execute(
        "SELECT episodes FROM namespace WHERE id = ?", (namespace,)
    ).fetchone()
    if count <= cap:
        return
    rows = connection.execute(
        "SELECT id FROM episode WHERE namespace = ? ORDER BY renewed_at, id LIMIT ?",
        (namespace, count - cap),
    ).fetchall()
    drop_episodes(connection, namespace, [row_id for (row_id,) in rows])
