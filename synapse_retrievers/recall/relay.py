"""The kernels "hub" and "paper": energy is handed on, hop by hop."""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from synapse_retrievers.params import RecallParams
from synapse_retrievers.recall.graph import (
    Arrivals,
    Frontier,
    Graph,
    Spread,
    damping,
    found_in,
    hub_factor,
)
from synapse_retrievers.types import Floats, Ints

_DENSE = 32


def hub(
    seeds: Ints, energies: Floats, graph: Graph, params: RecallParams, of: Ints | None
) -> Spread:
    """The seed paper's spread made bounded (noisy-or) and damped at both ends."""
    return _relay(seeds, energies, graph, params, of, _noisy_or)


def paper(
    seeds: Ints, energies: Floats, graph: Graph, params: RecallParams, of: Ints | None
) -> Spread:
    """The seed paper's spread as published: sums, hubs damped as senders only."""
    return _relay(seeds, energies, graph, params, of, _sum)


_Join: TypeAlias = Callable[[Ints, Floats, int], Floats]
"""Groups by number, a value each, how many groups -> one value a group."""


def _noisy_or(groups: Ints, values: Floats, count: int) -> Floats:
    with np.errstate(divide="ignore"):
        missed = np.log1p(-np.minimum(values, 1.0))
    return np.asarray(-np.expm1(np.bincount(groups, missed, count)))


def _sum(groups: Ints, values: Floats, count: int) -> Floats:
    return np.bincount(groups, values, count).astype(np.float64)


def _relay(
    seeds: Ints,
    energies: Floats,
    graph: Graph,
    params: RecallParams,
    of: Ints | None,
    join: _Join,
) -> Spread:
    """Hop by hop: e(u) * W(u, v) * 0.6 * hub(u); each node sends once, seeds receive nothing."""
    hops: list[Arrivals] = []
    reached: list[tuple[Ints, Floats]] = []
    senders, sent, skipped = seeds, np.sort(seeds), 0
    for _ in range(params.hops):
        if not len(senders):
            break
        if params.edge_budget is not None:
            senders, energies, left = _affordable(senders, energies, graph, params)
            skipped += left
        arrived = _send(senders, energies, seeds, graph, params)
        hops.append(arrived)
        who, energy = _joined(arrived.node, arrived.energy, join)
        reached.append((who, energy))
        is_next = ~found_in(sent, who)[0] & (energy > 0.0)
        senders, energies = who[is_next], energy[is_next]
        sent = np.union1d(sent, senders)
    node = np.concatenate([np.zeros(0, np.int64), *(nodes for nodes, _ in reached)])
    node, energy = _joined(node, np.concatenate([np.zeros(0), *(e for _, e in reached)]), join)
    if of is not None:
        rows = found_in(of, node)[0]
        node, energy = node[rows], energy[rows]
    return Spread(np.zeros_like(node), node, energy, tuple(hops), skipped)


def _affordable(
    senders: Ints, energies: Floats, graph: Graph, params: RecallParams
) -> tuple[Ints, Floats, int]:
    """The senders whose edges fit into the budget, most energy first, and how many do not fit.

    Energy counts after the hub's damping: of two senders the one of fewer edges tells more by
    each. The first is always read.
    """
    degrees = graph.degrees(senders, params.hub_degree)
    order = np.argsort(-energies * hub_factor(degrees, params), kind="stable")
    total = np.cumsum(degrees[order])
    most = max(1, int(np.count_nonzero(total <= (params.edge_budget or 0))))
    kept = np.sort(order[:most])
    return senders[kept], energies[kept], int(total[-1] - total[most - 1])


def _send(
    senders: Ints, energies: Floats, seeds: Ints, graph: Graph, params: RecallParams
) -> Arrivals:
    rows = graph.frontier(senders)
    damped = energies * damping(senders, graph, params)
    rows = rows.of(np.flatnonzero(~found_in(np.sort(seeds), rows.neighbor)[0]))
    weight = graph.factors[rows.namespace] * rows.weight
    if len(rows.namespace) and (rows.namespace != rows.namespace[0]).any():
        rows, weight = _merged(rows, weight)
    weight = np.minimum(1.0, weight)
    return Arrivals(
        rows.namespace,
        senders[rows.sender],
        rows.neighbor,
        damped[rows.sender] * weight * params.attenuation,
        weight,
        rows.activated_at,
    )


def _merged(rows: Frontier, weight: Floats) -> tuple[Frontier, Floats]:
    """One row an edge: the sum of its weights; it stands for the strongest namespace."""
    order = np.lexsort((-weight, rows.neighbor, rows.sender))
    sender, neighbor = rows.sender[order], rows.neighbor[order]
    is_new = np.ones(len(order), dtype=np.bool_)
    is_new[1:] = (sender[1:] != sender[:-1]) | (neighbor[1:] != neighbor[:-1])
    starts = np.flatnonzero(is_new)
    return rows.of(order[starts]), np.add.reduceat(weight[order], starts)


def _joined(node: Ints, energy: Floats, join: _Join) -> tuple[Ints, Floats]:
    """One row a node, in ascending order."""
    if not len(node):
        return node, energy
    # Counting into every number between is quicker than sorting, unless they lie far apart.
    first = int(node.min())
    span = int(node.max()) - first + 1
    if span <= _DENSE * len(node):
        groups = node - first
        found = np.flatnonzero(np.bincount(groups, minlength=span))
        return found + first, join(groups, energy, span)[found]
    found, groups = np.unique(node, return_inverse=True)
    return found, join(groups, energy, len(found))
