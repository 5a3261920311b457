"""Energy over edges, each kernel against plain sums by hand."""

import math
from collections import defaultdict
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from synapse_retrievers.params import RecallParams
from synapse_retrievers.recall.graph import hub_factor
from synapse_retrievers.recall.spread import read_out, spread


@dataclass
class Rows:
    namespace: np.ndarray
    sender: np.ndarray
    neighbor: np.ndarray
    weight: np.ndarray
    co: np.ndarray
    used: np.ndarray
    activated_at: np.ndarray

    def of(self, rows):
        return Rows(*(column[rows] for column in vars(self).values()))


@dataclass
class Drawn:
    """A graph as lists: edges (namespace, a, b, weight, co) and used (namespace, node) -> count."""

    edges: list
    used: dict
    factors: np.ndarray

    def frontier(self, nodes):
        rows = sorted(
            (space, place, neighbor, weight, co, self.used.get((space, sender), 0.0), 0.0)
            for space, a, b, weight, co in self.edges
            for sender, neighbor in ((a, b), (b, a))
            for place in np.flatnonzero(nodes == sender).tolist()
        )
        columns = list(zip(*rows, strict=True)) or [()] * 7
        kinds = [np.int64] * 3 + [np.float64] * 4
        return Rows(*(np.array(c, dtype=k) for c, k in zip(columns, kinds, strict=True)))

    def degrees(self, nodes, exact_above):
        return np.array([len(neighbors(self.edges, node)) for node in nodes.tolist()], np.int64)


def neighbors(edges, node):
    return {b for _, a, b, *_ in edges if a == node} | {a for _, a, b, *_ in edges if b == node}


def damping(edges, node, most):
    degree = len(neighbors(edges, node))
    return math.sqrt(most / degree) if degree > most else 1.0


def noisy_or(values):
    left = 1.0
    for value in values:
        left *= 1.0 - value
    return 1.0 - left


def conditional_by_hand(seeds, graph, params):
    found = {}
    for space in range(len(graph.factors)):
        arrived = defaultdict(list)
        for where, a, b, _, co in graph.edges:
            for u, v in ((a, b), (b, a)):
                if where == space and u in seeds and v not in seeds:
                    given_used = graph.used.get((space, u), 0.0) + params.edge_prior
                    p = min(1.0, co / given_used) if given_used > 0 else 0.0
                    arrived[v].append(seeds[u] * damping(graph.edges, u, params.hub_degree) * p)
        for v, values in arrived.items():
            damped = noisy_or(values) * damping(graph.edges, v, params.hub_degree)
            found[space, v] = damped
    return found


def relayed_by_hand(seeds, graph, params):
    join = sum if params.kernel == "paper" else noisy_or
    merged = defaultdict(float)
    for space, a, b, weight, _ in graph.edges:
        for pair in ((a, b), (b, a)):
            merged[pair] += graph.factors[space] * weight
    senders, sent, received = dict(seeds), set(seeds), defaultdict(list)
    for _ in range(params.hops):
        arrived = defaultdict(list)
        for (u, v), weight in merged.items():
            if u in senders and v not in seeds:
                factor = damping(graph.edges, u, params.hub_degree)
                arrived[v].append(senders[u] * min(1.0, weight) * params.attenuation * factor)
        joined = {v: join(values) for v, values in arrived.items()}
        for v, energy in joined.items():
            received[v].append(energy)
        senders = {v: e for v, e in joined.items() if v not in sent and e > 0}
        sent |= set(senders)
    found = {(0, v): join(values) for v, values in received.items()}
    if params.kernel == "hub":
        found = {
            (0, v): e * damping(graph.edges, v, params.hub_degree) for (_, v), e in found.items()
        }
    return found


def energies(seeds, graph, params):
    nodes, values = np.fromiter(seeds, np.int64), np.fromiter(seeds.values(), float)
    found = read_out(spread(nodes, values, graph, params), graph, params)
    keys = list(zip(found.namespace.tolist(), found.node.tolist(), strict=True))
    assert len(keys) == len(set(keys)), "one row a namespace and node"
    return dict(zip(keys, found.energy.tolist(), strict=True))


def alone(edges, used=None):
    return Drawn([(0, *edge) for edge in edges], used or {}, np.ones(1))


def test_conditional_joins_two_seeds_by_noisy_or_of_p_given_seed():
    graph = alone([(1, 3, 0.9, 2.0), (2, 3, 0.9, 1.0)], {(0, 1): 2.0, (0, 2): 3.0})
    # P(3|1) = 2 / (2 + 2), P(3|2) = 1 / (3 + 2); 1 - (1 - 1.0 * 0.5) * (1 - 0.5 * 0.2)
    assert energies({1: 1.0, 2: 0.5}, graph, RecallParams()) == {(0, 3): pytest.approx(0.55)}


