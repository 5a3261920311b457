"""The public calls of one memory: what each teaches, counts, refuses and leaves alone."""

import copy
import subprocess
import sys
import threading
import time
from itertools import combinations
from types import SimpleNamespace

import pytest

from synapse_retrievers import (
    FeedbackError,
    Hit,
    LearningParams,
    NamespaceError,
    NodeIdError,
    ParamError,
    RecallParams,
    StoreBusyError,
    StoreError,
    Synapse,
    Trace,
    UnknownRunError,
    Use,
)
from synapse_retrievers.errors import StoreCorruptError
from synapse_retrievers.events.event import Result, Retrieved
from synapse_retrievers.learning.lesson import Lesson
from synapse_retrievers.observer import LEDGER
from synapse_retrievers.params import DAY
from synapse_retrievers.stores.memory import MemoryStore
from synapse_retrievers.stores.sqlite import SQLiteStore

NOW = 1_700_000_000.0
HITS = [Hit("a"), Hit("c1"), Hit("c2"), Hit("c3")]


@pytest.fixture
def moment():
    return [NOW]


@pytest.fixture
def make(moment):
    """Makes memories on the frozen clock."""

    def made(where=None, **options):
        return Synapse(where or MemoryStore(), clock=lambda: moment[0], **options)

    return made


@pytest.fixture
def synapse(make):
    return make()


class Busy(MemoryStore):
    """A store whose lock another holds for as long as `is_busy`."""

    is_busy = False
    waits = ()

    def _refuse(self):
        if self.is_busy:
            raise StoreBusyError(self.url, 1.0)

    def update(self, *args, **options):
        self._refuse()
        return super().update(*args, **options)

    def batch(self, wait_seconds=None):
        self.waits = [*self.waits, wait_seconds]
        self._refuse()
        return super().batch(wait_seconds)


def everything(ids):
    return dict.fromkeys(ids, "text")


def edges(synapse, namespace=None):
    return {"".join(edge.pair): edge for edge in synapse.edges(namespace)}


def episodes(synapse, namespace=None):
    return {
        one.query: {node: use.strength for node, use in one.used.items()}
        for one in synapse.episodes(namespace)
    }


def state(synapse):
    return repr([*synapse.edges(), *synapse.episodes(), *synapse.store.nodes()])


def entered(synapse, query="rotate keys", hits=HITS, **options):
    return {
        move.node for move in synapse.recall(query, hits, everything, **options).trace.displaced_in
    }


# reinforce


def test_reinforce_teaches_every_pair_once_and_says_how_many(synapse):
    assert synapse.reinforce(["c", "a", "b", "a"], "q") == 3
    assert edges(synapse).keys() == {"ab", "ac", "bc"}
    assert episodes(synapse) == {"q": {"a": 1.0, "b": 1.0, "c": 1.0}}
    assert {edge.co for edge in synapse.edges()} == {0.5}


def test_reinforce_without_a_query_keeps_no_episode(synapse):
    synapse.reinforce(["a", "b"])
    assert synapse.stats().episodes == 0


def test_one_node_alone_is_an_episode_and_no_pair(synapse):
    assert synapse.reinforce(["a"], "q") == 0
    assert episodes(synapse) == {"q": {"a": 1.0}}


def test_nothing_used_teaches_nothing(synapse):
    assert synapse.reinforce([], "q") == 0
    assert state(synapse) == "[]"


@pytest.mark.parametrize(
    ("values", "error"),
    [
        ({"ids": ["a", 1]}, NodeIdError),
        ({"ids": "ab"}, NodeIdError),
        ({"ids": ["a", ""]}, NodeIdError),
        ({"ids": ["a", "b"], "strength": 0}, FeedbackError),
        ({"ids": ["a", "b"], "strength": 2.5}, FeedbackError),
        ({"ids": ["a", "b"], "strength": float("nan")}, FeedbackError),
        ({"ids": ["a", "b"], "query": 7}, FeedbackError),
        ({"ids": ["a", "b"], "namespace": "a b"}, NamespaceError),
    ],
)
def test_what_reinforce_refuses_it_does_not_write(synapse, values, error):
    with pytest.raises(error):
        synapse.reinforce(**values)
    assert state(synapse) == "[]"


def test_a_memory_without_a_namespace_teaches_only_where_one_is_named(make):
    synapse = make(namespace=None)
    with pytest.raises(NamespaceError):
        synapse.reinforce(["a", "b"])
    assert synapse.reinforce(["a", "b"], namespace="acme") == 1


def test_at_most_thirty_two_nodes_are_paired(make):
    ids = [f"n{number:02}" for number in range(40)]
    synapse = make()
    assert synapse.reinforce(ids) == 32 * 31 // 2
    assert {node.id for node in synapse.store.nodes()} == set(ids[:32])
    assert {edge.co for edge in synapse.edges()} == {1 / 31}


