"""Known values and bounds of the metrics."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synapse_retrievers.errors import ParamError
from synapse_retrievers.evaluation.metrics import measured

NODES = st.lists(st.sampled_from("abcdefgh"), max_size=12)
USED = st.sets(st.sampled_from("abcdefghij"), min_size=1)


def values(ranked, used, k):
    found = measured(list(ranked), set(used), k)
    return found.recall, found.reciprocal_rank, found.ndcg, found.hit


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
    assert values(ranked, used, k) == pytest.approx((recall, rank, ndcg, float(recall > 0)))


@given(ranked=NODES, used=USED, k=st.integers(1, 12))
def test_every_metric_lies_between_0_and_1_and_the_best_order_has_1(ranked, used, k):
    assert all(0.0 <= value <= 1.0 for value in values(ranked, used, k))
    most = min(k, len(used)) / len(used)
    assert values(sorted(used), used, k) == pytest.approx((most, 1.0, 1.0, 1.0))


@given(ranked=NODES, used=USED, k=st.integers(1, 12))
def test_only_the_first_k_places_count(ranked, used, k):
    assert values(ranked, used, k) == values(ranked[:k], used, k)


def test_nothing_used_and_no_places_are_refused():
    with pytest.raises(ParamError, match="used"):
        measured(["a"], set(), 8)
    with pytest.raises(ParamError, match="k=0"):
        measured(["a"], {"a"}, 0)
