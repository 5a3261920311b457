"""All energy of a node: shares, bounds, namespaces."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from synapse_retrievers.params import RecallParams
from synapse_retrievers.recall.cue import Cue, Speaker
from synapse_retrievers.recall.energy import bounds, energize, energy_of, tell
from synapse_retrievers.recall.graph import Spread
from synapse_retrievers.types import Uses


def cue_of(gains, weight, sure=1.0, of=0):
    """A cue in which each (node, gain) is one use by an episode of its own, of that support."""
    speakers, nodes = [], []
    for row, (node, gain) in enumerate(gains):
        # One speaker a use: its weight is the support, and its share of that the gain.
        speakers.append(Speaker(row, 1.0, gain))
        nodes.append([(node, 1.0, -1)])
    count = len(gains)
    uses = Uses(["q"] * count, [0.0] * count, nodes)
    return Cue(speakers, uses, weight, of), [(node, (0.33 * sure) ** 2) for node, g in gains if g]


def told_of(cues, factors, params):
    """What `tell` says, but for the support, which is as the test wants it."""
    told = tell([cue for cue, _ in cues], factors, params)
    support = Counter()
    for factor, (_, supports) in zip(factors, cues, strict=False):
        for node, value in supports:
            support[node] += factor * value
    return replace(told, support=support)


def spread_of(rows):
    columns = list(zip(*sorted(rows), strict=True)) or [()] * 3
    space, node = (np.array(column, np.int64) for column in columns[:2])
    return Spread(space, node, np.array(columns[2], float), ())


NODES = range(12)


def energies(spread, cues, factors, params=None):
    params = params or RecallParams()
    told = told_of(cues, factors, params)
    return energize(spread, told, told.of(NODES, params), factors, NODES, params)


def confidences(cues, factors, params=None):
    params = params or RecallParams()
    told = told_of(cues, factors, params)
    return {node: told.confidence(node, params) for node in told.support}


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
    assert energy_of(0.0, 0.02, 0.02, RecallParams()) == pytest.approx(3 * 0.02 / 0.22)
    assert energy_of(0.0, 1.0, 1.0, RecallParams()) == 1.0


def test_confidence_weighs_the_cue_and_not_the_spread():
    told = [cue_of([(7, 0.3), (8, 0.3)], 2.8, sure=0.5)]
    spread = spread_of([(0, 8, 0.4), (0, 9, 0.4)])
    expected = {7: 0.5 * 0.3, 8: 0.5 * 0.3 + 0.4, 9: 0.4}
    assert energies(spread, told, [1.0]) == pytest.approx(expected)
    assert confidences(told, [1.0]) == pytest.approx({7: 0.5, 8: 0.5})


def test_support_adds_up_over_episodes_and_namespaces():
    told = [
        cue_of([(7, 0.1), (7, 0.1), (8, 0.1)], 1.0, sure=0.6),
        cue_of([(7, 0.1)], 1.0, sure=0.6),
    ]
    expected = {7: 0.6 * 2.5**0.5, 8: 0.6}
    assert confidences(told, [1.0, 0.5]) == pytest.approx(expected)


def test_support_is_what_the_speakers_weigh_by_how_much_a_use_counts():
    uses = Uses(["q", "r"], [0.0, 0.0], [[(7, 0.1, -1), (8, 2.0, 5)], [(7, 0.4, -1), (9, 0.0, -1)]])
    cue = Cue([Speaker(0, 0.5, 0.25), Speaker(1, 0.3, 0.09)], uses, 0.34, 2)
    told = tell([cue], [0.5], RecallParams())
    assert told.support == pytest.approx({7: 0.5 * (0.25 / 4 + 0.09), 8: 0.5 * 0.25})
    said = told.of({7, 8, 9}, RecallParams())
    assert {node: [(one.gain, one.chunk) for one in found] for node, found in said.items()} == {
        7: [(0.25 / 4 / 2**0.5, -1), (0.09 / 2**0.5, -1)],
        8: [(0.25 / 2**0.5, 5)],
    }


def test_the_crowd_is_counted_over_all_namespaces():
    cues = [cue_of([(7, 0.1)], 1.0, of=5_000)] * 2
    assert confidences(cues, [0.5, 0.5]) == pytest.approx({7: 1 / 1.45})


def test_only_the_sure_ones_may_come_in():
    told = [cue_of([(7, 0.1)], 1.0, sure=0.999), cue_of([(8, 0.1)], 1.0)]
    assert told_of(told, [1.0, 1.0], RecallParams()).sure(RecallParams()) == [8]


def test_what_arrives_is_a_bound_for_what_is_read_out():
    spread = spread_of([(0, 7, 0.4), (1, 7, 0.9), (1, 8, 0.2)])
    node, bound = bounds(spread, np.array([1.0, 0.5]), RecallParams(spread_weight=2.0))
    assert dict(zip(node.tolist(), bound.tolist(), strict=True)) == pytest.approx({7: 1.3, 8: 0.2})
    merged = RecallParams(kernel="paper", spread_weight=2.0)
    node, bound = bounds(spread_of([(0, 7, 0.9)]), np.array([1.0, 0.5]), merged)
    assert (node.tolist(), bound.tolist()) == ([7], [1.8])
    assert bounds(None, np.ones(1), RecallParams())[0].size == 0


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
