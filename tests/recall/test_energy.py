"""All energy of a node: shares, bounds, namespaces."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from synapse_retrievers.params import RecallParams
from synapse_retrievers.recall.cue import Cue
from synapse_retrievers.recall.energy import energize, energy_of
from synapse_retrievers.recall.spread import Spread
from synapse_retrievers.types import Uses


def cue_of(gains, weight, sure=1.0):
    """A cue in which each (node, gain) is one use of one episode, with support enough or less."""
    count = len(gains)
    nodes = np.array([node for node, _ in gains], np.int64)
    uses = Uses(("q",), np.zeros(1), np.zeros(count, np.int64), nodes, np.ones(count), nodes)
    energy = np.array([gain for _, gain in gains], float)
    one = np.zeros(1, np.int64)
    support = np.where(energy > 0, (0.33 * sure) ** 2, 0.0)
    return Cue(weight, one, np.ones(1), np.arange(count), energy, support), uses


def spread_of(rows):
    columns = list(zip(*sorted(rows), strict=True)) or [()] * 3
    space, node = (np.array(column, np.int64) for column in columns[:2])
    return Spread(space, node, np.array(columns[2], float), ())


def energies(spread, cues, factors, params=None):
    found = energize(spread, cues, np.array(factors), params or RecallParams())
    assert found.node.tolist() == sorted(set(found.node.tolist()))
    return dict(zip(found.node.tolist(), found.energy.tolist(), strict=True))


def test_three_times_the_cue_over_its_weight_and_a_fifth_plus_the_spread():
    spread, told = spread_of([(0, 7, 0.4)]), cue_of([(7, 0.2), (7, 0.1), (8, 0.5)], 2.8)
    expected = {7: 3 * 0.3 / 3 + 0.4, 8: 3 * 0.5 / 3}
    assert energies(spread, [told], [1.0]) == pytest.approx(expected)


def test_each_namespace_is_bounded_before_and_their_sum_after():
    told = [cue_of([(7, 5.0)], 1.0), cue_of([(7, 5.0)], 1.0)]
    assert energies(None, told, [0.5, 0.25]) == {7: 0.75}
    assert energies(None, told, [0.8, 0.5]) == {7: 1.0}


def test_merged_kernels_take_the_spread_once_and_unscaled():
    told = [cue_of([(7, 0.2)], 1.8), cue_of([(7, 0.4)], 1.8)]
    params = RecallParams(kernel="hub", spread_weight=0.5)
    found = energies(spread_of([(0, 7, 0.4)]), told, [1.0, 0.5], params)
    assert found == {7: pytest.approx(0.3 + 0.5 * 0.6 + 0.2)}


def test_what_gets_nothing_is_not_there():
    assert energies(spread_of([(0, 7, 0.0)]), [], [1.0]) == {}
    assert energies(None, [], [1.0, 0.5]) == {}


def test_the_paper_has_no_bound():
    params = RecallParams.paper()
    assert energies(spread_of([(0, 7, 2.5)]), [], [1.0, 0.5], params) == {7: 2.5}


def test_one_weak_resemblance_is_no_certainty():
    weak = energy_of(np.zeros(1), np.array([0.02]), 0.02, RecallParams())
    strong = energy_of(np.zeros(1), np.array([1.0]), 1.0, RecallParams())
    assert weak[0] == pytest.approx(3 * 0.02 / 0.22)
    assert strong[0] == 1.0


def test_confidence_weighs_the_cue_and_not_the_spread():
    told = [cue_of([(7, 0.3), (8, 0.3)], 2.8, sure=0.5)]
    found = energize(spread_of([(0, 8, 0.4), (0, 9, 0.4)]), told, np.ones(1), RecallParams())
    assert found.node.tolist() == [7, 8, 9]
    assert found.energy.tolist() == pytest.approx([0.5 * 0.3, 0.5 * 0.3 + 0.4, 0.4])
    assert found.confidence.tolist() == pytest.approx([0.5, 0.5, 0.0])


def test_support_adds_up_over_episodes_and_namespaces():
    told = [
        cue_of([(7, 0.1), (7, 0.1), (8, 0.1)], 1.0, sure=0.6),
        cue_of([(7, 0.1)], 1.0, sure=0.6),
    ]
    found = energize(None, told, np.array([1.0, 0.5]), RecallParams())
    assert found.confidence.tolist() == pytest.approx([0.6 * 2.5**0.5, 0.6])


def test_the_crowd_is_counted_over_all_namespaces():
    one = [(replace(cue, of=5_000), uses) for cue, uses in [cue_of([(7, 0.1)], 1.0)] * 2]
    found = energize(None, one, np.array([0.5, 0.5]), RecallParams())
    assert found.confidence.tolist() == pytest.approx([1 / 1.45])


rows = st.dictionaries(
    st.tuples(st.integers(0, 2), st.integers(1, 6)), st.floats(0, 1), max_size=12
)
gains = st.lists(st.tuples(st.integers(1, 6), st.floats(0, 3)), max_size=8)


@given(
    rows,
    st.lists(gains, min_size=3, max_size=3),
    st.lists(st.floats(0, 20), min_size=3, max_size=3),
    st.permutations([1.0, 0.8, 0.5]),
    st.sampled_from(["conditional", "hub", "paper"]),
)
def test_energy_is_as_by_hand_and_bounded(reached, told, weights, factors, kernel):
    params = RecallParams(kernel=kernel, displace_similarity=0.0)
    if kernel != "conditional":
        reached = {key: e for key, e in reached.items() if key[0] == 0}
    spread = spread_of([(space, node, e) for (space, node), e in reached.items()])
    cues = [cue_of(one, weight) for one, weight in zip(told, weights, strict=True)]
    most = float("inf") if kernel == "paper" else 1.0
    expected = {}
    for node in range(1, 7):
        total = 0.0
        for space, factor in enumerate(factors):
            gain = sum(value for name, value in told[space] if name == node)
            own = 3 * gain / (weights[space] + 0.2)
            if kernel == "conditional":
                own += reached.get((space, node), 0.0)
            total += factor * min(most, own)
        if kernel != "conditional":
            total += min(most, reached.get((0, node), 0.0))
        expected[node] = min(most, total)
    found = energies(spread, cues, factors, params)
    for node, energy in expected.items():
        assert found.get(node, 0.0) == pytest.approx(energy, rel=1e-9, abs=1e-11)
    assert all(0 < energy <= most for energy in found.values())