def test_above_the_most_the_strongest_evidence_is_kept(make):
    synapse = make(learning=LearningParams(max_nodes=2))
    with synapse.run("q") as run:
        synapse.learn(run.run, {"a": Use(0.4), "b": Use(1.0), "c": Use(0.6)})
    assert edges(synapse).keys() == {"bc"}


def test_the_same_use_within_an_hour_only_renews_the_episode(synapse, moment):
    synapse.reinforce(["a", "b"], "q")
    moment[0] += 3_600
    assert synapse.reinforce(["a", "b"], "q") == 0
    assert edges(synapse)["ab"].activations == 1
    assert next(synapse.episodes()).renewed_at == moment[0]
    moment[0] += 3_601
    assert synapse.reinforce(["a", "b"], "q") == 1


def test_a_run_key_teaches_once_also_after_a_restart(tmp_path, make, moment):
    path = tmp_path / "synapse.db"
    first = make(SQLiteStore(path))
    assert first.reinforce(["a", "b"], "q", run_key="run 7") == 1
    first.close()
    moment[0] += 2 * DAY
    second = make(SQLiteStore(path))
    assert second.reinforce(["a", "b"], "q", run_key="run 7") == 0
    assert second.reinforce(["a", "b"], "q", run_key="run 8") == 1
    assert edges(second)["ab"].activations == 2
    second.close()


@pytest.mark.parametrize("again", [{"ids": ["a", "c"]}, {"ids": ["a", "b"], "strength": 2.0}])
def test_a_run_key_that_was_taught_teaches_nothing_again_whatever_comes_with_it(synapse, again):
    synapse.reinforce(["a", "b"], run_key="run 7")
    before = state(synapse)
    assert synapse.reinforce(**again, run_key="run 7") == 0
    assert state(synapse) == before


@pytest.mark.parametrize("again", [["a", "b", "c"], ["abc"], ["ab", "c"], ["c", "ab"], ["b"]])
def test_a_replayed_run_teaches_nothing_in_whatever_steps_it_comes(make, moment, again):
    store = MemoryStore()
    for steps in (["a", "b", "c"], again):
        moment[0] += 2 * 3_600
        run = LEDGER.run("one run, replayed", make(store), "personal", time.monotonic())
        run.asked("q", ())
        for step in steps:
            run.owner.learn(run, {node: Use(1.0) for node in step})
    assert {edge.activations for edge in store.edges()} == {1}
    assert {node.used for node in store.nodes()} == {1.0}


# runs


def test_a_run_teaches_as_it_grows_and_each_pair_once(synapse):
    with synapse.run("rotate keys") as run:
        run.retrieved(["a", "b", "z"])
        assert run.used(["a"]) == 0
        assert run.used(["b"], evidence="read") == 1
        assert run.used(["a", "b"]) == 0
        assert run.used(["c"]) == 2
    assert run.used(["c", "a"]) == 0
    assert {edge.activations for edge in synapse.edges()} == {1}
    assert episodes(synapse)["rotate keys"]["b"] == 1.0
    co = {pair: edge.co for pair, edge in edges(synapse).items()}
    assert co == {"ab": 0.5, "ac": 0.5, "bc": 0.5}


def test_being_retrieved_is_no_evidence(synapse):
    with synapse.run("q") as run:
        run.retrieved(["a", "b"])
    assert state(synapse) == "[]"


def test_used_nodes_are_credited_to_the_query_that_returned_them(synapse):
    with synapse.run() as run:
        run.retrieved(["a", "x"], "first")
        run.retrieved(["b", "y"], "second")
        run.used(["a", "b", "from elsewhere"])
    assert episodes(synapse) == {
        "first": {"a": 1.0, "from elsewhere": 1.0},
        "second": {"b": 1.0, "from elsewhere": 1.0},
    }


def test_a_run_refuses_what_has_no_meaning(synapse):
    with synapse.run() as run:
        for call in (
            lambda: run.retrieved(["a"]),
            lambda: run.used(["a"], evidence="seen"),
            lambda: run.used(["a"], strength=3),
        ):
            with pytest.raises(FeedbackError):
                call()
        with pytest.raises(NodeIdError):
            run.used([None])
    assert state(synapse) == "[]"


def test_a_use_that_could_not_be_written_may_be_repeated(make):
    store = Busy()
    synapse = make(store)
    with synapse.run("q") as run:
        store.is_busy = True
        with pytest.raises(StoreBusyError):
            run.used(["a", "b"])
        store.is_busy = False
        assert run.used(["a", "b"]) == 1


# feedback


