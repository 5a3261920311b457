"""Which learned things gave a node its energy, by name."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from synapse_retrievers.params import DAY, RecallParams
from synapse_retrievers.recall.cue import Cue
from synapse_retrievers.recall.explain import Carrier
from synapse_retrievers.recall.spread import Arrivals, Spread
from synapse_retrievers.stores.base import Reader
from synapse_retrievers.types import Floats, Namespace, NodeId, Uses

_TOLD = 3


@dataclass(frozen=True, slots=True)
class Carriers:
    """What one recall found, to be asked for single nodes while its view is open."""

    reader: Reader
    namespaces: tuple[Namespace, ...]
    factors: Floats
    spread: Spread | None
    cues: Sequence[tuple[Cue, Uses]]
    confidence: Mapping[int, float]
    params: RecallParams
    now: float

    def of(self, handle: int) -> tuple[Carrier, ...]:
        """What gave the node its energy, most first, the first few."""
        found = [*self._episode_carriers(handle), *self._edge_carriers(handle)]
        found.sort(key=lambda one: (-one.energy, one.kind, one.source))
        return tuple(found[:_TOLD])

    def chunk_of(self, handle: int) -> NodeId | None:
        """The chunk of the strongest episode that used the node and knows one."""
        known = [one for one in self._episode_carriers(handle) if one.chunk]
        best = max(known, key=lambda one: one.energy, default=None)
        return best.chunk if best is not None else None

    def _episode_carriers(self, handle: int) -> Iterable[Carrier]:
        for index, (told, uses) in enumerate(self.cues):
            namespace = self.namespaces[index]
            sure = self.confidence.get(handle, 0.0)
            scale = sure * self.params.cue_weight / (told.weight + self.params.cue_prior)
            rows = told.use[uses.node[told.use] == handle]
            gains = told.energy[uses.node[told.use] == handle]
            for row, gain in zip(rows.tolist(), gains.tolist(), strict=True):
                episode = int(uses.episode[row])
                chunk = int(uses.chunk[row])
                speaks = int(np.flatnonzero(told.speaking == episode)[0])
                yield Carrier(
                    "episode",
                    namespace,
                    uses.query[episode],
                    float(told.similarity[speaks]),
                    float(self.factors[index] * scale * gain),
                    max(0.0, self.now - float(uses.renewed_at[episode])) / DAY,
                    chunk=self._name(chunk) if chunk >= 0 else None,
                )

    def _edge_carriers(self, handle: int) -> Iterable[Carrier]:
        hops = self.spread.hops if self.spread is not None else ()
        for depth, arrived in enumerate(hops):
            for row in np.flatnonzero((arrived.node == handle) & (arrived.energy > 0.0)).tolist():
                path = (*_path(hops[:depth], int(arrived.sender[row])), handle)
                names = tuple(map(self._name, path))
                namespace = int(arrived.namespace[row])
                factor = self.factors[namespace] if self.params.kernel == "conditional" else 1
                yield Carrier(
                    "edge",
                    self.namespaces[namespace],
                    names[-2],
                    float(arrived.weight[row]),
                    float(factor * self.params.spread_weight * arrived.energy[row]),
                    float(arrived.age_days[row]),
                    names,
                )

    def _name(self, handle: int) -> NodeId:
        return self.reader.ids(np.array([handle]))[0]


def _path(hops: Sequence[Arrivals], node: int) -> list[int]:
    """The strongest way from a seed to `node` over the given hops, both ends included."""
    for depth in range(len(hops) - 1, -1, -1):
        rows = np.flatnonzero(hops[depth].node == node)
        if len(rows):
            best = rows[np.argmax(hops[depth].energy[rows])]
            return [*_path(hops[:depth], int(hops[depth].sender[best])), node]
    return [node]
