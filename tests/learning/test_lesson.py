"""What one evidence event teaches, against a store that applies it; sums by hand."""

from dataclasses import replace
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synapse_retrievers.events.run import Run
from synapse_retrievers.learning.lesson import (
    Lesson,
    Query,
    is_repetition,
    remember,
    strongest,
)
from synapse_retrievers.params import DAY, LearningParams
from synapse_retrievers.stores.memory import MemoryStore
from synapse_retrievers.teaching import teach
from synapse_retrievers.types import Use

DEFAULT = LearningParams()
Q = Query("q", {"q": 1.0})


def uses(**strengths):
    return {node: Use(strength) for node, strength in strengths.items()}


def lesson(used, new=None, episodes=(), run_key=None):
    fresh = frozenset(used) if new is None else frozenset(new)
    return Lesson("personal", used, fresh, tuple(episodes), run_key)


def edges(store):
    return {"".join(edge.pair): edge for edge in store.edges("personal")}


def counts(store):
    return {node.id: node.used for node in store.nodes("personal")}


def test_three_used_nodes_teach_three_pairs_by_the_weaker_of_the_two():
    store = MemoryStore()
    assert teach(store, lesson(uses(a=1.0, b=0.5, c=2.0)), 0.0, DEFAULT) == 3
    found = edges(store)
    weights = {pair: edge.weight for pair, edge in found.items()}
    assert weights == pytest.approx({"ab": 0.15, "ac": 0.3, "bc": 0.15})
    co = {pair: edge.co for pair, edge in found.items()}
    assert co == pytest.approx({"ab": 0.25, "ac": 0.5, "bc": 0.25})
    assert counts(store) == {"a": 1.0, "b": 0.5, "c": 2.0}


def test_new_evidence_teaches_only_the_new_pairs_with_the_size_of_that_moment():
    store = MemoryStore()
    teach(store, lesson(uses(a=1.0, b=1.0)), 0.0, DEFAULT)
    assert teach(store, lesson(uses(a=1.0, b=1.0, c=1.0), "c"), 0.0, DEFAULT) == 2
    co = {pair: edge.co for pair, edge in edges(store).items()}
    assert co == pytest.approx({"ab": 1.0, "ac": 0.5, "bc": 0.5})
    assert {edge.activations for edge in edges(store).values()} == {1}
    assert counts(store) == {"a": 1.0, "b": 1.0, "c": 1.0}


def test_a_node_alone_teaches_no_pair_but_its_use_and_its_episode():
    store = MemoryStore()
    used = uses(a=0.6)
    assert teach(store, lesson(used, episodes=[(Q, used)]), 3.0, DEFAULT) == 0
    assert counts(store) == {"a": 0.6}
    (episode,) = store.episodes()
    assert (episode.query, episode.used, episode.renewed_at) == ("q", used, 3.0)


def test_a_higher_strength_later_raises_the_episode_only():
    store = MemoryStore()
    used = uses(a=0.4, b=0.4)
    teach(store, lesson(used, episodes=[(Q, used)]), 0.0, DEFAULT)
    before = [*store.edges()], [*store.nodes()]
    more = uses(a=1.0, b=0.4)
    teach(store, lesson(more, "", episodes=[(Q, more)]), 9.0, DEFAULT)
    assert ([*store.edges()], [*store.nodes()]) == before
    assert next(store.episodes()).used == more


@pytest.mark.parametrize(("later", "pairs"), [(3_600.0, 0), (-3_600.0, 0), (3_601.0, 1)])
def test_the_same_query_with_the_same_nodes_within_an_hour_only_renews_the_time(later, pairs):
    store = MemoryStore()
    used = uses(a=1.0, b=1.0)
    teach(store, lesson(used, episodes=[(Q, used)]), 0.0, DEFAULT)
    assert teach(store, lesson(used, episodes=[(Q, used)]), later, DEFAULT) == pairs
    assert edges(store)["ab"].activations == 1 + pairs
    assert next(store.episodes()).renewed_at == later


def test_without_a_query_nothing_is_a_repetition():
    store = MemoryStore()
    for _ in range(3):
        assert teach(store, lesson(uses(a=1.0, b=1.0)), 0.0, DEFAULT) == 1
    assert edges(store)["ab"].activations == 3


def test_another_node_of_the_same_query_is_no_repetition():
    known = remember(None, "personal", Q, uses(a=1.0), 0.0)
    assert not is_repetition(known, uses(a=1.0, b=1.0), 0.0, DEFAULT)
    assert not is_repetition(None, uses(a=1.0), 0.0, DEFAULT)


def test_a_run_with_a_query_that_no_used_node_belongs_to_is_a_repetition_too():
    store = MemoryStore()
    used = uses(a=1.0, b=1.0)
    fruitless = (Query("vain", {"vain": 1.0}), {})
    for moment in (0.0, 60.0):
        teach(store, lesson(used, episodes=[(Q, used), fruitless]), moment, DEFAULT)
    assert edges(store)["ab"].activations == 1


def test_a_pair_that_was_never_taught_is_no_repetition_though_each_query_was_learned():
    store = MemoryStore()
    other = Query("other", {"other": 1.0})
    teach(store, lesson(uses(a=1.0), episodes=[(Q, uses(a=1.0))]), 0.0, DEFAULT)
    teach(store, lesson(uses(b=1.0), episodes=[(other, uses(b=1.0))]), 0.0, DEFAULT)
    both = lesson(uses(a=1.0, b=1.0), episodes=[(Q, uses(a=1.0)), (other, uses(b=1.0))])
    assert teach(store, both, 60.0, DEFAULT) == 1
    assert "ab" in edges(store)


