"""Who starts with energy: leading distinct hits by place, used nodes always whole."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synapse_retrievers.params import RecallParams
from synapse_retrievers.recall.seed import seed
from synapse_retrievers.types import Hit

ids = st.sampled_from(["a", "b", "c", "d", "e", "f", "g", None])


def by_hand(ids, used, params):
    first = {}
    for place, node in enumerate(ids):
        if node is not None and node not in first and len(first) < params.seed_count:
            first[node] = 1 - place / len(ids) if params.kernel == "conditional" else 1.0
    for node in used:
        first[node] = 1.0
    return first


def test_five_leading_hits_start_with_one_minus_their_place():
    hits = [Hit(node) for node in "abcdefgh"]
    expected = {"a": 1.0, "b": 0.875, "c": 0.75, "d": 0.625, "e": 0.5}
    assert seed(hits, [], RecallParams()) == expected


@pytest.mark.parametrize("kernel", ["hub", "paper"])
def test_the_paper_starts_three_seeds_with_one(kernel):
    hits = [Hit(node) for node in "abcdefgh"]
    assert seed(hits, [], RecallParams(kernel=kernel)) == {"a": 1.0, "b": 1.0, "c": 1.0}


def test_a_duplicate_takes_no_second_seed_and_does_not_double_its_energy():
    hits = [Hit("a"), Hit("a"), Hit("b"), Hit("a")]
    assert seed(hits, [], RecallParams()) == {"a": 1.0, "b": 0.5}


def test_a_hit_without_an_id_keeps_its_place_and_is_no_seed():
    assert seed([Hit(None), Hit("a")], [], RecallParams()) == {"a": 0.5}


def test_a_used_node_starts_whole_even_where_it_is_a_weak_hit_or_none():
    hits = [Hit("a"), Hit("b")]
    assert seed(hits, ["b", "z"], RecallParams()) == {"a": 1.0, "b": 1.0, "z": 1.0}


def test_nothing_comes_of_nothing():
    assert seed([], [], RecallParams()) == {}


@given(
    st.lists(ids, max_size=50),
    st.lists(st.sampled_from("abxyz"), unique=True),
    st.sampled_from(["conditional", "hub", "paper"]),
    st.none() | st.integers(1, 50),
)
def test_seeds_are_as_by_hand(nodes, used, kernel, count):
    params = RecallParams(kernel=kernel, seeds=count)
    found = seed([Hit(node) for node in nodes], used, params)
    assert found == pytest.approx(by_hand(nodes, used, params), abs=1e-12)
    assert all(0 < energy <= 1 for energy in found.values())