def test_feedback_names_a_run_by_its_id_and_raises_what_it_used(synapse):
    with synapse.run("q") as run:
        run.used(["a", "b"], evidence="hinted")
    assert synapse.feedback(run.id) == 0
    assert episodes(synapse) == {"q": {"a": 1.0, "b": 1.0}}
    assert synapse.feedback(run.id, used=["c"]) == 2
    assert {edge.activations for edge in synapse.edges()} == {1}


def test_feedback_names_the_newest_run_by_its_query(synapse):
    with synapse.run("q") as run:
        run.retrieved(["a", "b"])
    assert synapse.feedback(query="q", used=["a", "b"]) == 1
    assert run.run.used.keys() == {"a", "b"}


def test_feedback_on_a_query_that_no_run_asked_stands_for_one(synapse):
    assert synapse.feedback(query="never asked", used=["a", "b"], strength=2.0) == 1
    assert episodes(synapse) == {"never asked": {"a": 2.0, "b": 2.0}}
    assert edges(synapse)["ab"].weight == pytest.approx(0.6)


def test_feedback_on_nothing_used_teaches_nothing(synapse):
    assert synapse.feedback(query="q") == 0
    assert synapse.feedback(query="q", helpful=False) == 0
    assert state(synapse) == "[]"


def test_an_unknown_run_stands_if_query_and_nodes_are_given(synapse):
    with pytest.raises(UnknownRunError, match="query= and used="):
        synapse.feedback("no such run")
    with pytest.raises(UnknownRunError):
        synapse.feedback("no such run", query="q")
    assert synapse.feedback("no such run", query="q", used=["a", "b"]) == 1


def test_a_run_of_another_memory_or_namespace_is_not_known(make):
    first, second = make(), make()
    with first.run("q") as run:
        run.used(["a", "b"])
    with pytest.raises(UnknownRunError):
        second.feedback(run.id)
    with pytest.raises(UnknownRunError):
        first.feedback(run.id, namespace="acme")


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"used": ["a"]},
        {"query": "q", "helpful": "no"},
        {"query": "q", "helpful": None},
        {"query": "q", "helpful": 1},
        {"query": "q", "strength": 0},
        {"query": "q", "strength": True},
        {"query": 1, "used": ["a"]},
    ],
)
def test_feedback_that_has_no_meaning_is_an_error(synapse, values):
    with pytest.raises(FeedbackError):
        synapse.feedback(**values)


def test_unhelpful_takes_three_tenths_from_the_query_s_own_episode(synapse):
    synapse.reinforce(["a", "b"], "q")
    before = [*synapse.edges()]
    assert synapse.feedback(query="q", used=["a"], helpful=False) == 1
    assert episodes(synapse)["q"] == {"a": 0.7, "b": 1.0}
    assert [*synapse.edges()] == before


def test_unhelpful_four_times_takes_the_node_out(synapse):
    synapse.reinforce(["a", "b"], "q")
    counts = [synapse.feedback(query="q", used=["a"], helpful=False) for _ in range(5)]
    assert counts == [1, 1, 1, 1, 0]
    assert episodes(synapse)["q"] == {"b": 1.0}


def test_unhelpful_on_what_no_episode_knows_returns_nothing(synapse):
    synapse.reinforce(["a", "b"], "other")
    before = state(synapse)
    assert synapse.feedback(query="q", used=["a"], helpful=False) == 0
    assert state(synapse) == before


def carried(synapse, query, run_id, node="b"):
    """A retrieval in which `node` was brought in, as an integration notes it."""
    recalled = synapse.recall(query, HITS, everything)
    (move,) = [move for move in recalled.trace.displaced_in if move.node == node]
    results = tuple(Result(hit.id, "text") for hit in recalled.hits)
    LEDGER.retrieved(
        Retrieved(
            run_id,
            run_id,
            synapse,
            "personal",
            query,
            results,
            {node: move.carriers[0]},
            time.monotonic(),
        )
    )
    return move.carriers[0]


def test_unhelpful_takes_from_the_one_carrier_that_brought_it_in(synapse):
    synapse.reinforce(["b"], "rotate keys")
    synapse.reinforce(["b"], "rotate locks")
    assert carried(synapse, "rotate keys", "unhelpful 1").source == "rotate keys"
    assert synapse.feedback("unhelpful 1", helpful=False, strength=0.5) == 1
    assert episodes(synapse) == {"rotate keys": {"b": 0.85}, "rotate locks": {"b": 1.0}}


def test_unhelpful_takes_weight_and_co_of_the_edge_that_carried(make):
    strong = RecallParams(cue_weight=0.0, spread_weight=4.0)
    synapse = make(recall=strong)
    for _ in range(6):
        synapse.reinforce(["a", "b"])
    carried(synapse, "q", "unhelpful 2")
    assert synapse.feedback("unhelpful 2", helpful=False) == 1
    edge = edges(synapse)["ab"]
    assert (edge.weight, edge.co) == (pytest.approx(0.7), pytest.approx(5.7))
    assert edge.activations == 6


