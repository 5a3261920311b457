"""Who comes in and who goes out: the count, the first hit, the most, the ties."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synapse_retrievers.params import RecallParams
from synapse_retrievers.recall.displace import Absent, Place, allowed, displace, wanted

RANKS, SCORES = RecallParams(), RecallParams(fusion="scores", displace_from=0.15)


def absent(*rows):
    return [Absent(name, worth / 2, worth) for name, worth in rows]


def told(places):
    return [place.entered if place.hit is None else place.hit for place in places]


def by_hand(worths, entering, most):
    """The default rule said slowly: swap while the best outside beats the worst inside."""
    kept = list(range(len(worths)))
    entered = []
    for node in entering:
        if len(entered) == most or len(kept) < 2:
            break
        weakest = min(kept[1:], key=lambda place: (worths[place], -place))
        if node.worth <= worths[weakest]:
            break
        kept.remove(weakest)
        entered.append(node)
    rows = [(-worths[place], 0, place, place) for place in kept]
    rows += [(-node.worth, 1, node.id, node.id) for node in entered]
    return [row[3] for row in sorted(rows, key=lambda row: (row[0], row[1], str(row[2]).zfill(9)))]


@pytest.mark.parametrize("count", range(51))
def test_at_most_two_and_at_most_half_come_in(count):
    assert allowed(count, RANKS) == min(2, count // 2)
    assert allowed(count, RecallParams(displacements=8)) == min(8, count // 2)


@pytest.mark.parametrize("count", range(51))
def test_in_the_paper_at_most_two_come_in_and_one_original_stays(count):
    assert allowed(count, SCORES) == min(2, max(0, count - 1))


def test_the_best_candidate_takes_the_place_of_the_weakest_and_stands_by_its_worth():
    places = displace([1.0, 0.875, 0.75, 0.625], absent(("x", 0.9), ("y", 0.7)), RANKS)
    assert told(places) == [0, "x", 1, 2]
    assert places[1] == Place(None, "x", 3)


def test_the_second_comes_in_only_if_it_beats_the_next_weakest():
    places = displace([1.0, 0.875, 0.75, 0.625], absent(("x", 0.9), ("y", 0.76)), RANKS)
    assert told(places) == [0, "x", 1, "y"]
    assert [place.displaced for place in places] == [None, 3, None, 2]


def test_the_first_hit_is_overtaken_but_never_displaced():
    worths = [0.1, 1.0, 0.9, 0.8]
    assert told(displace(worths, absent(("x", 3.0), ("y", 2.0)), RANKS)) == ["x", "y", 1, 0]


def test_who_is_worth_as_much_as_the_weakest_stays_out():
    assert told(displace([1.0, 0.75], absent(("x", 0.75)), RANKS)) == [0, 1]


def test_a_hit_stands_before_an_entering_node_of_the_same_worth():
    assert told(displace([1.0, 0.75], absent(("x", 1.0)), RANKS)) == [0, "x"]


def test_of_equal_hits_the_last_goes_and_of_equal_candidates_the_first_id_comes():
    worths = [1.0, 0.5, 0.5, 0.5]
    best = wanted(worths, absent(("y", 0.9), ("x", 0.9), ("z", 0.9)), RANKS)
    places = displace(worths, best, RANKS)
    assert told(places) == [0, "x", "y", 1]
    assert {place.displaced for place in places} == {None, 3, 2}


def test_equal_hits_keep_the_wrapped_order():
    assert told(displace([0.5] * 7, [], RANKS)) == list(range(7))


@pytest.mark.parametrize("worths", [[], [1.0]])
def test_none_or_one_hit_lets_nobody_in(worths):
    best = absent(("x", 2.0))
    assert wanted(worths, best, RANKS) == []
    assert told(displace(worths, best, RANKS)) == list(range(len(worths)))


def test_in_the_paper_the_weakest_go_and_who_comes_is_appended_by_energy():
    worths = [0.9, 0.2, 0.8, 0.7]
    best = wanted(worths, absent(("low", 0.29), ("x", 0.4), ("y", 0.6), ("z", 0.5)), SCORES)
    assert [node.id for node in best] == ["y", "z", "x"]
    assert told(displace(worths, best, SCORES)) == [0, 2, "y", "z"]


def test_in_the_paper_an_energy_of_exactly_fifteen_hundredths_comes_in():
    assert wanted([1.0, 0.5], [Absent("x", 0.15, 0.045)], SCORES)


def test_more_are_fetched_than_come_in_but_no_more_than_eight():
    many = absent(*((f"n{n:02}", 0.9) for n in range(20)))
    assert [node.id for node in wanted([1.0, 0.5], many, RANKS)] == [f"n{n:02}" for n in range(8)]


def test_only_who_would_come_in_is_fetched():
    assert [n.id for n in wanted([1.0, 0.5], absent(("x", 0.6), ("y", 0.4)), RANKS)] == ["x"]


few = st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0, 1.5])
worths = st.lists(few | st.floats(0, 3), max_size=50)
candidates = st.lists(
    st.tuples(st.integers(0, 99).map("n{:02}".format), few | st.floats(0, 2)),
    max_size=12,
    unique_by=lambda row: row[0],
)


@given(worths, candidates, st.integers(0, 8))
def test_the_default_is_as_said_slowly(hits, rows, most):
    params = RecallParams(displacements=most)
    best = wanted(hits, absent(*rows), params)
    places = displace(hits, best, params)
    assert told(places) == by_hand(hits, best, allowed(len(hits), params))


@given(worths, candidates, st.sampled_from([RANKS, SCORES]))
def test_count_first_hit_and_distinctness_hold(hits, rows, params):
    places = displace(hits, wanted(hits, absent(*rows), params), params)
    kept = [place.hit for place in places if place.hit is not None]
    out = [place.displaced for place in places if place.displaced is not None]
    assert len(places) == len(hits)
    assert sorted(kept + out) == list(range(len(hits)))
    assert len({place.entered for place in places if place.entered}) == len(out)
    assert len(out) <= allowed(len(hits), params)
    if hits and params is RANKS:
        assert 0 in kept


@given(worths, candidates, st.randoms(), st.sampled_from([RANKS, SCORES]))
def test_the_order_in_which_candidates_are_found_does_not_matter(hits, rows, random, params):
    expected = wanted(hits, absent(*rows), params)
    random.shuffle(rows)
    assert wanted(hits, absent(*rows), params) == expected
