"""All energy that reached a node: over edges and from episodes, in every namespace read."""

import math
from collections import defaultdict
from collections.abc import Collection, Container, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from synapse_retrievers.params import RecallParams
from synapse_retrievers.recall.cue import Cue, Speaker, confidence, least_likeness
from synapse_retrievers.recall.graph import Spread
from synapse_retrievers.types import Floats, Ints


class Said(NamedTuple):
    """What one episode gave a node: w * min(1, s / 0.4) / sqrt(n); `chunk` is a handle or -1."""

    gain: float
    namespace: int
    speaker: Speaker
    chunk: int


@dataclass(frozen=True, slots=True)
class Told:
    """What past questions say of the nodes that were used for them.

    Attributes:
        cues: What the episodes of each namespace say; empty: nobody was asked.
        support: Node -> how sure they are of it, over all namespaces, without a bound.
        least: How like the question a single past one must be.
    """

    cues: Sequence[Cue]
    support: Mapping[int, float]
    least: float

    def confidence(self, node: int, params: RecallParams) -> float:
        """In the node's cue, in [0, 1]; 1: it may come in."""
        return confidence(self.support.get(node, 0.0), self.least, params)

    def sure(self, params: RecallParams) -> list[int]:
        """The nodes that may come in."""
        # Rounding may lift what is a little less.
        bound = (self.least * (1.0 - 1e-9)) ** params.cue_power
        return [
            node
            for node, support in self.support.items()
            if support >= bound and confidence(support, self.least, params) == 1.0
        ]

    def of(self, nodes: Container[int], params: RecallParams) -> dict[int, list[Said]]:
        """What each episode said of each of these nodes."""
        whole = params.accepted_strength
        found: dict[int, list[Said]] = {}
        for place, cue in enumerate(self.cues):
            for speaker in cue.speakers:
                used = cue.uses.nodes[speaker.row]
                for node, strength, chunk in used:
                    if node in nodes and strength > 0.0:
                        gain = speaker.weight * min(1.0, strength / whole) / math.sqrt(len(used))
                        found.setdefault(node, []).append(Said(gain, place, speaker, chunk))
        return found


def tell(cues: Sequence[Cue], factors: Sequence[float], params: RecallParams) -> Told:
    """How sure the cues are of each node.

        support(v) = sum over the namespaces of factor * sum over episodes of w * min(1, s / 0.4)

    Args:
        cues: What the episodes of each namespace give, in the order of `factors`; empty: none.
        factors: What each namespace counts.
        params: How sure one must be, and from which strength a use counts whole.
    """
    support: defaultdict[int, float] = defaultdict(float)
    whole = params.accepted_strength
    for factor, cue in zip(factors, cues, strict=False):
        for speaker in cue.speakers:
            weight = factor * speaker.weight
            for node, strength, _ in cue.uses.nodes[speaker.row]:
                if strength > 0.0:
                    support[node] += weight if strength >= whole else weight * (strength / whole)
    return Told(cues, support, least_likeness(sum(cue.of for cue in cues), params))


def energize(
    spread: Spread | None,
    told: Told,
    said: Mapping[int, Sequence[Said]],
    factors: Sequence[float],
    nodes: Collection[int],
    params: RecallParams,
) -> dict[int, float]:
    """The energy of these nodes over all namespaces read, of those that have any.

        e = min(1, sum over the namespaces of factor * e_ns)         rounded to 12 digits

    What the cue gives a node counts by the confidence in it. The kernels "hub" and "paper" merge
    the namespaces before they spread: there the spread is added once. Kernel "paper" has no bound.

    Args:
        spread: Over edges, read out; None: none was asked for.
        told: Out of `tell`.
        said: Of these nodes, out of `told.of`.
        factors: What each namespace counts.
        nodes: Distinct handles.
        params: The shares.
    """
    arrived = _arrived(spread)
    is_merged = params.kernel != "conditional"
    energies = {}
    for node in nodes:
        if node not in said and node not in arrived:
            continue
        gained, over_edges = [0.0] * len(factors), arrived.get(node, {})
        for one in said.get(node, ()):
            gained[one.namespace] += one.gain
        sure = told.confidence(node, params) if node in said else 0.0
        total = energy_of(over_edges.get(0, 0.0), 0.0, 0.0, params) if is_merged else 0.0
        for place, factor in enumerate(factors):
            energy = 0.0 if is_merged else over_edges.get(place, 0.0)
            weight = told.cues[place].weight if gained[place] else 0.0
            total += factor * energy_of(energy, sure * gained[place], weight, params)
        total = round(total if params.kernel == "paper" else min(1.0, total), 12)
        if total > 0.0:
            energies[node] = total
    return energies


def energy_of(spread: float, cue: float, cue_weight: float, params: RecallParams) -> float:
    """The energy of a node in one namespace.

        e = min(1, 3 * cue / (cue_weight + 0.2) + spread)

    The posterior form: a weak memory stays weak (docs/benchmarks.md, "garbage use"). Kernel
    "paper" sums without the bound.

    Args:
        spread: What reached the node over edges.
        cue: What the speaking episodes gave it, by the confidence in it.
        cue_weight: Sum of the weights of the speaking episodes.
        params: The shares.

    >>> round(energy_of(0.2, 0.1, 0.3, RecallParams()), 12)
    0.8
    """
    told = params.cue_weight * cue / (cue_weight + params.cue_prior)
    energy = told + params.spread_weight * spread
    return energy if params.kernel == "paper" else min(1.0, energy)


def bounds(spread: Spread | None, factors: Floats, params: RecallParams) -> tuple[Ints, Floats]:
    """Nodes that anything reached over edges, ascending, and at most what they have of it."""
    if spread is None:
        return np.zeros(0, np.int64), np.zeros(0)
    node, row = np.unique(spread.node, return_inverse=True)
    energy = params.spread_weight * spread.energy
    if params.kernel == "conditional":
        energy = factors[spread.namespace] * np.minimum(1.0, energy)
    return node, np.bincount(row, energy, len(node)).astype(np.float64)


def _arrived(spread: Spread | None) -> dict[int, dict[int, float]]:
    """Node -> place of the namespace -> energy."""
    found: dict[int, dict[int, float]] = {}
    if spread is not None:
        columns = (spread.namespace.tolist(), spread.node.tolist(), spread.energy.tolist())
        for place, node, energy in zip(*columns, strict=True):
            found.setdefault(node, {})[place] = energy
    return found
