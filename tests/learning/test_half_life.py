"""How long an edge lasts, by its activations, its idleness and its namespace."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from synapse_retrievers.learning.half_life import half_life
from synapse_retrievers.params import LearningParams

DEFAULT = LearningParams()


def by_hand(n, idle, namespace):
    if namespace == "ephemeral":
        return 1.0
    start = 60.0 if namespace == "shared" else 30.0
    rho = math.log(1 + n / 10)
    learned = 3 + (120 - 3) * rho / (1 + rho)
    confidence = 2 ** (-idle / start)
    blended = min(120.0, max(3.0, (1 - confidence) * start + confidence * learned))
    return max(60.0, blended) if namespace == "shared" else blended


def days(n, idle, namespace="personal", params=DEFAULT):
    return float(half_life(np.array([n]), np.array([float(idle)]), namespace, params)[0])


@given(
    st.integers(0, 2**32 - 1),
    st.floats(0, 1e5),
    st.sampled_from(["personal", "shared", "ephemeral", "branch:x", "acme"]),
)
def test_it_is_as_by_hand(n, idle, namespace):
    assert days(n, idle, namespace) == pytest.approx(by_hand(n, idle, namespace), rel=1e-12)


def test_a_new_edge_lasts_shorter_than_the_default_and_a_confirmed_one_longer():
    assert days(1, 0) == pytest.approx(13.18, abs=0.01)
    assert days(40, 0) == pytest.approx(75.16, abs=0.01)


@pytest.mark.parametrize(("namespace", "default"), [("personal", 30.0), ("acme", 30.0)])
def test_a_stale_edge_returns_to_its_default(namespace, default):
    assert days(40, 5_000, namespace) == pytest.approx(default)


def test_in_shared_it_is_never_below_sixty():
    assert days(1, 0, "shared") == 60.0
    assert days(40, 0, "shared") == pytest.approx(75.16, abs=0.01)


def test_in_ephemeral_nothing_is_learned():
    assert days(10_000, 0, "ephemeral") == 1.0


@given(st.integers(0, 10**6), st.floats(0, 1e4))
def test_it_stays_between_the_shortest_and_the_longest(n, idle):
    assert 3.0 <= days(n, idle) <= 120.0


@given(st.integers(0, 10**6))
def test_more_uses_last_longer(n):
    assert days(n + 1, 0) >= days(n, 0)
