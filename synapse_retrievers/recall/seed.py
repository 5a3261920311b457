"""Which nodes start with energy, and with how much."""

from collections.abc import Sequence

from synapse_retrievers.params import RecallParams
from synapse_retrievers.types import Hit, NodeId


def seed(hits: Sequence[Hit], used: Sequence[NodeId], params: RecallParams) -> dict[NodeId, float]:
    """The leading distinct nodes of the hits, and the nodes already used in this run.

    Kernel "conditional": a hit at place r of k starts with 1 - r/k, at its first place. Kernels
    "hub" and "paper": every seed starts with 1. A node used in this run starts with 1 always.

    Args:
        hits: As the wrapped retriever returned them; hits without an id keep their place.
        used: Nodes that the running run has used already.
        params: How many seeds, which kernel.

    Returns:
        Node -> energy in (0, 1], in the order of the hits, then of `used`.

    >>> seed([Hit("a"), Hit(None), Hit("a"), Hit("b")], ["c"], RecallParams())
    {'a': 1.0, 'b': 0.25, 'c': 1.0}
    """
    energies: dict[NodeId, float] = {}
    for place, hit in enumerate(hits):
        if len(energies) == params.seed_count:
            break
        if hit.id is not None and hit.id not in energies:
            is_graded = params.kernel == "conditional"
            energies[hit.id] = 1.0 - place / len(hits) if is_graded else 1.0
    return energies | dict.fromkeys(used, 1.0)