def test_brought_in_and_unused_it_loses_a_little_and_only_once(synapse):
    synapse.reinforce(["b"], "rotate keys")
    carried(synapse, "rotate keys", "unused 1")
    (run,) = LEDGER.find("unused 1", synapse, 0.0)
    assert synapse.disappoint(run, ["b"]) == 1
    assert synapse.disappoint(run, ["b"]) == 0
    assert episodes(synapse) == {"rotate keys": {"b": 0.95}}


def test_feedback_for_a_query_that_is_asked_again_hours_later_teaches_again(
    synapse, moment, monkeypatch
):
    started, passed = time.monotonic(), [0.0]
    clock = SimpleNamespace(monotonic=lambda: started + passed[0], time=time.time)
    for module in [name for name in sys.modules if name.startswith("synapse_retrievers.")]:
        if getattr(sys.modules[module], "time", None) is time:
            monkeypatch.setattr(sys.modules[module], "time", clock)
    assert synapse.feedback(query="asked every day", used=["a", "b"]) == 1
    moment[0] += 8 * 3_600
    passed[0] += 8 * 3_600
    assert synapse.feedback(query="asked every day", used=["a", "b"]) == 1
    assert edges(synapse)["ab"].activations == 2


def test_feedback_on_a_run_of_two_tenants_gives_no_tenant_the_other_s_nodes(make):
    synapse = make(namespace=None)
    for tenant, nodes in (("left", "ab"), ("right", "xy")):
        results = tuple(Result(node, f"text of {node}") for node in nodes)
        event = Retrieved(tenant, "both", synapse, tenant, "q", results, {}, time.monotonic())
        LEDGER.retrieved(event)
    synapse.feedback("both", used=["a", "b"])
    assert edges(synapse, "left").keys() == {"ab"}
    assert edges(synapse, "right") == {}
    assert episodes(synapse, "right") == {}


# namespaces and switches

TABLE = {
    "personal": {"personal": 1.0, "shared": 0.5},
    "shared": {"shared": 1.0},
    "ephemeral": {"ephemeral": 1.0, "personal": 0.8, "shared": 0.5},
    "branch:x": {"branch:x": 1.0, "personal": 0.8, "shared": 0.5},
    "branch:y": {"branch:y": 1.0, "personal": 0.8, "shared": 0.5},
    "acme": {"acme": 1.0},
}


@pytest.mark.parametrize("reads", TABLE)
@pytest.mark.parametrize("writes", TABLE)
def test_what_one_namespace_taught_counts_in_another_by_the_table(make, writes, reads):
    synapse = make(namespace=reads)
    synapse.reinforce(["b"], "rotate keys", namespace=writes)
    energies = {one.node: one.energy for one in synapse.explain("rotate keys").reached}
    factor = TABLE[reads].get(writes)
    assert energies == ({} if factor is None else {"b": pytest.approx(factor)})


@pytest.mark.parametrize("kernel", ["hub", "paper"])
@pytest.mark.parametrize("reads", TABLE)
def test_edges_of_all_namespaces_merge_before_the_paper_s_spread(make, kernel, reads):
    params = RecallParams(kernel=kernel, cue_weight=0.0, spread_weight=1.0)
    synapse = make(namespace=reads, recall=params)
    for namespace in TABLE:
        synapse.reinforce(["a", "b"], namespace=namespace)
    hits = [Hit("a"), Hit("c1"), Hit("c2"), Hit("b")]
    energies = {one.node: one.energy for one in synapse.explain("q", hits).reached}
    weight = min(1.0, 0.3 * sum(TABLE[reads].values()))
    assert energies == {"b": pytest.approx(0.6 * weight)}


def test_writes_go_to_the_active_namespace_alone(make):
    synapse = make(namespace="branch:x")
    synapse.reinforce(["a", "b"], "q")
    assert {edge.namespace for edge in synapse.edges()} == {"branch:x"}
    assert {one.namespace for one in synapse.episodes()} == {"branch:x"}


def test_disabled_it_learns_and_changes_nothing(make):
    store = MemoryStore()
    make(store).reinforce(["b", "d"], "rotate keys")
    synapse = make(store, enabled=False)
    before = state(synapse)
    assert synapse.reinforce(["x", "y"], "q") == 0
    assert synapse.feedback(query="rotate keys", used=["b"], helpful=False) == 0
    with synapse.run("q") as run:
        assert run.used(["x", "y"]) == 0
    assert state(synapse) == before
    assert synapse.recall("rotate keys", HITS, everything).hits is HITS