def test_one_accidental_pair_is_shrunk_to_a_third():
    graph = alone([(1, 2, 0.3, 1.0)], {(0, 1): 1.0, (0, 2): 1.0})
    assert energies({1: 1.0}, graph, RecallParams()) == {(0, 2): pytest.approx(1 / 3)}


@pytest.mark.parametrize("kernel", ["conditional", "hub", "paper"])
def test_seeds_get_nothing(kernel):
    graph = alone([(1, 2, 0.9, 2.0), (2, 3, 0.9, 1.0)], {(0, 1): 2.0, (0, 2): 3.0})
    found = energies({1: 1.0, 2: 0.5}, graph, RecallParams(kernel=kernel))
    assert {node for _, node in found} == {3}


@pytest.mark.parametrize("kernel", ["conditional", "hub", "paper"])
def test_a_graph_without_edges_gives_nothing(kernel):
    assert energies({1: 1.0}, alone([]), RecallParams(kernel=kernel)) == {}


def test_a_hub_is_damped_as_sender_and_as_receiver():
    fan = [(1, other, 1.0, 0.0) for other in range(100, 298)]
    graph = alone([(1, 2, 1.0, 1.0), (1, 3, 1.0, 0.0), *fan], {(0, 1): 0.0, (0, 2): 0.0})
    assert energies({1: 1.0}, graph, RecallParams())[0, 2] == pytest.approx(0.5 * 0.5)
    assert energies({2: 1.0}, graph, RecallParams())[0, 1] == pytest.approx(0.5 * 0.5)


def test_the_hub_factor_begins_above_fifty():
    degrees = np.array([0, 1, 49, 50, 51, 200, 5000])
    expected = [1, 1, 1, 1, math.sqrt(50 / 51), 0.5, 0.1]
    assert hub_factor(degrees, RecallParams()).tolist() == pytest.approx(expected)


def test_what_a_hub_relays_is_damped_once_as_sender_and_not_by_its_read_out():
    fan = [(2, other, 1.0, 0.0) for other in range(100, 298)]
    graph = alone([(1, 2, 1.0, 0.0), (2, 3, 1.0, 0.0), *fan])
    found = energies({1: 1.0}, graph, RecallParams(kernel="hub"))
    assert found[0, 2] == pytest.approx(0.6 * 0.5)
    assert found[0, 3] == pytest.approx(0.6 * 0.6 * 0.5)


def test_a_node_receives_in_both_hops_and_sends_once():
    graph = alone([(1, 2, 1.0, 0.0), (1, 3, 1.0, 0.0), (2, 3, 1.0, 0.0)])
    twice = noisy_or([0.6, 0.36])
    found = energies({1: 1.0}, graph, RecallParams(kernel="hub"))
    assert found == {(0, 2): pytest.approx(twice), (0, 3): pytest.approx(twice)}
    summed = energies({1: 1.0}, graph, RecallParams(kernel="paper"))
    assert summed == {(0, 2): pytest.approx(0.96), (0, 3): pytest.approx(0.96)}


def test_merged_weights_stop_at_one():
    graph = Drawn([(0, 1, 2, 0.9, 0.0), (1, 1, 2, 0.9, 0.0)], {}, np.array([1.0, 0.5]))
    for kernel in ("hub", "paper"):
        assert energies({1: 1.0}, graph, RecallParams(kernel=kernel))[0, 2] == pytest.approx(0.6)


def test_conditional_keeps_the_namespaces_apart():
    graph = Drawn([(0, 1, 2, 0.9, 1.0), (1, 1, 2, 0.9, 1.0)], {(0, 1): 2.0}, np.array([1.0, 0.5]))
    found = energies({1: 1.0}, graph, RecallParams())
    assert found == {(0, 2): pytest.approx(0.25), (1, 2): pytest.approx(0.5)}


nodes = st.integers(1, 8)
weights = st.floats(0, 1, allow_subnormal=False)


@st.composite
def graphs(draw):
    spaces = draw(st.integers(1, 3))
    keys = draw(st.sets(st.tuples(st.integers(0, spaces - 1), nodes, nodes), max_size=24))
    edges = [
        (space, a, b, draw(weights), draw(st.floats(0, 5, allow_subnormal=False)))
        for space, a, b in sorted(keys)
        if a < b
    ]
    used = {(space, node): draw(st.floats(0, 9)) for space in range(spaces) for node in range(1, 9)}
    factors = draw(st.lists(st.sampled_from([1.0, 0.8, 0.5]), min_size=spaces, max_size=spaces))
    return Drawn(edges, used, np.array(factors))


starts = st.dictionaries(nodes, st.floats(0.01, 1), min_size=1, max_size=5)


