"""What is refused at the edge, and what is let through as it is."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from synapse_retrievers import FeedbackError, Hit, NamespaceError, NodeIdError, ParamError
from synapse_retrievers.checks import (
    checked_hits,
    checked_id,
    checked_ids,
    checked_moment,
    checked_namespace,
    checked_query,
    checked_strength,
)
from synapse_retrievers.testing.strategies import ODD_IDS

NO_IDS = [None, 1, 1.5, b"a", "", [], ("a",), object(), "\ud800"]


class Named(str):
    """Text of a subclass that says something else of itself."""

    __slots__ = ()

    def __str__(self):
        return "other"


@pytest.mark.parametrize("value", NO_IDS)
def test_only_text_that_utf8_can_hold_is_an_id(value):
    with pytest.raises(NodeIdError):
        checked_id(value)


@pytest.mark.parametrize("value", ODD_IDS)
def test_the_exact_text_is_the_identity(value):
    assert checked_id(value) == value


def test_text_of_a_subclass_is_its_text():
    found = checked_id(Named("a"))
    assert (type(found), found) == (str, "a")


@pytest.mark.parametrize("values", ["ab", b"ab", None, 3])
def test_a_single_text_is_no_list_of_ids(values):
    with pytest.raises(NodeIdError):
        checked_ids(values)


def test_ids_are_distinct_in_their_first_order():
    assert checked_ids(iter(["b", "a", "b"])) == ["b", "a"]


def test_a_list_of_hits_is_that_very_list():
    hits = [Hit("a"), Hit(None), Hit("b", math.nan)]
    assert checked_hits(hits) is hits


def test_ids_pairs_and_none_are_hits_too():
    score = np.float32(0.5)
    assert checked_hits(["a", ("b", 0.25), None, ("c", score)]) == [
        Hit("a"),
        Hit("b", 0.25),
        Hit(None),
        Hit("c", score),
    ]


@pytest.mark.parametrize("value", [Hit(""), Hit(1), ("", 0.5), 7, ("a", 1.0, 2.0)])
def test_a_hit_with_no_id_at_all_is_refused(value):
    with pytest.raises(NodeIdError):
        checked_hits([value])


@pytest.mark.parametrize(
    "value", ["", " ", "a b", "a\n", "branch:", "a\0b", "x" * 201, None, 1, b"a", "a\u2028b"]
)
def test_a_namespace_is_a_single_token(value):
    with pytest.raises(NamespaceError):
        checked_namespace(value)


@pytest.mark.parametrize("value", ["personal", "branch:a/b", "tenant-7", "x" * 200, "\u00e4"])
def test_any_single_token_is_a_namespace(value):
    assert checked_namespace(value) == value


@pytest.mark.parametrize("value", [0, -1, 2.1, math.nan, math.inf, True, "1", None])
def test_a_strength_lies_above_zero_and_up_to_two(value):
    with pytest.raises(FeedbackError):
        checked_strength(value)


@pytest.mark.parametrize("value", [1e-9, 1, 2, np.float64(0.5)])
def test_a_strength_is_a_plain_float(value):
    assert (type(checked_strength(value)), checked_strength(value)) == (float, float(value))


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, True, "now", None, 1e16])
def test_a_moment_is_finite_seconds(value):
    with pytest.raises(ParamError):
        checked_moment(value)


@pytest.mark.parametrize("value", [None, 1, b"q"])
def test_a_query_is_text(value):
    with pytest.raises(FeedbackError):
        checked_query(value)


@given(st.text())
def test_any_text_is_a_query_that_utf8_can_hold(text):
    assert checked_query(text) == text


def test_half_a_character_in_a_query_is_replaced():
    assert checked_query("a\ud800b") == "a?b"


def test_a_page_that_was_pasted_as_a_query_is_known_by_its_beginning():
    assert len(checked_query("word " * 200_000)) == 10_000