def test_every_query_of_the_run_is_remembered_with_its_nodes():
    store = MemoryStore()
    other = Query("other", {"other": 1.0})
    rows = [(Q, uses(a=1.0)), (other, uses(b=0.5))]
    teach(store, lesson(uses(a=1.0, b=0.5), episodes=rows), 1.0, DEFAULT)
    assert {one.query: one.used for one in store.episodes()} == {
        "q": uses(a=1.0),
        "other": uses(b=0.5),
    }


def test_a_run_key_that_was_taught_teaches_nothing_of_it_again():
    store = MemoryStore()
    used = uses(a=1.0, b=1.0)
    for expected in (1, 0, 0):
        rows = [(Q, used)]
        assert teach(store, lesson(used, episodes=rows, run_key=b"k"), 0.0, DEFAULT) == expected
    assert edges(store)["ab"].activations == 1


def test_a_run_key_is_forgotten_after_thirty_days():
    store = MemoryStore()
    used = uses(a=1.0, b=1.0)
    assert teach(store, lesson(used, run_key=b"k"), 0.0, DEFAULT) == 1
    assert teach(store, lesson(used, run_key=b"k"), 29 * DAY, DEFAULT) == 0
    assert teach(store, lesson(used, run_key=b"k"), 31 * DAY, DEFAULT) == 1


def test_uses_are_united_the_higher_strength_stays_and_a_known_chunk_is_kept():
    first = {"a": Use(0.4, "a#1"), "b": Use(1.0)}
    second = {"a": Use(0.9), "b": Use(0.2, "b#2"), "c": Use(0.1)}
    one = remember(None, "personal", Q, first, 1.0)
    two = remember(one, "personal", replace(Q, terms={"x": 1.0}), second, 2.0)
    assert two.used == {"a": Use(0.9, "a#1"), "b": Use(1.0, "b#2"), "c": Use(0.1)}
    assert two.renewed_at == 2.0


def test_episodes_above_the_cap_go_longest_unrenewed_first():
    store, params = MemoryStore(), LearningParams(max_episodes=2, repeat_after=0)
    for moment, name in enumerate(["one", "two", "one", "three"]):
        query = Query(name, {name: 1.0})
        used = uses(a=1.0)
        teach(store, lesson(used, episodes=[(query, used)]), float(moment), params)
    assert {one.query for one in store.episodes()} == {"one", "three"}


def test_the_strongest_are_kept_after_those_that_were_taught_ties_by_id():
    used = uses(d=2.0, c=0.5, b=0.5, a=0.1)
    assert [*strongest(used, 2, frozenset())] == ["b", "d"]
    assert [*strongest(used, 2, frozenset("a"))] == ["a", "d"]


grouped = st.lists(
    st.dictionaries(st.sampled_from("abcdef"), st.floats(0.1, 2), min_size=1, max_size=4),
    min_size=1,
    max_size=6,
)


def learn_in_turn(groups):
    """The evidence of one run in these groups, as the product learns it."""
    store, run, taught = MemoryStore(), Run("", "personal", None, 0.0), 0
    run.asked("q", ())
    for group in groups:
        known = frozenset(run.used)
        evidence = {node: Use(strength) for node, strength in group.items()}
        used = strongest(run.with_evidence(evidence), 32, known)
        if used != run.used:
            new = frozenset(used) - known
            rows = [(Q, found) for found in run.credits(used).values()]
            taught += teach(store, Lesson("personal", used, new, tuple(rows)), 0.0, DEFAULT)
            run.used = used
    return store, taught


@given(grouped, st.randoms())
def test_evidence_in_any_order_and_grouping_teaches_each_pair_and_each_use_once(groups, random):
    nodes = {node for group in groups for node in group}
    best = {node: max(group.get(node, 0.0) for group in groups) for node in nodes}
    for _ in range(2):
        store, taught = learn_in_turn(groups)
        assert taught == len(list(combinations(nodes, 2)))
        assert {edge.pair for edge in store.edges()} == set(combinations(sorted(nodes), 2))
        assert {edge.activations for edge in store.edges()} <= {1}
        (episode,) = store.episodes()
        assert {node: use.strength for node, use in episode.used.items()} == best
        random.shuffle(groups)


@given(grouped)
def test_the_sums_are_as_by_hand(groups):
    store, _ = learn_in_turn(groups)
    known, co, weight, used = {}, {}, {}, {}
    for group in groups:
        before = set(known)
        for node, strength in group.items():
            known[node] = max(strength, known.get(node, 0.0))
        for a, b in combinations(sorted(known), 2):
            if not {a, b} <= before:
                co[a, b] = min(known[a], known[b]) / (len(known) - 1)
                weight[a, b] = min(1.0, 0.3 * min(known[a], known[b]))
        used |= {node: known[node] for node in known.keys() - before}
    assert {edge.pair: edge.co for edge in store.edges()} == pytest.approx(co)
    assert {edge.pair: edge.weight for edge in store.edges()} == pytest.approx(weight)
    assert counts(store) == pytest.approx(used)