@pytest.mark.parametrize("value", ["1", "true", "YES", " On "])
def test_the_environment_switches_everything_off(make, monkeypatch, value):
    synapse = make()
    synapse.reinforce(["b"], "rotate keys")
    monkeypatch.setenv("SYNAPSE_RETRIEVERS_DISABLED", value)
    assert synapse.recall("rotate keys", HITS, everything).hits is HITS
    assert synapse.reinforce(["x", "y"]) == 0
    monkeypatch.delenv("SYNAPSE_RETRIEVERS_DISABLED")
    assert entered(synapse) == {"b"}


@pytest.mark.parametrize("value", ["", "0", "false", "no", "off", "2"])
def test_anything_else_in_the_environment_leaves_it_on(make, monkeypatch, value):
    monkeypatch.setenv("SYNAPSE_RETRIEVERS_DISABLED", value)
    synapse = make()
    synapse.reinforce(["b"], "rotate keys")
    assert entered(synapse) == {"b"}


def test_frozen_it_recalls_and_learns_nothing(make):
    store = MemoryStore()
    make(store).reinforce(["b"], "rotate keys")
    synapse = make(store, learn=False)
    before = state(synapse)
    assert synapse.reinforce(["x", "y"]) == 0
    assert synapse.feedback(query="rotate keys", used=["b"], helpful=False) == 0
    with synapse.run("q") as run:
        assert synapse.learn(run.run, {"x": Use(1.0)}) == 0
        assert synapse.disappoint(run.run, ["b"]) == 0
    assert state(synapse) == before
    assert entered(synapse) == {"b"}


def test_in_shadow_it_learns_and_changes_nothing(make):
    synapse = make(inject=False)
    assert synapse.reinforce(["b", "d"], "rotate keys") == 1
    recalled = synapse.recall("rotate keys", HITS, everything)
    assert recalled.hits is HITS
    assert {move.node for move in recalled.trace.displaced_in} == {"b", "d"}


@pytest.mark.parametrize("option", ["enabled", "inject", "learn"])
@pytest.mark.parametrize("value", [1, None, "yes"])
def test_switches_are_true_or_false(make, option, value):
    with pytest.raises(ParamError):
        make(**{option: value})


@pytest.mark.parametrize("value", ["a b", "", "branch:", 7])
def test_a_namespace_is_checked_at_once(make, value):
    with pytest.raises(NamespaceError):
        make(namespace=value)


@pytest.mark.parametrize("moment", [[float("nan")], [float("inf")], ["now"], [True]])
def test_a_clock_that_shows_no_time_writes_nothing(make, moment):
    synapse = make()
    with pytest.raises(ParamError):
        synapse.reinforce(["a", "b"])
    assert state(synapse) == "[]"


# events


def test_every_recall_and_every_lesson_is_told(make):
    told = []
    synapse = make(on_event=told.append)
    synapse.reinforce(["b", "d"], "rotate keys")
    synapse.recall("rotate keys", HITS, everything)
    assert [type(one) for one in told] == [Lesson, Trace]
    assert told[0].used.keys() == {"b", "d"}
    assert told[1].displaced_in


def test_who_listens_and_fails_is_passed_over_and_counted(make):
    def raising(event):
        raise RuntimeError("mine")

    synapse = make(on_event=raising)
    assert synapse.reinforce(["b", "d"], "rotate keys") == 1
    assert entered(synapse) == {"b", "d"}
    assert synapse.stats().failures == 2


# looking inside and taking out


def test_neighbors_are_the_nodes_one_edge_away_highest_weight_first(synapse, moment):
    synapse.reinforce(["a", "b"])
    synapse.reinforce(["a", "c"], strength=2.0)
    synapse.reinforce(["a", "d"])
    synapse.reinforce(["a", "e"], namespace="shared")
    moment[0] += DAY
    found = synapse.neighbors("a")
    assert [one.node for one in found] == ["c", "b", "d"]
    left = 2 ** (-1 / 365)
    used, co = (1 + 2 + 1) * left, 2 * left
    assert found[0].probability == pytest.approx(co / (used + 2))
    assert (found[0].activations, found[0].age_days) == (1, 1.0)
    assert [one.node for one in synapse.neighbors("a", "shared")] == ["e"]
    assert synapse.neighbors("never seen") == []
    with pytest.raises(NodeIdError):
        synapse.neighbors(7)


def test_a_neighbor_s_probability_is_the_one_that_recall_counts_with(make):
    synapse = make(recall=RecallParams(edge_prior=0.0))
    synapse.reinforce(["a", "b"])
    assert synapse.neighbors("a")[0].probability == pytest.approx(1.0)


@pytest.fixture(params=["memory", "sqlite"])
def full(request, make, moment, tmp_path):
    store = MemoryStore() if request.param == "memory" else SQLiteStore(tmp_path / "s.db")
    synapse = make(store)
    synapse.reinforce(["a", "b"], "old")
    moment[0] += 10 * DAY
    synapse.reinforce(["b", "c"], "new")
    synapse.reinforce(["a", "b"], "there", namespace="acme")
    yield synapse
    store.close()


