"""Every setting has a range, and every setting changes an output."""

import itertools
import math
from dataclasses import fields, replace
from functools import cache

import pytest

from synapse_retrievers import (
    Hit,
    LearningParams,
    ParamError,
    RecallParams,
    Synapse,
    TimeLimitError,
    Use,
)
from synapse_retrievers.events.evidence import evidence_of, strength_of
from synapse_retrievers.params import DAY
from synapse_retrievers.planning import Question, plan
from synapse_retrievers.stores.memory import MemoryStore

NOW = 1_700_000_000.0

# name: (values that are allowed, values just outside)
RECALL = {
    "kernel": (["conditional", "hub", "paper"], ["", "Paper"]),
    "fusion": (["ranks", "scores"], ["", "rank"]),
    "seeds": ([1, 50, None], [0, 51, 1.0]),
    "hops": ([1, 4], [0, 5, 2.0]),
    "edge_budget": ([1, 10**9, None], [0, -1, 2.5, "many"]),
    "attenuation": ([1e-9, 1], [0, 1.01]),
    "hub_degree": ([1, 10**9], [0, 10**9 + 1, 1.5]),
    "edge_prior": ([0, 1e6], [-1e-9, 1e6 + 1]),
    "spread_weight": ([0, 4], [-1e-9, 4.01]),
    "cue_weight": ([0, 20], [-1e-9, 20.01]),
    "cue_power": ([1, 8], [0.99, 8.01]),
    "cue_prior": ([1e-9, 20], [0, 20.01]),
    "cue_episodes": ([1, 200], [0, 201, 2.0]),
    "cue_floor": ([0, 0.999], [-1e-9, 1]),
    "accepted_strength": ([1e-9, 2], [0, 2.01]),
    "common_share": ([1e-9, 1], [0, 1.01]),
    "common_from": ([1, 10**9], [0, 10**9 + 1, 1.5]),
    "boost": ([0, 10], [-1e-9, 10.01]),
    "displacements": ([0, 8], [-1, 51, 2.0]),
    "displace_from": ([0, 1], [-1e-9, 1.01]),
    "displace_similarity": ([0, 1], [-1e-9, 1.01]),
    "crowd_from": ([1, 10**9], [0, 10**9 + 1, 1.5]),
    "crowd_growth": ([0, 4], [-1e-9, 4.01]),
    "candidates": ([2, 64], [0, 65, 2.0]),
    "time_limit": ([1e-9, 60], [0, 60.01]),
}
LEARNING = {
    "gain": ([1e-9, 1], [0, 1.01]),
    "half_life_days": ([1e-9, 3650], [0, 3651]),
    "shared_half_life_days": ([1e-9, 3650], [0, 3651]),
    "ephemeral_half_life_days": ([1e-9, 3650], [0, 3651]),
    "half_life_min_days": ([1e-9, 120], [0, 3651]),
    "half_life_max_days": ([3, 3650], [0, 3651]),
    "activation_scale": ([1e-9, 1e6], [0, 1e6 + 1]),
    "potentiation_count": ([1, 10**9], [0, 10**9 + 1, 5.0]),
    "potentiation_floor": ([0, 1], [-1e-9, 1.01]),
    "count_half_life_days": ([1e-9, 1e5], [0, 1e5 + 1]),
    "max_nodes": ([2, 256], [1, 257, 2.0]),
    "max_episodes": ([1, 10**9], [0, 10**9 + 1, 2.0]),
    "repeat_after": ([0, 1e12], [-1e-9, 2e12]),
    "prune_below": ([0, 1], [-1e-9, 1.01]),
    "prune_co_below": ([0, 1e6], [-1e-9, 1e6 + 1]),
    "feedback_strength": ([1e-9, 2], [0, 2.01]),
    "cited_strength": ([1e-9, 2], [0, 2.01]),
    "edited_strength": ([1e-9, 2], [0, 2.01]),
    "read_strength": ([1e-9, 2], [0, 2.01]),
    "used_strength": ([1e-9, 2], [0, 2.01]),
    "hinted_strength": ([1e-9, 2], [0, 2.01]),
    "used_score": ([1, 1e6], [0, 1e6 + 1]),
    "hinted_score": ([1e-9, 1.5], [0, 1e6 + 1]),
    "unhelpful_penalty": ([0, 2], [-1e-9, 2.01]),
    "unused_penalty": ([0, 2], [-1e-9, 2.01]),
    "store_queries": ([True, False], [0, 1, "no"]),
}
NEVER = [math.nan, math.inf, -math.inf, "1", b"1", [1], (), {}]
ALL = [(RecallParams, name) for name in RECALL] + [(LearningParams, name) for name in LEARNING]


