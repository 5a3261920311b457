"""Which learned things gave a node its energy, by name."""

from collections.abc import Collection, Iterable, Sequence

import numpy as np

from synapse_retrievers.choosing import Choice, Reach
from synapse_retrievers.params import DAY, RecallParams
from synapse_retrievers.recall.energy import Said
from synapse_retrievers.recall.explain import Carrier
from synapse_retrievers.recall.graph import Arrivals, found_in
from synapse_retrievers.stores.base import Reader
from synapse_retrievers.types import NodeId

_TOLD = 3


class Carriers:
    """What one recall found, to be asked for single nodes while its view is open."""

    def __init__(  # noqa: PLR0913, PLR0917 - all that was found
        self,
        reader: Reader,
        factors: Sequence[float],
        reach: Reach,
        choice: Choice,
        handles: Collection[int],
        params: RecallParams,
        now: float,
    ) -> None:
        self._reader = reader
        self._factors = factors
        self._told = reach.told
        self._hops = reach.spread.hops if reach.spread is not None else ()
        self._said = choice.said
        self._names = choice.names
        self._params = params
        self._now = now
        self._arrived: dict[int, list[tuple[int, int]]] = {}
        asked = np.array(sorted(handles), np.int64)
        for depth, arrived in enumerate(self._hops):
            rows = found_in(asked, arrived.node)[0].nonzero()[0]
            for row, node in zip(rows.tolist(), arrived.node[rows].tolist(), strict=True):
                self._arrived.setdefault(node, []).append((depth, row))

    def of(self, handle: int) -> tuple[Carrier, ...]:
        """What gave the node its energy, most first, the first few."""
        sure = self._told.confidence(handle, self._params)
        said = [(sure * self._scale(one) * one.gain, one) for one in self._said.get(handle, ())]
        said.sort(key=lambda one: -one[0])
        # More than are told where they tie: their names decide then.
        told = [one for one in said if one[0] >= said[:_TOLD][-1][0]]
        found = [self._episode(energy, one) for energy, one in told]
        found += self._edges(handle)
        found.sort(key=lambda one: (-one.energy, one.kind, one.source))
        return tuple(found[:_TOLD])

    def chunk_of(self, handle: int) -> NodeId | None:
        """The chunk of the strongest episode that used the node and knows one."""
        known = [one for one in self._said.get(handle, ()) if one.chunk >= 0]
        best = max(known, key=lambda one: self._scale(one) * one.gain, default=None)
        return self._name(best.chunk) if best is not None else None

    def _scale(self, said: Said) -> float:
        weight = self._told.cues[said.namespace].weight
        share = self._params.cue_weight / (weight + self._params.cue_prior)
        return self._factors[said.namespace] * share

    def _episode(self, energy: float, said: Said) -> Carrier:
        uses, row = self._told.cues[said.namespace].uses, said.speaker.row
        return Carrier(
            "episode",
            self._reader.namespaces[said.namespace],
            uses.query[row],
            said.speaker.similarity,
            energy,
            max(0.0, self._now - uses.renewed_at[row]) / DAY,
            chunk=self._name(said.chunk) if said.chunk >= 0 else None,
        )

    def _edges(self, handle: int) -> Iterable[Carrier]:
        for depth, row in self._arrived.get(handle, ()):
            arrived = self._hops[depth]
            energy = float(arrived.energy[row])
            if energy <= 0.0:
                continue
            path = (*_path(self._hops[:depth], int(arrived.sender[row])), handle)
            names = tuple(map(self._name, path))
            namespace = int(arrived.namespace[row])
            factor = self._factors[namespace] if self._params.kernel == "conditional" else 1
            yield Carrier(
                "edge",
                self._reader.namespaces[namespace],
                names[-2],
                float(arrived.weight[row]),
                factor * self._params.spread_weight * energy,
                max(0.0, self._now - float(arrived.activated_at[row])) / DAY,
                names,
            )

    def _name(self, handle: int) -> NodeId:
        if handle not in self._names:
            self._names[handle] = self._reader.ids(np.array([handle]))[0]
        return self._names[handle]


def _path(hops: Sequence[Arrivals], node: int) -> list[int]:
    """The strongest way from a seed to `node` over the given hops, both ends included."""
    for depth in range(len(hops) - 1, -1, -1):
        rows = np.flatnonzero(hops[depth].node == node)
        if len(rows):
            best = rows[np.argmax(hops[depth].energy[rows])]
            return [*_path(hops[:depth], int(hops[depth].sender[best])), node]
    return [node]