def test_forgetting_a_node_takes_its_edges_and_its_uses(full):
    removed = full.forget(["a"])
    assert (removed.edges, removed.episodes, removed.nodes) == (2, 0, 2)
    assert {edge.pair for edge in full.edges()} == {("b", "c")}
    assert "a" not in {node for used in episodes(full).values() for node in used}
    assert "a" not in {node.id for node in full.store.nodes()}


def test_forgetting_a_namespace_leaves_the_others(full):
    full.forget(namespace="acme")
    assert {edge.namespace for edge in full.edges()} == {"personal"}
    assert {one.namespace for one in full.episodes()} == {"personal"}


def test_forgetting_what_is_old_takes_edges_and_episodes(full):
    full.forget(before=NOW + DAY)
    assert edges(full, "personal").keys() == {"bc"}
    assert episodes(full, "personal").keys() == {"new"}


def test_forgetting_a_query_takes_its_episode_alone(full):
    removed = full.forget(query="old")
    assert (removed.edges, removed.episodes) == (0, 1)
    assert episodes(full, "personal").keys() == {"new"}
    assert len(edges(full, "personal")) == 2


def test_forgetting_by_two_conditions_takes_what_meets_both(full):
    full.forget(["b"], namespace="personal", before=NOW + DAY)
    assert edges(full, "personal").keys() == {"bc"}
    assert edges(full, "acme").keys() == {"ab"}


def test_forgetting_nobody_takes_nothing(full):
    before = state(full)
    removed = full.forget([])
    assert (removed.edges, removed.episodes, removed.nodes) == (0, 0, 0)
    assert state(full) == before


def test_forgetting_everything_by_accident_is_an_error(full):
    with pytest.raises(FeedbackError):
        full.forget()
    with pytest.raises(NodeIdError):
        full.forget("a")
    with pytest.raises(ParamError):
        full.forget(before=float("nan"))


def test_a_forgotten_node_comes_in_no_more(full):
    assert "b" in entered(full, "old", [Hit("x"), Hit("y"), Hit("z"), Hit("w")])
    full.forget(["a", "b", "c"])
    assert entered(full, "old", [Hit("x"), Hit("y"), Hit("z"), Hit("w")]) == set()


def test_prune_removes_edges_of_which_nothing_is_left_and_no_other(synapse, moment):
    synapse.reinforce(["a", "b"], strength=0.02)
    synapse.reinforce(["a", "c"], strength=1.0)
    moment[0] += 60 * DAY
    before = edges(synapse)["ac"]
    assert synapse.prune().edges == 1
    assert edges(synapse) == {"ac": before}


def test_prune_removes_what_is_gone_for_thirty_days(synapse, moment):
    synapse.reinforce(["a", "b", "c"], "q")
    synapse.mark_gone(["b"], "personal")
    moment[0] += 29 * DAY
    synapse.prune()
    assert len(edges(synapse)) == 3
    moment[0] += 2 * DAY
    synapse.prune()
    assert edges(synapse).keys() == {"ac"}
    assert episodes(synapse) == {"q": {"a": 1.0, "c": 1.0}}


def test_stats_count_what_is_there_and_what_happened(synapse):
    synapse.reinforce(["a", "b", "c"], "q")
    synapse.reinforce(["a"], "r", namespace="acme")
    synapse.unidentified(2)
    found = synapse.stats()
    assert (found.nodes, found.edges, found.episodes) == (4, 3, 2)
    assert found.namespaces["personal"].edges == 3
    assert (found.waiting, found.lost, found.failures, found.unidentified) == (0, 0, 0, 2)


# privacy


def test_no_word_of_a_query_is_in_the_file_and_recall_is_the_same(tmp_path, make):
    queries = ["zyxwvut qponmlk", "zyxwvut sesquipedalian", "sesquipedalian_Quokka"]
    plain, private = (
        make(),
        make(SQLiteStore(tmp_path / "private.db"), learning=LearningParams(store_queries=False)),
    )
    for synapse in (plain, private):
        for number, query in enumerate(queries):
            synapse.reinforce([f"n{number}", f"n{number + 1}"], query)
        with synapse.run("zyxwvut again") as run:
            run.retrieved(["n7"])
            run.used(["n7", "n1"])
    for query in [*queries, "qponmlk sesquipedalian", "quokka"]:
        found = [
            {one.node: one.energy for one in synapse.explain(query, HITS).reached}
            for synapse in (plain, private)
        ]
        assert found[0] == pytest.approx(found[1], abs=1e-9)
        assert found[0]
        orders = [
            [hit.id for hit in synapse.recall(query, HITS, everything).hits]
            for synapse in (plain, private)
        ]
        assert orders[0] == orders[1]
    assert private.forget(query=queries[0]).episodes == 1
    private.feedback(query="an unspeakable thing", used=["n1"], helpful=False)
    written = b"".join(path.read_bytes() for path in tmp_path.iterdir()).lower()
    private.close()
    written += b"".join(path.read_bytes() for path in tmp_path.iterdir()).lower()
    assert b"n7" in written
    for word in ("zyxwvut", "qponmlk", "sesquipedalian", "quokka", "again", "unspeakable"):
        assert word.encode() not in written


