"""What a recall would change, and what it changed once it is known what can be fetched."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar, cast

from synapse_retrievers.params import RecallParams
from synapse_retrievers.recall.displace import Absent, Place, allowed, displace
from synapse_retrievers.recall.explain import Move, MoveKind, Reached, Trace
from synapse_retrievers.types import Hit, Namespace, NodeId

_Object = TypeVar("_Object")


@dataclass(frozen=True, slots=True)
class Plan:
    """What the memory would change; `settle` finishes it once it is known what can be had.

    Attributes:
        hits: The wrapped result, the very list.
        wanted: Absent nodes to fetch, best first; empty when nothing may come in.
        chunks: Wanted node -> the chunk of it that was used before, where that is known.
        trace: What is known so far; cold when no energy reached anything.
        returned: Hits that were marked gone: they are back.
    """

    hits: list[Hit]
    trace: Trace
    worths: tuple[float, ...] = ()
    wanted: tuple[Absent, ...] = ()
    chunks: Mapping[NodeId, NodeId] = field(default_factory=dict)
    params: RecallParams = field(default_factory=RecallParams)
    returned: tuple[NodeId, ...] = ()

    @property
    def most(self) -> int:
        """At most how many nodes may come in."""
        return allowed(len(self.hits), self.params)

    def settle(
        self,
        fetched: Mapping[NodeId, object] | None = None,
        *,
        reason: str | None = None,
        refused: Mapping[NodeId, str] | None = None,
        is_shadow: bool = False,
    ) -> "Recalled":
        """The new result, as long as the old one.

        Args:
            fetched: Wanted node -> what was found for it; the others cannot come in.
            reason: Why nothing was fetched, for the trace.
            refused: Wanted node -> why it could not come in, for the trace.
            is_shadow: Trace what would move, and move nothing.
        """
        if self.trace.is_cold:
            return Recalled(self.hits, _unmoved(self.hits), self.trace)
        can_enter = fetched or {}
        entering = [node for node in self.wanted if node.id in can_enter]
        places = displace(self.worths, entering, self.params)
        moves = _moves(self.hits, places, self.trace.reached)
        trace = replace(self.trace, reason=reason, moves=moves, refused=dict(refused or {}))
        if is_shadow:
            return Recalled(self.hits, _unmoved(self.hits), replace(trace, reason="shadow mode"))
        if not moves:
            return Recalled(self.hits, tuple(places), trace)
        hits = [
            self.hits[place.hit] if place.hit is not None else Hit(place.entered)
            for place in places
        ]
        entered = {place.entered for place in places}
        kept = {node: can_enter[node] for node in can_enter if node in entered}
        return Recalled(hits, tuple(places), trace, kept)


@dataclass(frozen=True, slots=True)
class Recalled:
    """The result of one recall.

    Attributes:
        hits: As many as the wrapped retriever returned; the very list if nothing moved.
        places: Where each of them comes from: a place in the wrapped result, or a node that
            entered.
        trace: What moved and why.
        fetched: Entered node -> what `fetch` gave for it.
    """

    hits: list[Hit]
    places: tuple[Place, ...]
    trace: Trace
    fetched: Mapping[NodeId, object] = field(default_factory=dict)

    def arrange(self, objects: list[_Object]) -> list[_Object]:
        """The wrapped result's own objects in the new order; the very list if nothing moved.

        Args:
            objects: What the wrapped retriever returned, one a hit; fetched ones are of their kind.
        """
        if all(place.hit == after for after, place in enumerate(self.places)):
            return objects
        return [
            objects[place.hit]
            if place.hit is not None
            else cast("_Object", self.fetched[cast("NodeId", place.entered)])
            for place in self.places
        ]


def _unmoved(hits: Sequence[Hit]) -> tuple[Place, ...]:
    return tuple(map(Place, range(len(hits))))


def cold(
    query: str, hits: list[Hit], namespace: Namespace | None, reason: str | None = None
) -> Plan:
    """The plan that changes nothing."""
    return Plan(hits, Trace(query, namespace, len(hits), reason=reason))


def _moves(
    hits: Sequence[Hit], places: Sequence[Place], reached: Sequence[Reached]
) -> tuple[Move, ...]:
    by_id = {node.node: node for node in reached}
    moves = [
        _move(hits, place, after, by_id) for after, place in enumerate(places) if place.hit != after
    ]
    moves += [
        _named(hits[place.displaced].id, "displaced", place.displaced, None, by_id)
        for place in places
        if place.displaced is not None
    ]
    return tuple(moves)


def _move(hits: Sequence[Hit], place: Place, after: int, reached: Mapping[NodeId, Reached]) -> Move:
    if place.hit is not None:
        kind: MoveKind = "raised" if after < place.hit else "lowered"
        return _named(hits[place.hit].id, kind, place.hit, after, reached)
    out = hits[place.displaced].id if place.displaced is not None else None
    return _named(place.entered, "displaced_in", None, after, reached, out)


def _named(
    node: NodeId | None,
    kind: MoveKind,
    before: int | None,
    after: int | None,
    reached: Mapping[NodeId, Reached],
    displaced: NodeId | None = None,
) -> Move:
    known = reached.get(node) if node is not None else None
    if known is None:
        return Move(node, kind, before, after, displaced=displaced)
    return Move(node, kind, before, after, known.energy, known.carriers, displaced)
