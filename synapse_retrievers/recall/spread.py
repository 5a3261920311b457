"""Energy moves over learned edges (spreading activation, Collins and Loftus 1975)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np

from synapse_retrievers.params import Kernel, RecallParams
from synapse_retrievers.types import Floats, Ints


@dataclass(frozen=True, slots=True)
class Frontier:
    """The edges that leave some nodes, as they are now; one row an edge and namespace.

    `namespace` indexes the namespaces read, `sender` the nodes asked for; `neighbor` is a node
    handle. `weight` in [0, 1] and `co` >= 0 are decayed; `used` is the sender's decayed count in
    that namespace; `age_days` counts from the last activation.
    """

    namespace: Ints
    sender: Ints
    neighbor: Ints
    weight: Floats
    co: Floats
    used: Floats
    age_days: Floats


class Graph(Protocol):
    """The learned edges as a kernel sees them."""

    @property
    def factors(self) -> Floats:
        """What each namespace read counts, shape [namespaces]."""
        ...

    def frontier(self, nodes: Ints) -> Frontier:
        """The edges that leave these distinct nodes, in ascending order of the row's numbers."""
        ...

    def degrees(self, nodes: Ints, exact_above: int) -> Ints:
        """How many distinct neighbors each has; a larger number may stand for small ones."""
        ...


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Energy that arrived over single edges in one hop; `sender` and `node` are handles.

    `weight` is what the kernel took the edge for: P(node | sender) or the merged weight.
    """

    namespace: Ints
    sender: Ints
    node: Ints
    energy: Floats
    weight: Floats
    age_days: Floats


@dataclass(frozen=True, slots=True)
class Spread:
    """Energy by namespace and node, rows distinct; `hops` tell over which edges it came.

    The kernels "hub" and "paper" merge the namespaces before they spread: there it is always 0.
    """

    namespace: Ints
    node: Ints
    energy: Floats
    hops: tuple[Arrivals, ...]


Spreading: TypeAlias = Callable[[Ints, Floats, Graph, RecallParams], Spread]


def spread(seeds: Ints, energies: Floats, graph: Graph, params: RecallParams) -> Spread:
    """What reaches other nodes from the seeds, by the kernel of `params`.

    Args:
        seeds: Distinct node handles.
        energies: What each seed starts with, in (0, 1].
        graph: The learned edges.
        params: Kernel and its constants.

    Returns:
        Energy of the nodes that are no seed; in [0, 1] but for kernel "paper".
    """
    return KERNELS[params.kernel](seeds, energies, graph, params)


def hub_factor(degrees: Ints, params: RecallParams) -> Floats:
    """What a node of this many neighbors gives and gets: sqrt(50 / degree) above 50, else 1.

    >>> hub_factor(np.array([50, 200, 5000]), RecallParams())
    array([1. , 0.5, 0.1])
    """
    return np.sqrt(params.hub_degree / np.maximum(degrees, params.hub_degree))


def conditional(seeds: Ints, energies: Floats, graph: Graph, params: RecallParams) -> Spread:
    """One hop of conditional probability, joined by noisy-or, damped at both ends.

        P(v|u)    = co(u, v) / (used(u) + 2)
        spread(v) = (1 - prod over seeds u of (1 - energy(u) * hub(u) * P(v|u))) * hub(v)

    in each namespace by itself (shrinkage as in the replay study, docs/benchmarks.md).
    """
    rows = graph.frontier(seeds)
    keep = ~np.isin(rows.neighbor, seeds)
    sender, node, namespace = rows.sender[keep], rows.neighbor[keep], rows.namespace[keep]
    given = rows.used[keep] + params.edge_prior
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        probability = np.where(given > 0.0, np.minimum(rows.co[keep] / given, 1.0), 0.0)
    damped = energies * hub_factor(graph.degrees(seeds, params.hub_degree), params)
    arrived = Arrivals(
        namespace,
        seeds[sender],
        node,
        damped[sender] * probability,
        probability,
        rows.age_days[keep],
    )
    where, who, energy = _joined(namespace, node, arrived.energy, _noisy_or)
    return Spread(where, who, energy * _read_out(who, graph, params), (arrived,))


def hub(seeds: Ints, energies: Floats, graph: Graph, params: RecallParams) -> Spread:
    """The seed paper's spread made bounded (noisy-or) and damped at both ends."""
    reached = _relay(seeds, energies, graph, params, _noisy_or)
    damped = reached.energy * _read_out(reached.node, graph, params)
    return Spread(reached.namespace, reached.node, damped, reached.hops)