def test_without_texts_a_repetition_is_still_one(make):
    synapse = make(learning=LearningParams(store_queries=False))
    assert [synapse.reinforce(["a", "b"], "q") for _ in range(2)] == [1, 0]
    assert synapse.feedback(query="q", used=["a"], helpful=False) == 1
    (episode,) = synapse.episodes()
    assert episode.query.startswith("hmac:")


# nothing lost


def test_what_the_listener_learns_waits_while_the_store_is_busy_and_then_comes_first(make):
    store = Busy()
    synapse = make(store)
    store.is_busy = True
    with synapse.run("q") as run:
        assert synapse.learn(run.run, {"a": Use(1.0), "b": Use(1.0)}) == 0
    assert synapse.stats().waiting == 1
    with pytest.raises(StoreBusyError):
        synapse.flush()
    with pytest.raises(StoreBusyError):
        synapse.reinforce(["c", "d"])
    store.is_busy = False
    assert synapse.reinforce(["c", "d"]) == 1
    assert edges(synapse).keys() == {"ab", "cd"}
    assert synapse.stats().waiting == 0


def test_flush_commits_what_waits(make):
    store = Busy()
    synapse = make(store)
    with synapse.run("q") as run:
        store.is_busy = True
        synapse.learn(run.run, {"a": Use(1.0), "b": Use(1.0)})
        store.is_busy = False
    synapse.flush()
    assert edges(synapse).keys() == {"ab"}


async def test_aflush_commits_what_waits(make):
    store = Busy()
    synapse = make(store)
    with synapse.run("q") as run:
        store.is_busy = True
        synapse.learn(run.run, {"a": Use(1.0), "b": Use(1.0)})
        store.is_busy = False
    await synapse.aflush()
    assert edges(synapse).keys() == {"ab"}


def test_what_finds_no_place_to_wait_in_is_counted_as_lost(make):
    store = Busy()
    synapse = make(store)
    store.is_busy = True
    for number in range(1_003):
        with synapse.run(f"q{number}") as run:
            synapse.learn(run.run, {f"n{number}": Use(1.0)})
    found = synapse.stats()
    assert (found.waiting, found.lost) == (1_000, 3)
    store.is_busy = False
    synapse.flush()
    assert synapse.stats().episodes == 1_000


