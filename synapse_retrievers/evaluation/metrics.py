"""How good a ranking is against what was used, and how sure a difference is; pure sums."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from synapse_retrievers.errors import ParamError
from synapse_retrievers.types import Floats, NodeId

_BLOCK = 1_000_000
"""Drawn indices held at once: 8 MB, whatever the number of queries."""

_NOTHING = 1e-12
"""Sums of the same terms in another order differ in the last digit; no query won by that."""


@dataclass(frozen=True, slots=True)
class Interval:
    """Between which values a mean lies, with the confidence that was asked for."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """One metric of the same queries before and after.

    Attributes:
        plain: Mean before; NaN without queries.
        wrapped: Mean after; NaN without queries.
        interval: Of the mean difference; None below two queries, where nothing can be drawn.
        won: Share of the queries whose value rose, in [0, 1].
        lost: Share of the queries whose value fell, in [0, 1].
    """

    plain: float
    wrapped: float
    interval: Interval | None
    won: float
    lost: float

    @property
    def difference(self) -> float:
        """What the metric gained."""
        return self.wrapped - self.plain

    @property
    def relative(self) -> float | None:
        """The difference as a share of the value before; None where that was 0 or nothing."""
        return self.difference / self.plain if self.plain > 0 else None


def recall_at(ranked: Sequence[NodeId], used: Collection[NodeId], k: int) -> float:
    """The share of the used nodes among the first `k` places, in [0, 1].

    A node that stands there twice (two chunks of one file) counts once and fills two places.

    Args:
        ranked: Best first.
        used: Not empty.
        k: How many places count, at least 1.

    Raises:
        ParamError: Nothing was used, or `k` is below 1.

    >>> recall_at(["a", "a", "b", "c"], {"a", "c"}, k=3)
    0.5
    """
    _check(used, k)
    wanted = set(used)
    return len(wanted.intersection(ranked[:k])) / len(wanted)


def reciprocal_rank_at(ranked: Sequence[NodeId], used: Collection[NodeId], k: int) -> float:
    """1 / the rank of the first used node among the first `k` places, 0 if there is none.

    Ranks are counted over distinct nodes, each at its first place.

    Raises:
        ParamError: Nothing was used, or `k` is below 1.

    >>> reciprocal_rank_at(["a", "a", "b"], {"b"}, k=3)
    0.5
    """
    _check(used, k)
    wanted = set(used)
    return next((1 / rank for rank, node in _ranks(ranked[:k]) if node in wanted), 0.0)


def ndcg_at(ranked: Sequence[NodeId], used: Collection[NodeId], k: int) -> float:
    """Normalized discounted cumulative gain of the first `k` places, in [0, 1].

    sum of 1 / log2(rank + 1) over used nodes, as a share of the best order of min(k, used) of them
    (Järvelin & Kekäläinen 2002, gains 0 and 1). Ranks as in `reciprocal_rank_at`.

    Raises:
        ParamError: Nothing was used, or `k` is below 1.

    >>> ndcg_at(["a", "b"], {"a", "b", "c"}, k=2)
    1.0
    """
    _check(used, k)
    wanted = set(used)
    gained = sum(1 / np.log2(rank + 1) for rank, node in _ranks(ranked[:k]) if node in wanted)
    best = sum(1 / np.log2(rank + 1) for rank in range(1, min(k, len(wanted)) + 1))
    return float(gained / best)


def compare(plain: Sequence[float], wrapped: Sequence[float], *, seed: int = 0) -> Comparison:
    """Two values a query, before and after, as one comparison.

    Args:
        plain: One value a query.
        wrapped: The same queries in the same order.
        seed: Of the bootstrap.

    Raises:
        ValueError: The two differ in length.
    """
    pairs = np.array(list(zip(plain, wrapped, strict=True)), dtype=np.float64).reshape(-1, 2)
    gains = pairs[:, 1] - pairs[:, 0]
    if not len(pairs):
        return Comparison(np.nan, np.nan, None, 0.0, 0.0)
    return Comparison(
        plain=float(pairs[:, 0].mean()),
        wrapped=float(pairs[:, 1].mean()),
        interval=bootstrap(gains, seed=seed),
        won=float(np.mean(gains > _NOTHING)),
        lost=float(np.mean(gains < -_NOTHING)),
    )


def bootstrap(
    gains: Floats, *, seed: int = 0, resamples: int = 10_000, confidence: float = 0.95
) -> Interval | None:
    """Percentile interval of the mean of paired differences (Efron & Tibshirani 1993).

    Args:
        gains: Shape [queries], after minus before of each query.
        seed: The same seed gives the same interval.
        resamples: How many samples of the size of `gains` are drawn.
        confidence: In (0, 1).

    Returns:
        None below two queries.
    """
    if len(gains) < 2:  # noqa: PLR2004 - one value has no spread
        return None
    generator = np.random.default_rng(seed)
    block = max(1, _BLOCK // len(gains))
    means = np.concatenate(
        [
            gains[
                generator.integers(len(gains), size=(min(block, resamples - at), len(gains)))
            ].mean(axis=1)
            for at in range(0, resamples, block)
        ]
    )
    tail = (1 - confidence) / 2
    low, high = np.quantile(means, [tail, 1 - tail])
    return Interval(float(low), float(high))


def _check(used: Collection[NodeId], k: int) -> None:
    if not used:
        raise ParamError("used", used, "that is not empty")
    if k < 1:
        raise ParamError("k", k, "of at least 1")


def _ranks(ranked: Sequence[NodeId]) -> Iterator[tuple[int, NodeId]]:
    return enumerate(dict.fromkeys(ranked), start=1)
