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
    """Distinct node handles, ascending, the energy > 0 of each and its support by episodes."""

    node: Ints
    energy: Floats
    support: Floats


def energize(
    spread: Spread | None,
    cues: Sequence[tuple[Cue, Uses]],
    factors: Floats,
    params: RecallParams,
) -> Energies:
    """Every node's energy over all namespaces read.

        e = min(1, sum over the namespaces of factor * e_ns)         rounded to 12 digits

    The support of a node adds up over the namespaces in the same way, without a bound.
    The kernels "hub" and "paper" merge the namespaces before they spread: there the spread is
    added once. Kernel "paper" has no bound.

    Args:
        spread: Over edges; None: none was asked for.
        cues: What the episodes of each namespace give, in the order of `factors`; empty: none.
        factors: What each namespace counts.
        params: The shares.
    """
    is_merged = params.kernel != "conditional"
    parts = [_nothing()]
    for index, factor in enumerate(factors):
        told = cues[index] if cues else None
        here = None if is_merged else _spread_in(spread, index)
        part = _energy_in(here, told, params)
        parts.append(Energies(part.node, factor * part.energy, factor * part.support))
    if is_merged:
        parts.append(_energy_in(_spread_in(spread, 0), None, params))
    nodes = np.concatenate([part.node for part in parts])
    node, total = _summed(nodes, np.concatenate([part.energy for part in parts]))
    _, support = _summed(nodes, np.concatenate([part.support for part in parts]))
    if params.kernel != "paper":
        total = np.minimum(1.0, total)
    total = np.round(total, 12)
    is_reached = total > 0.0
    return Energies(node[is_reached], total[is_reached], np.round(support[is_reached], 12))


def energy_of(spread: Floats, cue: Floats, cue_weight: float, params: RecallParams) -> Floats:
    """The energy of nodes in one namespace.

        e = min(1, 3 * cue / (cue_weight + 0.2) + spread)

    The posterior form: a weak memory stays weak (docs/benchmarks.md, "garbage use"). Kernel
    "paper" sums without the bound.

    Args:
        spread: What reached each node over edges.
        cue: What the speaking episodes gave it.
        cue_weight: Sum of the weights of the speaking episodes.
        params: The shares.

    >>> energy_of(np.array([0.2]), np.array([0.1]), 0.3, RecallParams()).round(12)
    array([0.8])
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
) -> Energies:
    """Nodes and energies of one namespace."""
    spread_node, spread_energy = spread or (np.zeros(0, np.int64), np.zeros(0))
    by_cue, cue_weight = _nothing(), 0.0
    if told is not None:
        cue, uses = told
        by_cue, cue_weight = Energies(uses.node[cue.use], cue.energy, cue.support), cue.weight
    nodes = np.concatenate([spread_node, by_cue.node])
    unspread, untold = np.zeros(len(by_cue.node)), np.zeros(len(spread_node))
    node, spreads = _summed(nodes, np.concatenate([spread_energy, unspread]))
    _, cues = _summed(nodes, np.concatenate([untold, by_cue.energy]))
    _, support = _summed(nodes, np.concatenate([untold, by_cue.support]))
    return Energies(node, energy_of(spreads, cues, cue_weight, params), support)


def _nothing() -> Energies:
    return Energies(np.zeros(0, np.int64), np.zeros(0), np.zeros(0))


def _summed(nodes: Ints, values: Floats) -> tuple[Ints, Floats]:
    node, row = np.unique(nodes, return_inverse=True)
    return node, np.bincount(row, values, len(node)).astype(np.float64)
