"""Plain retrievers to be wrapped: vectors, BM25, and both joined by rank."""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal, TypeAlias

import bm25s
import numpy as np

from synapse_retrievers.evaluation.log import Ranked
from synapse_retrievers.tokens import tokens
from synapse_retrievers.types import Floats, Ints, NodeId

Base: TypeAlias = Literal["vector", "bm25", "hybrid"]
Unit: TypeAlias = Literal["chunks", "files"]

logging.getLogger("bm25s").setLevel(logging.WARNING)  # it sets itself to DEBUG

_RANK_CONSTANT = 60.0
_JOINED = 100
"""Leading chunks of each ranking that are joined."""
_BLOCK = 256


@dataclass(frozen=True, slots=True)
class Corpus:
    """What can be searched.

    Attributes:
        sources: The node that each chunk belongs to.
        vectors: Shape [chunks, dimensions], of length 1.
        texts: Of the chunks; empty where only vectors are known, and then there is no BM25.
    """

    sources: tuple[NodeId, ...]
    vectors: Floats = field(repr=False)
    texts: tuple[str, ...] = field(default=(), repr=False)


def ranked(
    corpus: Corpus,
    queries: Sequence[str],
    vectors: Floats,
    *,
    base: Base = "vector",
    unit: Unit = "chunks",
    k: int = 8,
) -> list[Ranked]:
    """What a plain retriever returns for each query, exactly searched.

    Args:
        corpus: What is searched.
        queries: Texts.
        vectors: Theirs, shape [queries, dimensions].
        base: "vector": by cosine; "bm25": by BM25 (Robertson & Zaragoza 2009, k1 1.5, b 0.75);
            "hybrid": both joined by reciprocal rank fusion (Cormack et al. 2009, constant 60).
        unit: "chunks": k chunks, a node may stand there several times; "files": k nodes, each at
            the place of its best chunk.
        k: How many places.

    Returns:
        One list a query; shorter than k only where the corpus is.
    """
    found = {"vector": _by_vector, "bm25": _by_bm25, "hybrid": _by_both}[base]
    return [
        _places(corpus, row, np.argsort(-row, kind="stable"), unit, k)
        for row in found(corpus, queries, vectors)
    ]


@lru_cache(maxsize=100_000)
def _words(text: str) -> tuple[str, ...]:
    """The same chunk is read again for every base and every state of a repository."""
    return tuple(tokens(text))


_Scores: TypeAlias = Iterator[Floats]
"""One value a chunk for each query, in turn."""


def _by_vector(corpus: Corpus, queries: Sequence[str], vectors: Floats) -> _Scores:
    for start in range(0, len(queries), _BLOCK):
        yield from vectors[start : start + _BLOCK] @ corpus.vectors.T


def _by_bm25(corpus: Corpus, queries: Sequence[str], vectors: Floats) -> _Scores:  # noqa: ARG001
    index = bm25s.BM25(k1=1.5, b=0.75)
    index.index([list(_words(text)) for text in corpus.texts], show_progress=False)
    for query in queries:
        words = list(dict.fromkeys(tokens(query)))
        told = index.get_scores(words) if words else np.zeros(len(corpus.texts))
        yield np.asarray(told, np.float64)


def _by_both(corpus: Corpus, queries: Sequence[str], vectors: Floats) -> _Scores:
    pairs = zip(
        _by_vector(corpus, queries, vectors), _by_bm25(corpus, queries, vectors), strict=True
    )
    for by_vector, by_words in pairs:
        joined = np.zeros(len(corpus.sources))
        for scores in (by_vector, by_words):
            leading = np.argsort(-scores, kind="stable")[:_JOINED]
            joined[leading] += 1.0 / (_RANK_CONSTANT + 1.0 + np.arange(len(leading)))
        yield joined


def _places(corpus: Corpus, scores: Floats, order: Ints, unit: Unit, k: int) -> Ranked:
    places: list[int] = []
    seen: set[NodeId] = set()
    for place in order.tolist():
        if len(places) == k:
            break
        if unit == "chunks" or corpus.sources[place] not in seen:
            places.append(place)
            seen.add(corpus.sources[place])
    return Ranked(
        tuple(corpus.sources[place] for place in places),
        tuple(float(scores[place]) for place in places),
    )