def names(kind):
    return {field.name for field in fields(kind)}


def known(kind, name):
    return (RECALL if kind is RecallParams else LEARNING)[name]


def test_no_setting_is_forgotten_here():
    assert names(RecallParams) == RECALL.keys()
    assert names(LearningParams) == LEARNING.keys()


@pytest.mark.parametrize(("kind", "name"), ALL)
def test_what_is_allowed_is_taken_as_it_is(kind, name):
    for value in known(kind, name)[0]:
        assert getattr(kind(**{name: value}), name) is value


@pytest.mark.parametrize(("kind", "name"), ALL)
def test_what_is_outside_or_no_number_is_refused_by_name(kind, name):
    outside = known(kind, name)[1]
    wrong = [*outside, *NEVER, *([] if name == "store_queries" else [True, False])]
    wrong += [] if name in {"seeds", "edge_budget"} else [None]
    for value in wrong:
        with pytest.raises(ParamError, match=name):
            kind(**{name: value})


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (RecallParams, {"candidates": 1}),
        (RecallParams, {"displacements": 9}),
        (LearningParams, {"half_life_min_days": 10, "half_life_max_days": 9}),
        (LearningParams, {"half_life_min_days": 121}),
        (LearningParams, {"used_score": 0.9}),
        (LearningParams, {"hinted_score": 1.6}),
    ],
)
def test_settings_that_contradict_one_another_are_refused(kind, values):
    with pytest.raises(ParamError):
        kind(**values)


def test_settings_cannot_be_changed_later():
    with pytest.raises(AttributeError):
        RecallParams().boost = 3.0


def test_the_paper_is_what_it_says():
    paper = RecallParams.paper()
    assert (paper.kernel, paper.fusion) == ("paper", "scores")
    assert (paper.cue_weight, paper.spread_weight, paper.boost) == (0.0, 1.0, 0.3)
    assert (paper.displacements, paper.displace_from, paper.seed_count) == (2, 0.15, 3)
    taught = LearningParams.paper()
    assert {
        getattr(taught, name) for name in names(LearningParams) if name.endswith("_strength")
    } == {1.0}


@cache
def a_memory():
    """Edges of one and of many uses, chains, a hub, episodes of all strengths, 60 of them."""
    moment = [NOW - 40 * DAY]
    memory = Synapse(MemoryStore(), clock=lambda: moment[0])
    for number in range(60):
        ids = [f"e{number}", f"e{number + 1}"]
        memory.reinforce(ids, f"common topic{number % 7} word{number}", 0.3)
    for other in range(12):
        memory.reinforce(["hub", f"h{other}"], strength=0.5)
    for _ in range(6):
        memory.reinforce(["s0", "mid", "e3"], "rare common", strength=0.35)
        moment[0] += DAY
    memory.reinforce(["mid", "far"])
    memory.reinforce(["far", "further"])
    memory.reinforce(["s1", "s6", "hub"], strength=2.0)
    moment[0] = NOW
    return memory


HITS = [
    *(Hit(node, 0.9 - place / 50) for place, node in enumerate(["s0", "c0", "s1", "hub", "c1"])),
    *(Hit(node, 0.5 - place / 50) for place, node in enumerate(["s6", "c2", "c3", "e2", "far"])),
]


