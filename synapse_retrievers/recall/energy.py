"""All energy that reached a node: over edges and from episodes, in every namespace read."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from synapse_retrievers.params import RecallParams
from synapse_retrievers.recall.cue import Cue
from synapse_retrievers.recall.spread import Spread
from synapse_retrievers.types import Floats, Ints, Uses


@dataclass(frozen=True, slots=True)
class Energies:
    """Distinct node handles, ascending, and the energy > 0 of each."""

    node: Ints
    energy: Floats


def energize(
    spread: Spread | None,
    cues: Sequence[tuple[Cue, Uses]],
    factors: Floats,
    params: RecallParams,
) -> Energies:
    """Every node's energy over all namespaces read.

        e = min(1, sum over the namespaces of factor * e_ns)         rounded to 12 digits

    The kernels "hub" and "paper" merge the namespaces before they spread: there the spread is
    added once. Kernel "paper" has no bound.

    Args:
        spread: Over edges; None: none was asked for.
        cues: What the episodes of each namespace give, in the order of `factors`; empty: none.
        factors: What each namespace counts.
        params: The shares.
    """
    is_merged = params.kernel != "conditional"
    nodes, energies = [np.zeros(0, np.int64)], [np.zeros(0)]
    for index, factor in enumerate(factors):
        told = cues[index] if cues else None
        here = None if is_merged else _spread_in(spread, index)
        node, energy = _energy_in(here, told, params)
        nodes.append(node)
        energies.append(factor * energy)
    if is_merged:
        node, energy = _energy_in(_spread_in(spread, 0), None, params)
        nodes.append(node)
        energies.append(energy)
    node, total = _summed(np.concatenate(nodes), np.concatenate(energies))
    if params.kernel != "paper":
        total = np.minimum(1.0, total)
    total = np.round(total, 12)
    return Energies(node[total > 0.0], total[total > 0.0])


def energy_of(spread: Floats, cue: Floats, cue_weight: float, params: RecallParams) -> Floats:
    """The energy of nodes in one namespace.

        e = min(1, 3 * cue / (cue_weight + 1) + 0.5 * spread)

    The posterior form: a weak memory stays weak (docs/benchmarks.md, "garbage use"). Kernel
    "paper" sums without the bound.

    Args:
        spread: What reached each node over edges.
        cue: What the speaking episodes gave it.
        cue_weight: Sum of the similarities of the speaking episodes.
        params: The shares.

    >>> energy_of(np.array([0.2]), np.array([0.5]), 1.0, RecallParams()).round(12)
    array([0.85])
    """
    told = params.cue_weight * cue / (cue_weight + params.cue_prior)
    energy = told + params.spread_weight * spread
    return energy if params.kernel == "paper" else np.minimum(1.0, energy)


def _spread_in(spread: Spread | None, index: int) -> tuple[Ints, Floats] | None:
    if spread is None:
        return None
    here = spread.namespace == index
    return spread.node[here], spread.energy[here]


def _energy_in(
    spread: tuple[Ints, Floats] | None, told: tuple[Cue, Uses] | None, params: RecallParams
) -> tuple[Ints, Floats]:
    """Nodes and energies of one namespace."""
    spread_node, spread_energy = spread or (np.zeros(0, np.int64), np.zeros(0))
    if told is None:
        cue_node, cue_energy, cue_weight = np.zeros(0, np.int64), np.zeros(0), 0.0
    else:
        cue_node, cue_energy = told[1].node[told[0].use], told[0].energy
        cue_weight = told[0].weight
    nodes = np.concatenate([spread_node, cue_node])
    node, spreads = _summed(nodes, np.concatenate([spread_energy, np.zeros(len(cue_node))]))
    _, cues = _summed(nodes, np.concatenate([np.zeros(len(spread_node)), cue_energy]))
    return node, energy_of(spreads, cues, cue_weight, params)


def _summed(nodes: Ints, values: Floats) -> tuple[Ints, Floats]:
    node, row = np.unique(nodes, return_inverse=True)
    return node, np.bincount(row, values, len(node)).astype(np.float64)
