"""The gain: decay first, then 0.30 times the strength, co by the size of the run."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from synapse_retrievers.learning.decay import count_at, weight_at
from synapse_retrievers.learning.reinforce import count_uses, reinforce
from synapse_retrievers.params import DAY, LearningParams
from synapse_retrievers.types import EDGE_STATE, NODE_STATE

DEFAULT = LearningParams()
YEAR = 365 * DAY


def edge(n=1, weight=0.5, co=1.0, at=0.0, created=0.0):
    return np.array([(n, weight, co, at, created)], EDGE_STATE)


def once(state, strength=1.0, size=2, now=0.0, namespace="personal"):
    after = reinforce(state, np.array([strength]), size, now, namespace, DEFAULT)
    return dict(zip(EDGE_STATE.names, after[0].tolist(), strict=True))


def test_the_first_use_makes_an_edge():
    assert once(np.zeros(1, EDGE_STATE), now=7.0) == {
        "activations": 1,
        "weight": 0.3,
        "co": 1.0,
        "activated_at": 7.0,
        "created_at": 7.0,
    }


def test_an_idle_edge_is_not_topped_up_from_its_old_weight():
    after = once(edge(weight=0.9, co=1.0), now=YEAR)
    assert after["weight"] == pytest.approx(0.3, abs=0.0005)
    assert after["co"] == pytest.approx(1.5)
    assert (after["activations"], after["activated_at"], after["created_at"]) == (2, YEAR, 0.0)


def test_six_nodes_do_not_weigh_fifteen_times_two():
    assert once(np.zeros(1, EDGE_STATE), size=6)["co"] == pytest.approx(0.2)
    assert once(np.zeros(1, EDGE_STATE), size=6)["weight"] == pytest.approx(0.3)


@pytest.mark.parametrize(("strength", "gain"), [(0.1, 0.03), (2.0, 0.6), (5.0, 0.6)])
def test_strength_is_clamped_to_two(strength, gain):
    assert once(np.zeros(1, EDGE_STATE), strength)["weight"] == pytest.approx(gain)


@pytest.mark.parametrize("strength", [0.0, -1.0])
def test_no_strength_leaves_the_edge_as_it_is(strength):
    state = edge(weight=0.9, at=-YEAR)
    assert (reinforce(state, np.array([strength]), 2, 0.0, "personal", DEFAULT) == state).all()


def test_five_weak_touches_do_not_reach_the_floor():
    state = np.zeros(1, EDGE_STATE)
    for _ in range(5):
        state = reinforce(state, np.array([0.01]), 2, 0.0, "personal", DEFAULT)
    assert weight_at(state, YEAR, "personal", DEFAULT)[0] == pytest.approx(0.015)


def test_the_next_write_stamps_its_own_clock_over_a_future_one():
    after = once(edge(weight=0.4, at=10 * YEAR, created=10 * YEAR), now=0.0)
    assert after["weight"] == pytest.approx(0.7)
    assert after["activated_at"] == 0.0


def test_the_given_states_are_not_written():
    state = edge()
    reinforce(state, np.ones(1), 2, 9.0, "personal", DEFAULT)
    assert (state == edge()).all()


states = st.builds(
    edge,
    st.integers(0, 2**32 - 1),
    st.floats(0, 1),
    st.floats(0, 1e3),
    st.floats(-1e9, 1e9),
)
moments = st.floats(-1e9, 2e9)
namespaces = st.sampled_from(["personal", "shared", "ephemeral"])


@given(states, st.floats(0, 2), st.floats(0, 2), moments, namespaces, st.integers(2, 32))
def test_more_strength_never_gives_less(state, one, other, now, namespace, size):
    low, high = sorted((one, other))
    before = weight_at(state, now, namespace, DEFAULT)[0]
    first, second = (
        reinforce(state, np.array([s]), size, now, namespace, DEFAULT) for s in (low, high)
    )
    weights = [weight_at(after, now, namespace, DEFAULT)[0] for after in (first, second)]
    assert before <= weights[0] + 1e-12
    assert weights[0] <= weights[1] + 1e-12 <= 1.0 + 1e-9
    few, more = (count_at(s["co"], s["activated_at"], now, DEFAULT)[0] for s in (first, second))
    assert few <= more + 1e-9


@given(st.floats(0.01, 2), moments, moments, st.floats(0, 100))
def test_uses_decay_first_then_add(strength, at, now, used):
    counters = np.array([(used, at, np.nan)], NODE_STATE)
    after = count_uses(counters, np.array([strength]), now, DEFAULT)
    expected = used * 2 ** (-max(0.0, now - at) / DAY / 365) + strength
    assert after["used"][0] == pytest.approx(expected)
    assert after["used_at"][0] == now
    assert np.isnan(after["gone_at"][0])


def test_an_unused_node_keeps_its_count_and_its_time():
    counters = np.array([(3.0, 5.0, 8.0)], NODE_STATE)
    assert (count_uses(counters, np.zeros(1), 1e9, DEFAULT) == counters).all()