def test_an_explicit_call_writes_all_of_it_or_none(make):
    class Failing(MemoryStore):
        left = 99

        def update(self, *args, **options):
            self.left -= 1
            if self.left < 0:
                raise StoreError("the disk is full")
            return super().update(*args, **options)

    reference = make()
    for left in range(8):
        store = Failing()
        synapse = make(store)
        with synapse.run() as run:
            run.retrieved(["a"], "one")
            run.retrieved(["b"], "two")
            store.left = left
            try:
                run.used(["a", "b"])
            except StoreError:
                store.left = 99
                assert state(synapse) == state(reference) == "[]"
                assert run.used(["a", "b"]) == 1
        assert episodes(synapse) == {"one": {"a": 1.0}, "two": {"b": 1.0}}
        assert {edge.activations for edge in synapse.edges()} == {1}


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_threads_lose_nothing(kind, make, tmp_path):
    store = MemoryStore() if kind == "memory" else SQLiteStore(tmp_path / "s.db", busy_seconds=30)
    synapse, failed = make(store), []

    def work(name):
        try:
            for number in range(50):
                assert synapse.reinforce(["a", "b", name], f"{name} {number}") == 3
                synapse.recall(f"{name} {number}", HITS, everything)
        except BaseException as error:
            failed.append(error)
            raise

    threads = [threading.Thread(target=work, args=(f"t{number}",)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    found = edges(synapse)
    assert (found["ab"].activations, found["ab"].co) == (400, pytest.approx(200.0))
    assert {found[f"at{number}"].activations for number in range(8)} == {50}
    assert {n.id: n.used for n in store.nodes()}["a"] == pytest.approx(400.0)
    assert synapse.stats().episodes == 400
    assert synapse.stats().failures == 0
    store.close()


def test_threads_of_one_run_teach_each_pair_once(synapse):
    ids = [f"n{number}" for number in range(8)]
    with synapse.run("q") as run:
        threads = [
            threading.Thread(target=run.used, args=([a, b],)) for a, b in combinations(ids, 2)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert {edge.pair for edge in synapse.edges()} == set(combinations(ids, 2))
    assert {edge.activations for edge in synapse.edges()} == {1}
    assert {node.used for node in synapse.store.nodes()} == {1.0}


def test_a_copy_is_the_same_memory(synapse):
    assert copy.copy(synapse) is synapse
    assert copy.deepcopy(synapse) is synapse
    assert copy.deepcopy({"deep": [synapse]})["deep"][0] is synapse


def test_a_store_that_cannot_be_opened_is_an_error_or_a_warning(tmp_path, make):
    path = tmp_path / "synapse.db"
    path.write_bytes(b"this is no database at all" * 100)
    with pytest.raises(StoreCorruptError):
        make(path)
    synapse = make(path, must_open=False)
    assert synapse.recall("q", HITS, everything).hits is HITS
    with pytest.raises(StoreError):
        synapse.reinforce(["a", "b"])
    path.unlink()
    assert synapse.reinforce(["b"], "rotate keys") == 0
    assert entered(synapse) == {"b"}
    synapse.close()


def test_closed_it_opens_again(tmp_path, make):
    synapse = make(tmp_path / "synapse.db")
    synapse.reinforce(["b"], "rotate keys")
    synapse.close()
    assert entered(synapse) == {"b"}
    synapse.close()


def python(script, *arguments):
    return subprocess.run(
        [sys.executable, "-c", script, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


AT_EXIT = """
import sqlite3, sys
from synapse_retrievers import Synapse, Use
synapse = Synapse(sys.argv[1])
other = sqlite3.connect(sys.argv[1], isolation_level=None)
other.execute("BEGIN IMMEDIATE")
with synapse.run("q") as run:
    synapse.learn(run.run, {"a": Use(1.0), "b": Use(1.0)})
assert synapse.stats().waiting == 1
other.execute("ROLLBACK")
other.close()
"""


def test_what_waits_is_written_at_exit(tmp_path, make):
    path = tmp_path / "synapse.db"
    done = python(AT_EXIT, path)
    assert done.returncode == 0, done.stderr
    synapse = make(path)
    assert edges(synapse).keys() == {"ab"}
    synapse.close()


FORK = """
import os, sys
from synapse_retrievers import Synapse, Use
from synapse_retrievers.observer import LEDGER
synapse = Synapse(sys.argv[1])
synapse.reinforce(["a", "b"])
with synapse.run("q") as run:
    run.retrieved(["a", "b"])
    synapse._writing.later(lambda store: Synapse(store).reinforce(["a", "b"]))
    child = os.fork()
    if child == 0:
        assert synapse.stats().waiting == 0
        assert len(LEDGER) == 0
        assert synapse.reinforce(["a", "b"]) == 1
        sys.exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert synapse.stats().waiting == 1
    assert synapse.reinforce(["a", "b"]) == 1
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")
def test_a_forked_child_writes_its_own_and_not_its_parent_s(tmp_path, make):
    path = tmp_path / "synapse.db"
    done = python(FORK, path)
    assert done.returncode == 0, done.stderr
    synapse = make(path)
    assert edges(synapse)["ab"].activations == 4
    synapse.close()


def test_what_a_recall_would_note_is_not_waited_for(make):
    store = Busy()
    synapse = make(store)
    synapse.reinforce(["a", "b"], "q")
    synapse.mark_gone(["b"], "personal")
    store.is_busy = True
    assert len(synapse.recall("q", [*HITS, Hit("b")]).places) == 5
    synapse.mark_gone(["a"], "personal")
    assert (synapse.stats().waiting, synapse.stats().failures) == (0, 0)
    store.is_busy = False
    synapse.recall("q", [*HITS, Hit("b")])
    assert [node.gone_at for node in store.nodes()] == [None, None]


def test_a_store_that_was_busy_is_not_waited_for_by_what_may_wait_itself(make):
    store = Busy()
    synapse = make(store)
    store.is_busy = True
    for number in range(3):
        run = LEDGER.run(f"run-{number}", synapse, "personal", time.monotonic())
        run.asked(f"q{number}", ())
        assert synapse.learn(run, {"a": Use(1.0), "b": Use(1.0)}) == 0
    assert synapse.stats().waiting == 3
    assert store.waits == [None, 0.0, 0.0]
    store.is_busy = False
    synapse.flush()
    assert edges(synapse)["ab"].activations == 3


def test_a_clock_that_is_none_leaves_the_order(make, moment):
    synapse = make()
    synapse.reinforce(["a", "x"], "q")
    moment[0] = float("nan")
    recalled = synapse.recall("q", HITS, everything)
    assert recalled.trace.is_cold
    assert "clock" in recalled.trace.reason
    assert synapse.stats().failures == 1
