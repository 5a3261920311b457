"""Energy moves over learned edges (spreading activation, Collins and Loftus 1975)."""

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

from synapse_retrievers.params import Kernel, RecallParams
from synapse_retrievers.recall.conditional import conditional
from synapse_retrievers.recall.graph import Graph, Spread, damping, found_in
from synapse_retrievers.recall.relay import hub, paper
from synapse_retrievers.types import Floats, Ints

Spreading: TypeAlias = Callable[[Ints, Floats, Graph, RecallParams, Ints | None], Spread]

KERNELS: dict[Kernel, Spreading] = {"conditional": conditional, "hub": hub, "paper": paper}


def spread(
    seeds: Ints, energies: Floats, graph: Graph, params: RecallParams, of: Ints | None = None
) -> Spread:
    """What arrives at other nodes from the seeds, by the kernel of `params`; then `read_out`.

    Args:
        seeds: Distinct node handles.
        energies: What each seed starts with, in (0, 1].
        graph: The learned edges.
        params: Kernel and its constants.
        of: Only these nodes (ascending handles, no seeds) are asked about; None: all.

    Returns:
        Energy of the nodes that are no seed; in [0, 1] but for kernel "paper".
    """
    return KERNELS[params.kernel](seeds, energies, graph, params, of)


def read_out(arrived: Spread, graph: Graph, params: RecallParams, of: Ints | None = None) -> Spread:
    """The energy of these nodes (ascending handles; None: all): a hub is damped once more.

    Kernel "paper" damps hubs as senders only. A node's own damping never raises its energy, so
    what arrived is a bound for it.
    """
    if of is not None:
        rows = found_in(of, arrived.node)[0].nonzero()[0]
        arrived = replace(
            arrived,
            namespace=arrived.namespace[rows],
            node=arrived.node[rows],
            energy=arrived.energy[rows],
        )
    if params.kernel == "paper" or not len(arrived.node):
        return arrived
    return replace(arrived, energy=arrived.energy * damping(arrived.node, graph, params))
