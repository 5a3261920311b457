"""Weights and counts at a moment: pure functions of the clock."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from synapse_retrievers.learning.decay import count_at, is_prunable, weight_at
from synapse_retrievers.params import DAY, LearningParams
from synapse_retrievers.types import EDGE_STATE

DEFAULT = LearningParams()
FIXED = LearningParams(half_life_min_days=30, half_life_max_days=30)


def edge(n=1, weight=0.5, co=1.0, at=0.0):
    return np.array([(n, weight, co, at, at)], EDGE_STATE)


def weight(now, namespace="personal", params=DEFAULT, **fields):
    return float(weight_at(edge(**fields), now, namespace, params)[0])


def by_hand(n, stored, at, now, namespace):
    idle = max(0.0, now - at) / DAY
    start = {"ephemeral": 1.0, "shared": 60.0}.get(namespace, 30.0)
    rho = math.log(1 + n / 10)
    learned = 3 + 117 * rho / (1 + rho)
    sure = 2 ** (-idle / start)
    half = min(120.0, max(3.0, (1 - sure) * start + sure * learned))
    if namespace == "shared":
        half = max(60.0, half)
    if namespace == "ephemeral":
        return stored * 2 ** (-idle / 1.0)
    left = stored * 2 ** (-idle / half)
    return max(left, min(stored, 0.2)) if n >= 5 else left


moments = st.floats(-1e10, 1e10)
namespaces = st.sampled_from(["personal", "shared", "ephemeral", "branch:x", "acme"])


@given(st.integers(1, 1_000), st.floats(0, 1), moments, moments, namespaces)
def test_a_weight_is_as_by_hand_at_any_moment(n, stored, at, now, namespace):
    found = weight(now, namespace, n=n, weight=stored, at=at)
    assert found == pytest.approx(by_hand(n, stored, at, now, namespace), rel=1e-9, abs=1e-300)
    assert 0.0 <= found <= stored


def test_three_tenths_with_a_fixed_half_life_of_thirty_days():
    assert weight(10 * DAY, weight=0.3, params=FIXED) == pytest.approx(0.238, abs=0.0005)
    assert weight(30 * DAY, weight=0.3, params=FIXED) == pytest.approx(0.15)


def test_a_stamp_in_the_future_counts_as_age_zero():
    assert weight(0.0, weight=0.7, at=10 * 365 * DAY) == 0.7


def test_the_floor_holds_from_five_activations_on_and_never_raises():
    assert weight(1e10, n=5, weight=0.9) == 0.2
    assert weight(1e10, n=4, weight=0.9) < 1e-9
    assert weight(1e10, n=9, weight=0.05) == 0.05
    assert weight(0.0, n=9, weight=0.05) == 0.05


def test_ephemeral_has_no_floor_and_halves_every_day():
    assert weight(DAY, "ephemeral", n=40, weight=0.8) == pytest.approx(0.4)
    assert weight(100 * DAY, "ephemeral", n=40, weight=0.8) < 1e-12


@given(st.integers(1, 60), st.floats(0, 1), st.lists(st.floats(0, 4_000), min_size=2))
def test_a_weight_never_rises_while_time_passes(n, stored, days):
    weights = [weight(day * DAY, n=n, weight=stored) for day in sorted(days)]
    assert all(later <= earlier + 1e-12 for earlier, later in pairwise(weights))


@given(st.floats(0, 1e6), moments, moments)
def test_a_count_halves_every_year_and_never_grows(count, at, now):
    found = float(count_at(np.array([count]), np.array([at]), now, DEFAULT)[0])
    expected = count * 2 ** (-max(0.0, now - at) / DAY / 365)
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-300)


@pytest.mark.parametrize(
    ("stored", "co", "goes"),
    [(0.0099, 0.0199, True), (0.0099, 0.02, False), (0.01, 0.0199, False), (0.01, 0.02, False)],
)
def test_an_edge_may_go_when_weight_and_co_are_both_too_small(stored, co, goes):
    assert bool(is_prunable(edge(weight=stored, co=co), 0.0, "personal", DEFAULT)[0]) is goes


def test_no_edges_have_no_weights():
    none = np.zeros(0, EDGE_STATE)
    assert len(weight_at(none, 0.0, "personal", DEFAULT)) == 0
    assert len(is_prunable(none, 0.0, "personal", DEFAULT)) == 0
