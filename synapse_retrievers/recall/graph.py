"""The learned edges as a kernel sees them, and what a kernel tells of its spread."""

from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np

from synapse_retrievers.params import RecallParams
from synapse_retrievers.types import Bools, Floats, Ints


class Frontier(Protocol):
    """The edges that leave some nodes, as they are now; one row an edge and namespace.

    What decays is worked out when it is asked for.
    """

    @property
    def namespace(self) -> Ints:
        """Place of the namespace in the view."""
        ...

    @property
    def sender(self) -> Ints:
        """Place among the nodes asked for."""
        ...

    @property
    def neighbor(self) -> Ints:
        """Handle of the node at the other end."""
        ...

    @property
    def weight(self) -> Floats:
        """Decayed, in [0, 1]."""
        ...

    @property
    def co(self) -> Floats:
        """Decayed co-activation mass, >= 0."""
        ...

    @property
    def used(self) -> Floats:
        """The sender's decayed count of uses in that namespace."""
        ...

    @property
    def activated_at(self) -> Floats:
        """Unix seconds of the last reinforcement."""
        ...

    def of(self, rows: Ints) -> Self:
        """These rows alone."""
        ...


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
    activated_at: Floats


@dataclass(frozen=True, slots=True)
class Spread:
    """Energy by namespace and node, rows distinct; `hops` tell over which edges it came.

    The kernels "hub" and "paper" merge the namespaces before they spread: there it is always 0.
    `skipped` counts the edges that `edge_budget` left unread.
    """

    namespace: Ints
    node: Ints
    energy: Floats
    hops: tuple[Arrivals, ...]
    skipped: int = 0


def hub_factor(degrees: Ints, params: RecallParams) -> Floats:
    """What a node of this many neighbors gives and gets: sqrt(50 / degree) above 50, else 1.

    >>> hub_factor(np.array([50, 200, 5000]), RecallParams())
    array([1. , 0.5, 0.1])
    """
    return np.sqrt(params.hub_degree / np.maximum(degrees, params.hub_degree))


def damping(nodes: Ints, graph: Graph, params: RecallParams) -> Floats:
    """The hub factor of each of these nodes."""
    return hub_factor(graph.degrees(nodes, params.hub_degree), params)


def found_in(nodes: Ints, asked: Ints) -> tuple[Bools, Ints]:
    """Which of the asked nodes are among the ascending ones, and at which place."""
    if not len(nodes):
        return np.zeros(len(asked), dtype=np.bool_), np.zeros(len(asked), np.int64)
    place = np.minimum(nodes.searchsorted(asked), len(nodes) - 1)
    return nodes[place] == asked, place