def recalled(params, used=()):
    memory = Synapse(a_memory().store, recall=params, clock=lambda: NOW)
    query = "rare common topic3 word3 common"
    planned = memory.plan(query, HITS, used=used)
    told = planned.settle({node.id: 1 for node in planned.wanted})
    energies = {node.node: node.energy for node in told.trace.reached}
    return [hit.id for hit in told.hits], energies, planned.worths


RELAY = RecallParams(kernel="hub", cue_weight=0.0, spread_weight=1.0)
EAGER = RecallParams(cue_weight=20.0, candidates=64, displace_similarity=0.0)
RECALL_CHANGES = {
    "kernel": (RecallParams(), "hub"),
    "fusion": (RecallParams(), "scores"),
    "seeds": (RecallParams(), 1),
    "hops": (RELAY, 1),
    "edge_budget": (RELAY, 1),
    "attenuation": (RELAY, 0.9),
    "hub_degree": (RecallParams(), 3),
    "edge_prior": (RecallParams(), 0.0),
    "spread_weight": (RecallParams(), 2.0),
    "cue_weight": (RecallParams(), 1.0),
    "cue_power": (RecallParams(), 1.0),
    "cue_prior": (RecallParams(), 5.0),
    "cue_episodes": (RecallParams(), 1),
    "cue_floor": (RecallParams(), 0.6),
    "accepted_strength": (RecallParams(), 2.0),
    "common_share": (RecallParams(), 1.0),
    "common_from": (RecallParams(), 1_000),
    "boost": (RecallParams(), 0.3),
    "displacements": (EAGER, 1),
    "displace_from": (replace(EAGER, cue_weight=1.0), 1.0),
    "displace_similarity": (RecallParams(), 1.0),
    "crowd_from": (RecallParams(crowd_growth=4.0), 1),
    "crowd_growth": (RecallParams(crowd_from=1), 4.0),
    "candidates": (EAGER, 2),
}


@pytest.mark.parametrize("name", sorted(names(RecallParams) - {"time_limit"}))
def test_every_setting_of_a_recall_changes_it(name):
    params, value = RECALL_CHANGES[name]
    assert recalled(params) == recalled(params), "the comparison is worth something"
    assert recalled(replace(params, **{name: value})) != recalled(params)


def test_the_time_limit_ends_a_recall():
    store = a_memory().store
    memory = Synapse(store, clock=lambda: NOW, monotonic=itertools.count().__next__)
    assert memory.recall("rare", HITS).trace.is_cold
    question = Question("rare", ["rare"], HITS, (), "personal", NOW)
    with pytest.raises(TimeLimitError):
        plan(store, question, RecallParams(), LearningParams(), lambda: True)


def stored(synapse):
    return repr([*synapse.edges(), *synapse.episodes(), *synapse.store.nodes()])


def weights(learning, namespace="personal", uses=1, days=20.0):
    """What neighbors() reads after some uses and some idle days."""
    store, moment = MemoryStore(), [NOW]
    memory = Synapse(store, learning=learning, namespace=namespace, clock=lambda: moment[0])
    for _ in range(uses):
        memory.reinforce(["a", "b"])
    moment[0] += days * DAY
    return memory.neighbors("a")


def grown(learning):
    """A run of five nodes and a few queries, at two moments."""
    moment = [NOW]
    memory = Synapse(MemoryStore(), learning=learning, clock=lambda: moment[0])
    for name in ("one", "two", "one"):
        memory.reinforce(list("abcde"), name, strength=0.5)
        moment[0] += 60
    return stored(memory)


def pruned(learning):
    moment = [NOW]
    memory = Synapse(MemoryStore(), learning=learning, clock=lambda: moment[0])
    memory.reinforce(["a", "b"], strength=0.05)
    moment[0] += 30 * DAY
    return memory.prune()