@given(
    graphs(),
    starts,
    st.sampled_from(["conditional", "hub", "paper"]),
    st.integers(1, 4),
    st.sampled_from([1, 2, 3, 50]),
    st.sampled_from([0.0, 0.5, 2.0]),
)
def test_every_kernel_is_as_by_hand(graph, seeds, kernel, hops, most, prior):
    params = RecallParams(kernel=kernel, hops=hops, hub_degree=most, edge_prior=prior)
    by_hand = conditional_by_hand if kernel == "conditional" else relayed_by_hand
    found, expected = energies(seeds, graph, params), by_hand(seeds, graph, params)
    for key in found.keys() | expected.keys():
        assert found.get(key, 0.0) == pytest.approx(expected.get(key, 0.0), rel=1e-9, abs=1e-12)


@given(graphs(), starts, st.sampled_from(["conditional", "hub"]), st.integers(1, 4))
def test_energy_is_bounded(graph, seeds, kernel, hops):
    found = energies(seeds, graph, RecallParams(kernel=kernel, hops=hops))
    assert all(-1e-12 <= energy <= 1 + 1e-12 for energy in found.values())


@given(graphs(), starts, st.sampled_from(["conditional", "hub", "paper"]), st.randoms())
def test_numbering_and_the_order_of_seeds_do_not_matter(graph, seeds, kernel, random):
    params = RecallParams(kernel=kernel)
    names = list(range(1, 9))
    random.shuffle(names)
    to = dict(zip(range(1, 9), names, strict=True))
    renamed = Drawn(
        [(s, *((to[a], to[b])), w, co) for s, a, b, w, co in graph.edges],
        {(s, to[node]): used for (s, node), used in graph.used.items()},
        graph.factors,
    )
    items = list(seeds.items())
    random.shuffle(items)
    found = energies({to[u]: e for u, e in items}, renamed, params)
    expected = {(s, to[v]): e for (s, v), e in energies(seeds, graph, params).items()}
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("kernel", ["conditional", "hub", "paper"])
def test_the_hops_tell_which_edges_carried_what(kernel):
    graph = alone([(1, 2, 1.0, 1.0), (2, 3, 0.5, 1.0)], {(0, 1): 0.0})
    params = RecallParams(kernel=kernel)
    found = spread(np.array([1]), np.ones(1), graph, params)
    told = [
        (int(s), int(v), round(float(e), 12))
        for hop in found.hops
        for s, v, e in zip(hop.sender, hop.node, hop.energy, strict=True)
        if e > 0
    ]
    second = [] if kernel == "conditional" else [(2, 3, 0.18)]
    assert told == [(1, 2, 0.5 if kernel == "conditional" else 0.6), *second]


@given(
    graphs(),
    starts,
    st.sampled_from(["conditional", "hub", "paper"]),
    st.sets(nodes, max_size=4),
    st.sampled_from([1, 50]),
)
def test_asking_about_some_nodes_gives_them_what_asking_about_all_does(
    graph, seeds, kernel, asked, most
):
    params = RecallParams(kernel=kernel, hub_degree=most)
    starting, values = np.fromiter(seeds, np.int64), np.fromiter(seeds.values(), float)
    of = np.array(sorted(asked - seeds.keys()), np.int64)
    some = read_out(spread(starting, values, graph, params, of), graph, params)
    whole = spread(starting, values, graph, params)
    for found in (some, read_out(whole, graph, params, of)):
        told = dict(
            zip(
                zip(found.namespace.tolist(), found.node.tolist(), strict=True),
                found.energy.tolist(),
                strict=True,
            )
        )
        expected = energies(seeds, graph, params)
        assert told == pytest.approx(
            {key: energy for key, energy in expected.items() if key[1] in of}, rel=1e-12
        )


@pytest.mark.parametrize("kernel", ["hub", "paper"])
def test_a_budget_reads_the_senders_with_most_energy_after_damping(kernel):
    fan = [(2, other, 1.0, 0.0) for other in range(100, 298)]
    graph = alone([(1, 2, 0.9, 0.0), (1, 3, 0.8, 0.0), (3, 4, 1.0, 0.0), *fan])
    whole = energies({1: 1.0}, graph, RecallParams(kernel=kernel, edge_budget=10_000))
    assert whole == energies({1: 1.0}, graph, RecallParams(kernel=kernel))
    params = RecallParams(kernel=kernel, edge_budget=2)
    # Node 2 has more energy, but a hub of 199 neighbors is worth half of it.
    found = spread(np.array([1]), np.ones(1), graph, params)
    assert found.node.tolist() == [2, 3, 4]
    assert found.skipped == 199
    assert energies({1: 1.0}, graph, params)[0, 4] == pytest.approx(0.6 * 0.8 * 0.6)


def test_the_first_sender_is_read_whatever_the_budget():
    graph = alone([(1, node, 1.0, 0.0) for node in range(2, 9)])
    found = energies({1: 1.0}, graph, RecallParams(kernel="hub", edge_budget=1, hops=1))
    assert len(found) == 7
