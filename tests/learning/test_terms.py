"""A query's terms as an episode keeps them: 1 + ln tf, of length 1."""

import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synapse_retrievers.learning.terms import term_weights

words = st.lists(st.text(min_size=1, max_size=3), max_size=30)


def test_two_of_one_and_one_of_another():
    twice = 1 + math.log(2)
    norm = math.hypot(twice, 1)
    assert term_weights(["b", "a", "b"]) == pytest.approx({"a": 1 / norm, "b": twice / norm})


def test_no_words_have_no_weights():
    assert term_weights([]) == {}


@given(words)
def test_the_length_is_one_and_the_shares_are_as_by_hand(found):
    weights = term_weights(found)
    raw = {word: 1 + math.log(n) for word, n in Counter(found).items()}
    norm = math.sqrt(sum(value * value for value in raw.values()))
    assert weights == pytest.approx({word: value / norm for word, value in raw.items()})
    if found:
        assert sum(value * value for value in weights.values()) == pytest.approx(1.0)


@given(words, st.randoms())
def test_the_order_of_the_words_does_not_matter(found, random):
    before = list(term_weights(found).items())
    random.shuffle(found)
    assert list(term_weights(found).items()) == before
