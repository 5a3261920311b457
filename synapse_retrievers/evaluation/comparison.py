"""How sure a difference between two values of the same queries is; pure sums."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from synapse_retrievers.types import Floats

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


@dataclass(frozen=True, slots=True)
class Macro:
    """Relative gains of several logs, each counted once whatever its number of queries.

    Attributes:
        relative: Mean of the relative gains.
        interval: Of this mean, the queries of each log drawn anew; None below two queries.
        better: Logs whose own interval lies above 0.
        worse: Logs whose own interval lies below 0.
        logs: How many there are.
    """

    relative: float
    interval: Interval | None
    better: int
    worse: int
    logs: int


def macro(
    pairs: Sequence[tuple[Floats, Floats]], *, seed: int = 0, resamples: int = 2_000
) -> Macro:
    """The mean relative gain over several logs, and in how many of them it is sure.

    Args:
        pairs: One (before, after) a log, each of shape [queries]; logs without a query, or with
            nothing found before, are passed over.
        seed: Of the bootstrap.
        resamples: How many samples are drawn.
    """
    told = [(plain, wrapped) for plain, wrapped in pairs if len(plain) and plain.mean() > 0]
    if not told:
        return Macro(np.nan, None, 0, 0, 0)
    own = [bootstrap(wrapped - plain, seed=seed) for plain, wrapped in told]
    gains = [wrapped.mean() / plain.mean() - 1.0 for plain, wrapped in told]
    generator = np.random.default_rng(seed)
    drawn = np.zeros(resamples)
    for plain, wrapped in told:
        for turn in range(resamples):
            rows = generator.integers(len(plain), size=len(plain))
            drawn[turn] += wrapped[rows].sum() / max(plain[rows].sum(), _NOTHING) - 1.0
    low, high = np.quantile(drawn / len(told), [0.025, 0.975])
    return Macro(
        float(np.mean(gains)),
        None if None in own else Interval(float(low), float(high)),
        sum(one is not None and one.low > 0 for one in own),
        sum(one is not None and one.high < 0 for one in own),
        len(told),
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
