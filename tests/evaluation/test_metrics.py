"""Known values, bounds and intervals of the metrics."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from synapse_retrievers.errors import ParamError
from synapse_retrievers.evaluation.metrics import (
    Interval,
    bootstrap,
    compare,
    ndcg_at,
    recall_at,
    reciprocal_rank_at,
)

METRICS = (recall_at, reciprocal_rank_at, ndcg_at)
NODES = st.lists(st.sampled_from("abcdefgh"), max_size=12)
USED = st.sets(st.sampled_from("abcdefghij"), min_size=1)


@pytest.mark.parametrize(
    ("ranked", "used", "k", "recall", "rank", "ndcg"),
    [
        ("abc", "a", 3, 1.0, 1.0, 1.0),
        ("abc", "c", 3, 1.0, 1 / 3, 1 / 2),
        ("abc", "c", 2, 0.0, 0.0, 0.0),
        ("abcd", "bd", 4, 1.0, 0.5, (1 / math.log2(3) + 1 / math.log2(5)) / (1 + 1 / math.log2(3))),
        ("aab", "b", 3, 1.0, 0.5, 1 / math.log2(3)),  # two chunks of one file
        ("ab", "abxyz", 2, 0.4, 1.0, 1.0),  # no more than k can be found
        ("", "a", 8, 0.0, 0.0, 0.0),
    ],
)
def test_known_values(ranked, used, k, recall, rank, ndcg):
    assert recall_at(list(ranked), set(used), k) == pytest.approx(recall)
    assert reciprocal_rank_at(list(ranked), set(used), k) == pytest.approx(rank)
    assert ndcg_at(list(ranked), set(used), k) == pytest.approx(ndcg)


@given(ranked=NODES, used=USED, k=st.integers(1, 12))
def test_every_metric_lies_between_0_and_1_and_the_best_order_has_1(ranked, used, k):
    for metric in METRICS:
        assert 0.0 <= metric(ranked, used, k) <= 1.0
    best = sorted(used)
    assert reciprocal_rank_at(best, used, k) == 1.0
    assert ndcg_at(best, used, k) == pytest.approx(1.0)
    assert recall_at(best, used, k) == min(k, len(used)) / len(used)


@given(ranked=NODES, used=USED, k=st.integers(1, 12))
def test_only_the_first_k_places_count(ranked, used, k):
    for metric in METRICS:
        assert metric(ranked, used, k) == metric(ranked[:k], used, k)


@pytest.mark.parametrize("metric", METRICS)
def test_nothing_used_and_no_places_are_refused(metric):
    with pytest.raises(ParamError, match="used"):
        metric(["a"], set(), 8)
    with pytest.raises(ParamError, match="k=0"):
        metric(["a"], {"a"}, 0)


def test_a_comparison_knows_means_gains_and_losses():
    found = compare([0.0, 0.5, 1.0, 0.5], [1.0, 0.5, 0.5, 1.0])
    assert (found.plain, found.wrapped, found.won, found.lost) == (0.5, 0.75, 0.5, 0.25)
    assert found.difference == 0.25
    assert found.relative == 0.5
    assert found.interval is not None
    assert found.interval.low <= found.difference <= found.interval.high


def test_nothing_asked_is_nan_and_without_an_interval():
    found = compare([], [])
    assert math.isnan(found.plain)
    assert math.isnan(found.wrapped)
    assert found.interval is None
    assert found.relative is None
    assert compare([0.0], [1.0]).interval is None
    assert compare([0.0], [1.0]).relative is None


def test_values_of_different_queries_are_refused():
    with pytest.raises(ValueError, match="zip"):
        compare([0.0], [0.0, 1.0])


def test_a_last_digit_is_no_win():
    found = compare([0.1 + 0.2, 0.3], [0.3, 0.1 + 0.2])
    assert (found.won, found.lost) == (0.0, 0.0)


def test_the_interval_is_the_normal_one_on_many_values_and_the_same_for_a_seed():
    gains = np.random.default_rng(3).normal(0.1, 1.0, 2_000)
    half = 1.96 * gains.std() / math.sqrt(len(gains))
    found = bootstrap(gains, seed=7)
    assert found is not None
    assert found.low == pytest.approx(gains.mean() - half, abs=0.004)
    assert found.high == pytest.approx(gains.mean() + half, abs=0.004)
    assert bootstrap(gains, seed=7) == found
    assert bootstrap(gains, seed=8) != found


def test_equal_gains_have_an_interval_of_no_width():
    assert bootstrap(np.full(50, 0.25)) == Interval(0.25, 0.25)


def test_more_values_than_a_block_holds_still_give_every_resample():
    gains = np.random.default_rng(0).normal(0.0, 1.0, 300_000)
    found = bootstrap(gains, resamples=10)
    assert found is not None
    assert found.low < found.high