def said(learning):
    """One use of every kind of evidence, and the scores of the wording rule."""
    kinds = ["feedback", "cited", "edited", "read", "used", "hinted"]
    worth = [strength_of(kind, learning) for kind in kinds]
    scores = [evidence_of(score, learning) for score in (0.5, 1.0, 1.2, 1.5, 2.0)]
    memory = Synapse(MemoryStore(), learning=learning, clock=lambda: NOW)
    with memory.run("q") as run:
        for kind in kinds:
            run.used([kind], evidence=kind)
    return worth, scores, stored(memory)


def fed_back(learning):
    memory = Synapse(MemoryStore(), learning=learning, clock=lambda: NOW)
    memory.reinforce(["a", "b"], "q")
    memory.feedback(query="q", used=["a"], helpful=False)
    return stored(memory)


def let_down(learning):
    memory = Synapse(MemoryStore(), learning=learning, clock=lambda: NOW)
    memory.reinforce(["a", "b"], "q")
    with memory.run("q") as run:
        memory.learn(run.run, {"c": Use(1.0)})
        memory.disappoint(run.run, ["a"])
    return stored(memory)


def kept(learning):
    memory = Synapse(MemoryStore(), learning=learning, clock=lambda: NOW)
    memory.reinforce(["a", "b"], "a secret")
    return "secret" in stored(memory)


LEARNING_CHANGES = {
    "gain": (weights, {"gain": 0.1}, {}),
    "half_life_days": (weights, {"half_life_days": 90}, {}),
    "shared_half_life_days": (weights, {"shared_half_life_days": 90}, {"namespace": "shared"}),
    "ephemeral_half_life_days": (
        weights,
        {"ephemeral_half_life_days": 9},
        {"namespace": "ephemeral"},
    ),
    "half_life_min_days": (weights, {"half_life_min_days": 60}, {}),
    "half_life_max_days": (weights, {"half_life_max_days": 10}, {}),
    "activation_scale": (weights, {"activation_scale": 1}, {}),
    "potentiation_count": (weights, {"potentiation_count": 2}, {"uses": 3, "days": 900}),
    "potentiation_floor": (weights, {"potentiation_floor": 0.4}, {"uses": 6, "days": 900}),
    "count_half_life_days": (weights, {"count_half_life_days": 10}, {}),
    "max_nodes": (grown, {"max_nodes": 3}, {}),
    "max_episodes": (grown, {"max_episodes": 1}, {}),
    "repeat_after": (grown, {"repeat_after": 0}, {}),
    "prune_below": (pruned, {"prune_below": 0.001, "prune_co_below": 1.0}, {}),
    "prune_co_below": (pruned, {"prune_co_below": 1.0}, {}),
    "feedback_strength": (said, {"feedback_strength": 1.5}, {}),
    "cited_strength": (said, {"cited_strength": 1.5}, {}),
    "edited_strength": (said, {"edited_strength": 1.5}, {}),
    "read_strength": (said, {"read_strength": 1.5}, {}),
    "used_strength": (said, {"used_strength": 1.5}, {}),
    "hinted_strength": (said, {"hinted_strength": 1.5}, {}),
    "used_score": (said, {"used_score": 3}, {}),
    "hinted_score": (said, {"hinted_score": 0.4}, {}),
    "unhelpful_penalty": (fed_back, {"unhelpful_penalty": 0.1}, {}),
    "unused_penalty": (let_down, {"unused_penalty": 0.2}, {}),
    "store_queries": (kept, {"store_queries": False}, {}),
}


@pytest.mark.parametrize("name", sorted(names(LearningParams)))
def test_every_setting_of_learning_changes_an_output(name):
    action, values, options = LEARNING_CHANGES[name]
    base = LearningParams(**{key: value for key, value in values.items() if key != name})
    first, again = (action(base, **options) for _ in range(2))
    assert first == again, "the comparison is worth something"
    assert action(replace(base, **values), **options) != first


def test_a_node_that_was_used_in_the_run_starts_with_energy():
    assert recalled(RecallParams(), used=["mid"]) != recalled(RecallParams())
