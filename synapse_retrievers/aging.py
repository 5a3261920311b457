"""A reader as the kernels see it: weights and counts as they are now."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from synapse_retrievers.learning.decay import count_at, weight_at
from synapse_retrievers.params import LearningParams
from synapse_retrievers.recall.graph import found_in
from synapse_retrievers.stores.base import Reader
from synapse_retrievers.types import Bools, EdgeStates, Floats, Headers, Ints, Namespace


@dataclass(frozen=True, slots=True)
class Moment:
    """When a view is looked at, and how what it holds ages."""

    namespaces: Sequence[Namespace]
    now: float
    params: LearningParams


@dataclass(frozen=True, slots=True)
class AgedFrontier:
    """Rows as stored; each measure is worked out for the rows that are left when it is asked."""

    namespace: Ints
    sender: Ints
    neighbor: Ints
    state: EdgeStates
    headers: Headers
    at: Moment

    @property
    def weight(self) -> Floats:
        """Decayed, in [0, 1]."""
        weight = np.zeros(len(self.state))
        for place, name in enumerate(self.at.namespaces):
            here = self.namespace == place
            if here.all():
                return weight_at(self.state, self.at.now, name, self.at.params)
            weight[here] = weight_at(self.state[here], self.at.now, name, self.at.params)
        return weight

    @property
    def co(self) -> Floats:
        """Decayed co-activation mass, >= 0."""
        state = self.state
        return count_at(state["co"], state["activated_at"], self.at.now, self.at.params)

    @property
    def used(self) -> Floats:
        """The sender's decayed count of uses in that namespace."""
        used = count_at(self.headers.used, self.headers.used_at, self.at.now, self.at.params)
        return used[self.namespace, self.sender]

    @property
    def activated_at(self) -> Floats:
        """Unix seconds of the last reinforcement."""
        return np.asarray(self.state["activated_at"])

    def of(self, rows: Ints) -> "AgedFrontier":
        """These rows alone."""
        return AgedFrontier(
            self.namespace[rows],
            self.sender[rows],
            self.neighbor[rows],
            self.state[rows],
            self.headers,
            self.at,
        )


class AgedGraph:
    """The edges of one view at one moment; what was read last is not read again."""

    def __init__(
        self, reader: Reader, factors: Floats, at: Moment, look_at_clock: Callable[[], None]
    ) -> None:
        self.factors = factors
        self._reader = reader
        self._at = at
        self._look_at_clock = look_at_clock
        self._frontier: tuple[Ints, AgedFrontier] | None = None
        self._looked_up: tuple[Ints, Headers] | None = None

    def frontier(self, nodes: Ints) -> AgedFrontier:
        """The edges that leave these distinct nodes."""
        if self._frontier is None or self._frontier[0] is not nodes:
            self._look_at_clock()
            rows = self._reader.neighbors(nodes)
            aged = AgedFrontier(
                rows.namespace, rows.sender, rows.neighbor, rows.state, rows.headers, self._at
            )
            self._frontier = (nodes, aged)
        return self._frontier[1]

    def degrees(self, nodes: Ints, exact_above: int) -> Ints:
        """How many distinct neighbors each has; up to `exact_above`, a sum may stand for it."""
        if self._frontier is not None and self._frontier[0] is nodes:
            degree = self._frontier[1].headers.degree
        else:
            headers, place = self._headers(nodes)
            degree = headers.degree[:, place]
        sums: Ints = degree.sum(axis=0)
        if len(degree) == 1:
            return sums
        # Only what several namespaces share can be counted twice.
        unsure = np.flatnonzero((sums > exact_above) & (np.count_nonzero(degree, axis=0) > 1))
        if len(unsure):
            self._look_at_clock()
            edges = self._reader.neighbors(nodes[unsure])
            distinct = np.unique(np.stack([edges.sender, edges.neighbor]), axis=1)
            sums[unsure] = np.bincount(distinct[0], minlength=len(unsure))
        return sums

    def _headers(self, nodes: Ints) -> tuple[Headers, Ints]:
        """What is counted of some nodes, these among them, and their places there."""
        if self._looked_up is not None:
            is_known, place = found_in(self._looked_up[0], nodes)
            if is_known.all():
                return self._looked_up[1], place
        self._look_at_clock()
        return self._reader.headers(nodes), np.arange(len(nodes))

    def look_up(self, nodes: Ints) -> None:
        """Read what is counted of these nodes (ascending handles) once for all."""
        self._looked_up = (nodes, self._reader.headers(nodes))

    def is_gone(self, nodes: Ints) -> Bools:
        """Which are marked gone in a namespace that is read."""
        headers, place = self._headers(nodes)
        gone_at = headers.gone_at[:, place]
        return np.asarray((gone_at == gone_at).any(axis=0))  # noqa: PLR0124 - NaN: it is there
