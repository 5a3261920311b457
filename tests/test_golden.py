"""The known values of the design and the seed paper, through a real store."""

import json
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from synapse_retrievers import Hit, LearningParams, RecallParams, Synapse
from synapse_retrievers.learning.half_life import half_life
from synapse_retrievers.params import DAY
from synapse_retrievers.stores.memory import MemoryStore
from synapse_retrievers.stores.sqlite import SQLiteStore
from synapse_retrievers.types import Changes

GOLDEN = Path(__file__).parent / "golden"
NOW = 1_700_000_000.0
NO_CUE = {"cue_weight": 0.0, "spread_weight": 1.0}


def read(name):
    return json.loads((GOLDEN / f"{name}.json").read_text(encoding="utf-8"))


def named(rows):
    return [pytest.param(row, id=row["case"]) for row in rows]


@pytest.fixture(params=["memory", "sqlite"])
def store(request, tmp_path):
    opened = MemoryStore() if request.param == "memory" else SQLiteStore(tmp_path / "s.db")
    yield opened
    opened.close()


def put(store, namespace, weights, *, at=NOW, activations=1, co=0.0):
    """Edges as they would stand in a store after `activations` reinforcements."""
    nodes = sorted({node for pair in weights for node in pair})
    ordered = {tuple(sorted(pair)): weight for pair, weight in weights.items()}

    def rule(stored):
        states = stored.edges.copy()
        for row, pair in enumerate(combinations(stored.nodes, 2)):
            if pair in ordered:
                states[row] = (activations, ordered[pair], co, at, at)
        return Changes(edges=states)

    store.update(namespace, nodes, rule)


def fill(store, case):
    for namespace, rows in case["edges"].items():
        put(store, namespace, {(a, b): weight for a, b, weight in rows})
    for hub, size in case.get("fans", {}).items():
        with store.batch():
            for start in range(0, size, 20):
                names = [f"fan{number}" for number in range(start, min(size, start + 20))]
                put(store, "personal", {(hub, name): 0.5 for name in names})


def reached(store, params, seeds, watched):
    """Energies of the watched nodes; the seeds fill the first three places."""
    padded = [*seeds, *(f"unlearned{n}" for n in range(3 - len(seeds)))]
    synapse = Synapse(store, recall=params, clock=lambda: NOW)
    trace = synapse.explain("q", [*padded, *watched])
    return {node.node: node.energy for node in trace.reached}


CASES = [
    pytest.param(case, kernel, id=f"{case['case']} ({kernel})")
    for case in read("spread")
    for kernel in case["kernels"]
]


@pytest.mark.parametrize(("case", "kernel"), CASES)
def test_energy_is_the_published_one(store, case, kernel):
    fill(store, case)
    params = RecallParams(kernel=kernel, **NO_CUE)
    found = reached(store, params, case["seeds"], [*case["energy"]])
    for node, energy in case["energy"].items():
        assert found.get(node, 0.0) == pytest.approx(energy, abs=1e-9)
    assert not found.keys() & set(case["seeds"])


def test_a_sender_of_degree_six_has_that_degree(store):
    case = read("spread")[0]
    fill(store, case)
    assert {n.id: n.degree for n in store.nodes("personal")}["verify_token"] == 6


@pytest.mark.parametrize("size", [20, 60, 200])
def test_no_energy_in_a_clique_is_above_one(size):
    store = MemoryStore()
    names = [f"c{number:03}" for number in range(size)]
    put(store, "personal", dict.fromkeys(combinations(names, 2), 1.0))
    found = reached(store, RecallParams(kernel="hub", **NO_CUE), names[:3], names[3:])
    assert len(found) == size - 3
    assert 0.0 < max(found.values()) <= 1.0


@pytest.mark.parametrize("case", named(read("half_life")))
def test_a_half_life_is_the_published_one(store, case):
    found = half_life(
        np.array([case["activations"]]),
        np.array([float(case["idle_days"])]),
        "personal",
        LearningParams(),
    )
    assert found[0] == pytest.approx(case["half_life_days"], abs=0.005)
    learned_at = NOW - case["idle_days"] * DAY
    put(store, "personal", {("a", "b"): 0.8}, at=learned_at, activations=case["activations"])
    (neighbor,) = Synapse(store, clock=lambda: NOW).neighbors("a")
    left = 0.8 * 2 ** (-case["idle_days"] / case["half_life_days"])
    assert neighbor.weight == pytest.approx(left, abs=1e-4)


def test_an_edge_idle_for_a_year_then_used_once_weighs_three_tenths(store):
    put(store, "personal", {("a", "b"): 0.9}, at=NOW - 365 * DAY)
    synapse = Synapse(store, clock=lambda: NOW)
    synapse.reinforce(["a", "b"])
    assert synapse.neighbors("a")[0].weight == pytest.approx(0.300, abs=0.0005)
    assert next(store.edges()).weight == pytest.approx(0.300, abs=0.0005)


@pytest.mark.parametrize("runs", [0, 1, 5, 100])
def test_three_tenths_of_thirty_days_read_the_same_after_any_number_of_prunes(store, runs):
    moment = [NOW]
    fixed = LearningParams(half_life_min_days=30, half_life_max_days=30)
    synapse = Synapse(store, learning=fixed, clock=lambda: moment[0])
    synapse.reinforce(["a", "b"])
    for turn in range(runs):
        moment[0] = NOW + 10 * DAY * (turn + 1) / runs
        synapse.prune()
    moment[0] = NOW + 10 * DAY
    assert synapse.neighbors("a")[0].weight == pytest.approx(0.238, abs=0.001)
    assert Synapse(store, learning=fixed, clock=lambda: moment[0]).neighbors("b")[0].weight == (
        synapse.neighbors("a")[0].weight
    )


def test_one_real_reinforcement_reads_a_fifth_after_ten_days(store):
    Synapse(store, clock=lambda: NOW).reinforce(["a", "b"])
    (neighbor,) = Synapse(store, clock=lambda: NOW + 10 * DAY).neighbors("a")
    assert neighbor.weight == pytest.approx(0.198, abs=0.0005)


def test_the_walkthrough_of_the_paper(store):
    known = read("walkthrough")
    fill(store, known)
    synapse = Synapse(store, recall=RecallParams.paper(), clock=lambda: NOW)
    hits = [Hit(node, score) for node, score in known["hits"]]
    planned = synapse.plan("how are tokens verified", hits)
    worths = dict(zip([hit.id for hit in hits], planned.worths, strict=True))
    for node, score in known["scores"].items():
        assert worths[node] == pytest.approx(score, abs=1e-12)
    recalled = synapse.recall("how are tokens verified", hits, lambda ids: {n: n for n in ids})
    assert [hit.id for hit in recalled.hits] == known["after"]
    energies = {node.node: node.energy for node in recalled.trace.reached}
    for node, energy in known["energy"].items():
        assert energies[node] == pytest.approx(energy, abs=1e-12)
    (entered,) = recalled.trace.displaced_in
    assert (entered.node, entered.displaced) == ("load_keys", known["displaced"])
