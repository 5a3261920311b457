"""Means, intervals and macro means of paired values."""

import math

import numpy as np
import pytest

from synapse_retrievers.evaluation.comparison import Interval, bootstrap, compare, macro


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


def test_the_macro_mean_counts_every_log_once_and_says_where_it_is_sure():
    better = (np.full(40, 0.5), np.tile([0.5, 1.0], 20))
    worse = (np.full(400, 0.5), np.tile([0.5, 0.25], 200))
    same = (np.full(9, 0.5), np.full(9, 0.5))
    found = macro([better, worse, same, (np.zeros(0), np.zeros(0)), (np.zeros(3), np.ones(3))])
    assert found.relative == pytest.approx((0.5 - 0.25 + 0.0) / 3)
    assert (found.better, found.worse, found.logs) == (1, 1, 3)
    assert found.interval is not None
    assert found.interval.low < found.relative < found.interval.high


def test_the_macro_interval_of_one_log_is_that_of_its_ratio():
    plain = np.full(2_000, 0.5)
    wrapped = plain + np.random.default_rng(1).normal(0.1, 0.3, 2_000)
    found, own = macro([(plain, wrapped)]), bootstrap(wrapped - plain)
    assert found.interval is not None
    assert own is not None
    assert found.interval.low == pytest.approx(own.low / 0.5, abs=0.004)
    assert found.interval.high == pytest.approx(own.high / 0.5, abs=0.004)


def test_no_log_has_no_macro_mean():
    assert math.isnan(macro([]).relative)
    assert macro([]).interval is None
