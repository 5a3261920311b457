"""Who may come in and who goes out; the count stays."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from synapse_retrievers.params import RecallParams
from synapse_retrievers.types import NodeId


@dataclass(frozen=True, slots=True)
class Absent:
    """A node with energy that is not among the hits; `worth` compares with the hits'."""

    id: NodeId
    energy: float
    worth: float


class Place(NamedTuple):
    """One place of the new result: the hit at `hit` of the wrapped one, or the node `entered`.

    `displaced` is the place in the wrapped result of the hit that had to go for it.
    """

    hit: int | None
    entered: NodeId | None = None
    displaced: int | None = None


def allowed(count: int, params: RecallParams) -> int:
    """At most how many hits of `count` may be displaced.

    >>> [allowed(count, RecallParams()) for count in (0, 1, 2, 3, 8)]
    [0, 0, 1, 1, 2]
    """
    most = count // 2 if params.fusion == "ranks" else max(0, count - 1)
    return min(params.displacements, most)


def wanted(worths: Sequence[float], absent: Sequence[Absent], params: RecallParams) -> list[Absent]:
    """The absent nodes worth fetching, best first: those that would come in if they can be had.

    Args:
        worths: Of the hits, in the wrapped order.
        absent: Candidates in any order.
        params: How many may come in, and how many are fetched so that dead ones can be skipped.
    """
    if allowed(len(worths), params) == 0:
        return []
    ranked = sorted(absent, key=lambda node: (-node.worth, node.id))
    if params.fusion == "scores":
        fit = [node for node in ranked if node.energy >= params.displace_from]
    else:
        weakest = min(worths[1:])
        fit = [
            node for node in ranked if node.worth > weakest and node.energy >= params.displace_from
        ]
    return fit[: params.candidates]


def displace(
    worths: Sequence[float], entering: Sequence[Absent], params: RecallParams
) -> list[Place]:
    """The new result: as many places as before.

    Fusion "ranks": the best candidate takes the place of the hit that is worth least, if it is
    worth more, and so on; everybody stands where its worth puts it; the wrapped first hit may be
    overtaken but stays. Fusion "scores" (the seed
    paper): the weakest hits go one for one, what comes in is appended in order of its energy.

    Args:
        worths: Of the hits, in the wrapped order.
        entering: Candidates that can be had, best first.
        params: At most how many come in.

    Returns:
        len(worths) places, best first; ties by the wrapped order, then by node id.

    >>> displace([1.0, 0.75], [Absent("x", 0.4, 0.8)], RecallParams())
    [Place(hit=0, entered=None, displaced=None), Place(hit=None, entered='x', displaced=1)]
    """
    order = sorted(range(len(worths)), key=lambda place: (-worths[place], place))
    most = allowed(len(worths), params)
    if params.fusion == "scores":
        incoming = list(entering[: min(most, len(order))])
        leaving = [order[len(order) - 1 - turn] for turn in range(len(incoming))]
        kept = [Place(place) for place in order if place not in leaving]
        return kept + [
            Place(None, node.id, out) for node, out in zip(incoming, leaving, strict=True)
        ]
    swaps = _swaps(worths, [place for place in reversed(order) if place != 0], entering, most)
    gone = {out for _, out in swaps}
    ranked = [(-worths[place], 0, place, "", Place(place)) for place in order if place not in gone]
    ranked += [(-node.worth, 1, 0, node.id, Place(None, node.id, out)) for node, out in swaps]
    return [place for *_, place in sorted(ranked, key=lambda row: row[:4])]


def _swaps(
    worths: Sequence[float], weakest: Sequence[int], entering: Sequence[Absent], most: int
) -> list[tuple[Absent, int]]:
    """Pairs of who comes in and who goes out, while the one who comes is worth more."""
    swaps = []
    for node, out in zip(entering[:most], weakest, strict=False):
        if node.worth <= worths[out]:
            break
        swaps.append((node, out))
    return swaps
