"""What a disappointment takes: exactly the penalty, from what is left now, never below 0."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from synapse_retrievers.learning.decay import count_at, weight_at
from synapse_retrievers.learning.reinforce import reinforce
from synapse_retrievers.learning.weaken import weaken, weaken_use
from synapse_retrievers.params import DAY, LearningParams
from synapse_retrievers.types import EDGE_STATE, Episode, Use

DEFAULT = LearningParams()
YEAR = 365 * DAY


def edge(n=1, weight=0.5, co=1.0, at=0.0):
    return np.array([(n, weight, co, at, at)], EDGE_STATE)


def weight(state, now, namespace="personal"):
    return float(weight_at(state, now, namespace, DEFAULT)[0])


def co(state, now):
    return float(count_at(state["co"], state["activated_at"], now, DEFAULT)[0])


states = st.builds(
    edge, st.integers(1, 100), st.floats(0, 1), st.floats(0, 10), st.floats(-1e8, 1e8)
)
penalties = st.floats(0, 2)
moments = st.floats(-1e8, 3e8)
namespaces = st.sampled_from(["personal", "shared", "ephemeral"])


@given(states, penalties, moments, namespaces)
def test_exactly_the_penalty_is_taken_and_never_more_than_there_is(state, penalty, now, namespace):
    before = weight(state, now, namespace), co(state, now)
    after = weaken(state, penalty, now, namespace, DEFAULT)
    left = weight(after, now, namespace), co(after, now)
    assert left == pytest.approx([max(0.0, value - penalty) for value in before], abs=1e-9)


@given(states, penalties, moments, namespaces, st.floats(0, 3e8))
def test_no_weight_is_raised_then_or_later(state, penalty, now, namespace, later):
    after = weaken(state, penalty, now, namespace, DEFAULT)
    assert after["weight"][0] <= state["weight"][0]
    assert after["co"][0] <= state["co"][0]
    for moment in (now, now + later):
        assert weight(after, moment, namespace) <= weight(state, moment, namespace) + 1e-12


@given(states, penalties, moments)
def test_it_is_no_use(state, penalty, now):
    after = weaken(state, penalty, now, "personal", DEFAULT)
    for field in ("activations", "activated_at", "created_at"):
        assert after[field][0] == state[field][0]


def test_a_potentiated_edge_goes_below_its_floor_and_stays_there():
    after = weaken(edge(n=9, weight=0.5), 0.05, YEAR, "personal", DEFAULT)
    assert weight(after, YEAR) == pytest.approx(0.15)
    assert weight(after, 9 * YEAR) == pytest.approx(0.15)


def test_use_lifts_a_weakened_edge_from_where_it_is():
    after = weaken(edge(n=9, weight=0.5), 0.3, YEAR, "personal", DEFAULT)
    again = reinforce(after, np.ones(1), 2, YEAR, "personal", DEFAULT)
    assert weight(again, YEAR) == pytest.approx(0.3)


def test_what_is_not_there_is_not_made():
    none = np.zeros(1, EDGE_STATE)
    assert (weaken(none, 0.3, 9.0, "personal", DEFAULT) == none).all()


def test_an_edge_of_which_nothing_is_left_stays_at_nothing():
    after = weaken(edge(weight=1.0), 0.1, 1e15, "ephemeral", DEFAULT)
    assert after["weight"][0] == 0.0


EPISODE = Episode("personal", "q", {"q": 1.0}, {"a": Use(1.0, "a#1"), "b": Use(0.3)}, 5.0)


def test_a_use_loses_strength_and_keeps_its_chunk_and_the_episode_its_time():
    after = weaken_use(EPISODE, "a", 0.3)
    assert after.used == {"a": Use(0.7, "a#1"), "b": Use(0.3)}
    assert after.renewed_at == 5.0


@pytest.mark.parametrize("penalty", [0.3, 0.31, 2.0])
def test_at_nothing_the_node_leaves_the_episode(penalty):
    assert weaken_use(EPISODE, "b", penalty).used == {"a": Use(1.0, "a#1")}