def paper(seeds: Ints, energies: Floats, graph: Graph, params: RecallParams) -> Spread:
    """The seed paper's spread as published: sums, hubs damped as senders only."""
    return _relay(seeds, energies, graph, params, _sum)


KERNELS: dict[Kernel, Spreading] = {"conditional": conditional, "hub": hub, "paper": paper}

_Join: TypeAlias = Callable[[Floats, Ints], Floats]
"""Values and the ascending start of each group -> one value a group."""


def _noisy_or(values: Floats, starts: Ints) -> Floats:
    return np.asarray(1.0 - np.multiply.reduceat(1.0 - np.minimum(values, 1.0), starts))


def _sum(values: Floats, starts: Ints) -> Floats:
    return np.asarray(np.add.reduceat(values, starts))


def _relay(
    seeds: Ints, energies: Floats, graph: Graph, params: RecallParams, join: _Join
) -> Spread:
    """Hop by hop: e(u) * W(u, v) * 0.6 * hub(u); each node sends once, seeds receive nothing."""
    hops: list[Arrivals] = []
    senders, sent = seeds, seeds
    for _ in range(params.hops):
        if not len(senders):
            break
        arrived = _send(senders, energies, seeds, graph, params)
        hops.append(arrived)
        who, energy = _merged_energy(arrived, join)
        is_next = ~np.isin(who, sent) & (energy > 0.0)
        senders, energies = who[is_next], energy[is_next]
        sent = np.concatenate([sent, senders])
    return _total(hops, join)


def _send(
    senders: Ints, energies: Floats, seeds: Ints, graph: Graph, params: RecallParams
) -> Arrivals:
    rows = _merged(graph.frontier(senders), graph.factors)
    keep = ~np.isin(rows.neighbor, seeds)
    damped = energies * hub_factor(graph.degrees(senders, params.hub_degree), params)
    sender, weight = rows.sender[keep], rows.weight[keep]
    return Arrivals(
        rows.namespace[keep],
        senders[sender],
        rows.neighbor[keep],
        damped[sender] * weight * params.attenuation,
        weight,
        rows.age_days[keep],
    )


def _merged(rows: Frontier, factors: Floats) -> Frontier:
    """One row an edge: W = min(1, sum of factor * w); it stands for the strongest namespace."""
    order = np.lexsort((-factors[rows.namespace] * rows.weight, rows.neighbor, rows.sender))
    sender, neighbor = rows.sender[order], rows.neighbor[order]
    starts = _starts(sender, neighbor)
    share = (factors[rows.namespace] * rows.weight)[order]
    weight = np.minimum(1.0, np.add.reduceat(share, starts)) if len(starts) else share
    first = order[starts]
    return Frontier(
        rows.namespace[first],
        sender[starts],
        neighbor[starts],
        weight,
        rows.co[first],
        rows.used[first],
        rows.age_days[first],
    )


def _merged_energy(arrived: Arrivals, join: _Join) -> tuple[Ints, Floats]:
    _, node, energy = _joined(np.zeros_like(arrived.node), arrived.node, arrived.energy, join)
    return node, energy


def _total(hops: list[Arrivals], join: _Join) -> Spread:
    """The energy of every node over all hops, hop by hop."""
    reached = [_merged_energy(arrived, join) for arrived in hops]
    node = np.concatenate([np.zeros(0, np.int64), *(nodes for nodes, _ in reached)])
    energy = np.concatenate([np.zeros(0), *(energies for _, energies in reached)])
    namespace, node, energy = _joined(np.zeros_like(node), node, energy, join)
    return Spread(namespace, node, energy, tuple(hops))


def _joined(namespace: Ints, node: Ints, energy: Floats, join: _Join) -> tuple[Ints, Ints, Floats]:
    """One row a namespace and node, in ascending order; within a row in the given order."""
    order = np.lexsort((node, namespace))
    namespace, node, energy = namespace[order], node[order], energy[order]
    starts = _starts(namespace, node)
    return namespace[starts], node[starts], join(energy, starts) if len(starts) else energy


def _starts(*columns: Ints) -> Ints:
    """Where a new group begins in columns that are sorted together."""
    if not len(columns[0]):
        return np.zeros(0, np.int64)
    is_new = np.zeros(len(columns[0]), dtype=bool)
    is_new[0] = True
    for column in columns:
        is_new[1:] |= column[1:] != column[:-1]
    return np.flatnonzero(is_new)


def _read_out(nodes: Ints, graph: Graph, params: RecallParams) -> Floats:
    return hub_factor(graph.degrees(nodes, params.hub_degree), params)
