"""Generated memories of any size: heavy-tailed edges and past questions, written in bulk.

The rows are those that learning would have left (tests/stores/test_generated.py compares them).
"""

import math
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from synapse_retrievers.stores.packed import (
    EPISODES_A_ROW,
    FULL_POSTINGS,
    NODE_SHIFT,
    POSTING,
    RECORD,
    TERM,
    USE,
    episode_id,
    namespace_base,
    posting_id,
    split,
)
from synapse_retrievers.stores.sqlite import SQLiteStore

NOW = 1_800_000_000.0
DAY = 86_400.0
NAMESPACE = "personal"
_TAIL = 0.75  # the node of rank r is drawn with a chance of about r ** -0.75
_WORDS_A_QUESTION = (6, 14)


@dataclass(frozen=True)
class Memory:
    """What was generated: who is joined, what was asked, and what was used for it."""

    seed: int
    names: list[str]
    pairs: NDArray[np.int64]
    states: NDArray[Any]
    degrees: NDArray[np.int64]
    questions: list[list[int]]
    uses: list[NDArray[np.int64]]
    vocabulary: list[str]

    def asked(self, count: int, seed: int) -> Iterator[tuple[str, list[str]]]:
        """Questions of which two thirds are a past one's words, with eight hits.

        Half of the hits are random nodes; a quarter were used for that past question.
        """
        rng = np.random.default_rng(seed)
        for _ in range(count):
            place = int(rng.integers(len(self.questions)))
            words = [one for one in self.questions[place] if rng.random() < 2 / 3]
            words += _zipf(rng, 4, len(self.vocabulary)).tolist()
            used = self.uses[place][:2].tolist()
            others = rng.integers(len(self.names), size=8).tolist()
            hits = list(dict.fromkeys(used[:1] + others[:5] + used[1:] + others[5:]))[:8]
            yield self.text(words), [self.names[one] for one in hits]

    def text(self, words: Sequence[int]) -> str:
        """Words by number as a question."""
        return " ".join(self.vocabulary[one] for one in words)


