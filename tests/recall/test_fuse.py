"""Worth of the hits: by ranks, or by scores as in the paper."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from synapse_retrievers.params import RecallParams
from synapse_retrievers.recall.fuse import boosted, fuse
from synapse_retrievers.types import Hit

SCORES = RecallParams(fusion="scores", boost=0.3)
ANY_SCORE = st.one_of(
    st.none(),
    st.integers(-(10**6), 10**6),
    st.floats(),
    st.floats(-1e6, 1e6).map(np.float64),
    st.floats(-1e6, 1e6, width=32).map(np.float32),
    st.integers(-100, 100).map(np.int64),
)


def test_ranks_fall_by_half_over_all_places_and_energy_counts_twice():
    hits = [Hit("a"), Hit("b"), Hit("c"), Hit("d")]
    assert fuse(hits, {"c": 0.25, "x": 1.0}, RecallParams()) == [1.0, 0.875, 1.25, 0.625]


def test_scores_take_a_third_of_the_energy():
    hits = [Hit("a", 0.8), Hit("b", 0.7)]
    assert fuse(hits, {"b": 0.15}, SCORES) == [0.8, 0.745]


@pytest.mark.parametrize("bad", [None, math.nan, math.inf, -math.inf, np.float64("nan")])
def test_one_hit_without_a_finite_score_makes_all_places_count(bad):
    hits = [Hit("a", 0.9), Hit("b", bad), Hit("c", 0.1), Hit("d", 0.0)]
    assert fuse(hits, {"d": 1.0}, SCORES) == [1.0, 0.75, 0.5, 0.55]


def test_a_hit_without_an_id_has_its_place_only():
    assert fuse([Hit(None), Hit("a")], {"a": 0.1}, RecallParams()) == [1.0, 0.95]


def test_no_hits_are_worth_nothing():
    assert fuse([], {"a": 1.0}, RecallParams()) == []
    assert fuse([], {"a": 1.0}, SCORES) == []


@given(
    st.lists(st.tuples(st.sampled_from(["a", "b", None]), ANY_SCORE), max_size=50),
    st.dictionaries(st.sampled_from("ab"), st.floats(0, 1)),
    st.sampled_from([RecallParams(), SCORES]),
)
def test_worths_are_finite_and_as_by_hand(rows, energies, params):
    hits = [Hit(node, score) for node, score in rows]
    worths = fuse(hits, energies, params)
    by_score = params.fusion == "scores" and all(
        score is not None and math.isfinite(score) for _, score in rows
    )
    divisor = 1 if params.fusion == "scores" else 2
    for place, ((node, score), worth) in enumerate(zip(rows, worths, strict=True)):
        base = float(score) if by_score else 1 - place / (divisor * len(rows))
        energy = energies.get(node, 0.0)
        assert math.isfinite(worth)
        assert worth == pytest.approx(base + params.boost * energy, rel=1e-9, abs=1e-11)


@given(st.floats(0, 1))
def test_an_absent_node_is_worth_its_boost(energy):
    assert boosted(energy, RecallParams()) == pytest.approx(2 * energy, abs=1e-12)
