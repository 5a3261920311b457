"""All energy that reached a node: over edges and from episodes, in every namespace read."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from synapse_retrievers.params import RecallParams
from synapse_retrievers.recall.cue import Cue, confidence
from synapse_retrievers.recall.spread import Spread
from synapse_retrievers.types import Floats, Ints, Uses


@dataclass(frozen=True, slots=True)
class Energies:
    """Distinct node handles, ascending, the energy > 0 of each and the confidence in its cue."""

    node: Ints
    energy: Floats
    confidence: Floats


def energize(
    spread: Spread | None,
    cues: Sequence[tuple[Cue, Uses]],
    factors: Floats,
    params: RecallParams,
) -> Energies:
    """Every node's energy over all namespaces read.

        e = min(1, sum over the namespaces of factor * e_ns)         rounded to 12 digits

    What the cue gives a node counts by the `recall.cue.confidence` in it, whose support adds up
    over the namespaces in the same way, without a bound. The kernels "hub" and "paper" merge the
    namespaces before they spread: there the spread is added once. Kernel "paper" has no bound.

    Args:
        spread: Over edges; None: none was asked for.
        cues: What the episodes of each namespace give, in the order of `factors`; empty: none.
        factors: What each namespace counts.
        params: The shares.
    """
    told = [_Told.of(cue, uses) for cue, uses in cues] or [_Told()] * len(factors)
    cued, support = _summed(
        np.concatenate([one.node for one in told]),
        np.concatenate([factor * one.support for factor, one in zip(factors, told, strict=True)]),
    )
    episodes = sum(cue.of for cue, _ in cues)
    sure = confidence(support, episodes, params)
    parts = []
    for index, (factor, one) in enumerate(zip(factors, told, strict=True)):
        here = None if params.kernel != "conditional" else _spread_in(spread, index)
        weighed = replace(one, cue=one.cue * sure[np.searchsorted(cued, one.node)])
        node, energy = _energy_in(here, weighed, params)
        parts.append((node, factor * energy))
    if params.kernel != "conditional":
        parts.append(_energy_in(_spread_in(spread, 0), _Told(), params))
    node, total = _summed(
        np.concatenate([part for part, _ in parts]), np.concatenate([part for _, part in parts])
    )
    if params.kernel != "paper":
        total = np.minimum(1.0, total)
    total = np.round(total, 12)
    node, total = node[total > 0.0], total[total > 0.0]
    known = np.zeros(len(node))
    is_cued = np.isin(node, cued)
    known[is_cued] = support[np.searchsorted(cued, node[is_cued])]
    return Energies(node, total, confidence(known, episodes, params))


@dataclass(frozen=True, slots=True)
class _Told:
    """What one namespace's cue gives, one row a use."""

    node: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    cue: Floats = field(default_factory=lambda: np.zeros(0))
    support: Floats = field(default_factory=lambda: np.zeros(0))
    weight: float = 0.0

    @classmethod
    def of(cls, cue: Cue, uses: Uses) -> Self:
        return cls(uses.node[cue.use], cue.energy, cue.support, cue.weight)


def energy_of(spread: Floats, cue: Floats, cue_weight: float, params: RecallParams) -> Floats:
    """The energy of nodes in one namespace.

        e = min(1, 3 * cue / (cue_weight + 0.2) + spread)

    The posterior form: a weak memory stays weak (docs/benchmarks.md, "garbage use"). Kernel
    "paper" sums without the bound.

    Args:
        spread: What reached each node over edges.
        cue: What the speaking episodes gave it, by the confidence in it.
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
    spread: tuple[Ints, Floats] | None, told: _Told, params: RecallParams
) -> tuple[Ints, Floats]:
    """Nodes and energies of one namespace."""
    spread_node, spread_energy = spread or (np.zeros(0, np.int64), np.zeros(0))
    nodes = np.concatenate([spread_node, told.node])
    node, spreads = _summed(nodes, np.concatenate([spread_energy, np.zeros(len(told.node))]))
    _, cues = _summed(nodes, np.concatenate([np.zeros(len(spread_node)), told.cue]))
    return node, energy_of(spreads, cues, told.weight, params)


def _summed(nodes: Ints, values: Floats) -> tuple[Ints, Floats]:
    node, row = np.unique(nodes, return_inverse=True)
    return node, np.bincount(row, values, len(node)).astype(np.float64)
