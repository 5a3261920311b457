"""The wrapped order and the energies make one order (the boost)."""

import math
from collections.abc import Mapping, Sequence

from synapse_retrievers.params import RecallParams
from synapse_retrievers.types import Hit, NodeId


def fuse(
    hits: Sequence[Hit], energies: Mapping[NodeId, float], params: RecallParams
) -> list[float]:
    """What every hit is worth, in the order of the hits; absent nodes are worth `boosted`.

    Fusion "ranks": 1 - r/(2k) + 2 * energy for place r of k. Fusion "scores": score + 0.3 *
    energy as in the seed paper, with 1 - r/k in place of the scores where a hit has no finite one.

    Returns:
        Finite values rounded to 12 digits, so that equal sums are equal on every machine.

    >>> fuse([Hit("a"), Hit("b")], {"b": 0.5}, RecallParams())
    [1.0, 1.75]
    """
    return [
        round(base + boosted(energies.get(hit.id, 0.0) if hit.id is not None else 0.0, params), 12)
        for hit, base in zip(hits, _bases(hits, params), strict=True)
    ]


def boosted(energy: float, params: RecallParams) -> float:
    """What an energy is worth beside the places of the hits."""
    return round(params.boost * energy, 12)


def _bases(hits: Sequence[Hit], params: RecallParams) -> list[float]:
    count = len(hits)
    if params.fusion == "ranks":
        return [1.0 - place / (2 * count) for place in range(count)]
    scores = [float(hit.score) for hit in hits if hit.score is not None]
    if len(scores) == count and all(map(math.isfinite, scores)):
        return scores
    return [1.0 - place / count for place in range(count)]