def generate(edges: int, episodes: int, seed: int = 7, mean_degree: int = 20) -> Memory:
    """A memory of about so many edges and exactly so many episodes."""
    rng = np.random.default_rng(seed)
    nodes = max(64, 2 * edges // mean_degree)
    pairs = _pairs(rng, nodes, edges)
    degrees = np.bincount(pairs.ravel(), minlength=nodes)
    vocabulary = [
        _word(place) for place in range(max(2_000, 12 * math.isqrt(max(episodes, 1)) * 10))
    ]
    questions, uses = _episodes(rng, episodes, pairs, len(vocabulary))
    names = [_uuid(rng) for _ in range(nodes)]
    return Memory(
        seed, names, pairs, _states(rng, len(pairs)), degrees, questions, uses, vocabulary
    )


def write(memory: Memory, path: Path) -> SQLiteStore:
    """The store that holds the memory."""
    store = SQLiteStore(path)
    store.claim(NAMESPACE, "id", "bench")
    store.close()
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA synchronous = OFF")
    connection.execute("BEGIN")
    _write_nodes(connection, memory)
    _write_edges(connection, memory)
    _write_episodes(connection, memory)
    connection.execute("COMMIT")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    return SQLiteStore(path)


def _pairs(rng: np.random.Generator, nodes: int, edges: int) -> NDArray[np.int64]:
    """Distinct pairs (a < b) whose ends are drawn with heavy-tailed chances (Chung and Lu)."""
    places = np.arange(nodes) + max(4.0, 0.0001 * nodes)
    chances = rng.permutation(places**-_TAIL)
    bounds = np.cumsum(chances / chances.sum())
    keys = np.zeros(0, np.int64)
    while len(keys) < edges:
        ends = np.searchsorted(bounds, rng.random((2, edges + edges // 3)))
        a, b = np.minimum(ends[0], nodes - 1), np.minimum(ends[1], nodes - 1)
        low, high = np.minimum(a, b)[a != b], np.maximum(a, b)[a != b]
        keys = np.unique(np.concatenate([keys, low * nodes + high]))
    keys = np.sort(rng.permutation(keys)[:edges])
    return np.stack([keys // nodes, keys % nodes], axis=1)


def _states(rng: np.random.Generator, count: int) -> NDArray[Any]:
    states = np.zeros(count, RECORD["state"])
    states["activations"] = rng.geometric(0.4, count)
    states["weight"] = rng.uniform(0.1, 1.0, count)
    states["co"] = states["activations"] * rng.uniform(0.1, 0.5, count)
    states["activated_at"] = NOW - rng.uniform(0, 120, count) * DAY
    states["created_at"] = states["activated_at"] - states["activations"] * DAY
    return states


def _episodes(
    rng: np.random.Generator, count: int, pairs: NDArray[np.int64], vocabulary: int
) -> tuple[list[list[int]], list[NDArray[np.int64]]]:
    """Words by number of each question, and the four nodes that were used: two edges."""
    lengths = rng.integers(*_WORDS_A_QUESTION, count, endpoint=True)
    drawn = np.split(_zipf(rng, int(lengths.sum()), vocabulary), np.cumsum(lengths)[:-1])
    questions = [words.tolist() for words in drawn[:count]]
    chosen = pairs[rng.integers(len(pairs), size=(count, 2))].reshape(count, 4)
    return questions, [np.unique(row) for row in chosen]


def _zipf(rng: np.random.Generator, count: int, vocabulary: int) -> NDArray[np.int64]:
    """Word numbers; the word of rank r is drawn with a chance of about 1 / (r + 2.7)."""
    top = math.log((vocabulary + 2.7) / 2.7)
    ranks = 2.7 * np.exp(rng.random(count) * top) - 2.7
    return np.minimum(ranks.astype(np.int64), vocabulary - 1)


def _word(place: int) -> str:
    letters = ""
    place += 26**2
    while place:
        place, letter = divmod(place, 26)
        letters += chr(97 + letter)
    return letters


def _uuid(rng: np.random.Generator) -> str:
    text = rng.bytes(16).hex()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def _write_nodes(connection: sqlite3.Connection, memory: Memory) -> None:
    connection.executemany("INSERT INTO node VALUES (?, ?)", enumerate(memory.names, start=1))


def _write_edges(connection: sqlite3.Connection, memory: Memory) -> None:
    sender = np.concatenate([memory.pairs[:, 0], memory.pairs[:, 1]])
    records = np.zeros(len(sender), RECORD)
    records["neighbor"] = np.concatenate([memory.pairs[:, 1], memory.pairs[:, 0]]) + 1
    records["state"] = np.concatenate([memory.states, memory.states])
    order = np.lexsort((records["neighbor"], sender))
    records, used = records[order], np.bincount(sender, records["state"]["co"], len(memory.names))
    starts = np.concatenate([[0], np.cumsum(memory.degrees)])
    base = namespace_base(1)
    for node in np.flatnonzero(memory.degrees).tolist():
        parts = split(records[starts[node] : starts[node + 1]])
        row_id = base | ((node + 1) << NODE_SHIFT)
        degree, count = int(memory.degrees[node]), len(parts)
        connection.executemany(
            "INSERT INTO adjacency VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            [(row_id, 0, degree, float(used[node]), NOW, None, count, parts[0].tobytes())]
            + [
                (row_id + number, int(part["neighbor"][0]), 0, 0.0, 0.0, None, 0, part.tobytes())
                for number, part in enumerate(parts[1:], start=1)
            ],
        )


def _write_episodes(connection: sqlite3.Connection, memory: Memory) -> None:
    rng = np.random.default_rng(memory.seed + 1)
    postings: dict[int, list[tuple[int, float]]] = {}
    for sequence, (words, used) in enumerate(zip(memory.questions, memory.uses, strict=True), 1):
        distinct, counts = np.unique(words, return_counts=True)
        weights = 1.0 + np.log(counts)
        weights /= np.linalg.norm(weights)
        for word, weight in zip(distinct.tolist(), weights.tolist(), strict=True):
            postings.setdefault(word, []).append((sequence, weight))
        uses = np.array([(node + 1, 1.0, -1) for node in used], USE)
        terms = np.array(list(zip(distinct + 1, weights, strict=True)), TERM)
        connection.execute(
            "INSERT INTO episode VALUES (?, 1, ?, ?, ?, ?)",
            (
                episode_id(1, sequence),
                f"{memory.text(words)} #{sequence}",
                NOW - float(rng.uniform(0, 120)) * DAY,
                uses.tobytes(),
                terms.tobytes(),
            ),
        )
    for word, found in postings.items():
        connection.execute(
            "INSERT INTO term VALUES (?, 1, ?, ?)", (word + 1, memory.vocabulary[word], len(found))
        )
        records = np.array(found, POSTING)
        blocks = records["episode"] // EPISODES_A_ROW
        start = 0
        while start < len(records):
            # A row goes on to the end of the block that its last posting lies in.
            last = blocks[min(start + FULL_POSTINGS, len(records)) - 1]
            end = int(np.searchsorted(blocks, last, "right"))
            part = records[start:end]
            row_id = posting_id(word + 1, int(part["episode"][0]))
            connection.execute("INSERT INTO posting VALUES (?, ?)", (row_id, part.tobytes()))
            start = end
    count = len(memory.questions)
    connection.execute("UPDATE namespace SET episodes = ?, next_episode = ?", (count, count + 1))
