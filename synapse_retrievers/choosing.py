"""Which absent nodes have most energy, read out for no more nodes than can matter."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from synapse_retrievers.aging import AgedGraph
from synapse_retrievers.params import RecallParams
from synapse_retrievers.recall.displace import Absent
from synapse_retrievers.recall.energy import Said, Told, bounds, energize
from synapse_retrievers.recall.fuse import boosted, fuse
from synapse_retrievers.recall.graph import Spread
from synapse_retrievers.recall.spread import read_out
from synapse_retrievers.stores.base import Reader
from synapse_retrievers.types import Hit, NodeId

_AT_ONCE = 64


@dataclass(frozen=True, slots=True)
class Reach:
    """What arrived at nodes, before it is read out; `of`: which were asked about, ascending."""

    spread: Spread | None
    told: Told
    of: Sequence[int] | None


@dataclass(slots=True)
class Choice:
    """What the hits are worth, and the best absent nodes.

    Attributes:
        worths: Of the hits, in their order.
        energy: Handle -> energy > 0, of the present nodes and of those that were looked at.
        said: Handle -> what past questions said of it, of the same.
        absent: Neither present nor gone, best first, at most as many as may be fetched.
        names: Handle -> id, of the present nodes and of `absent`.
    """

    worths: list[float] = field(default_factory=list)
    energy: dict[int, float] = field(default_factory=dict)
    said: dict[int, list[Said]] = field(default_factory=dict)
    absent: list[Absent] = field(default_factory=list)
    names: dict[int, NodeId] = field(default_factory=dict)


def choose(
    reader: Reader,
    graph: AgedGraph,
    reach: Reach,
    hits: Sequence[Hit],
    known: Mapping[NodeId, int],
    params: RecallParams,
) -> Choice:
    """The energies of the present nodes and the best of the absent ones, exactly.

    To read out the energy of a node means to look up how many neighbors it has. What arrived is
    a bound for it, so nodes are looked at from the highest bound on, until the next could not be
    among the best.

    Args:
        reader: Gives names.
        graph: Gives degrees, and who is gone.
        reach: Everything that anything reached.
        hits: The wrapped result.
        known: Present nodes, hits and used ones, and their handles.
        params: How many are wanted.
    """
    choice = Choice(names={handle: node for node, handle in known.items()})
    factors: list[float] = graph.factors.tolist()
    for nodes, bound in _chunks(graph, reach, choice.names, params):
        found = choice.absent
        if len(found) == params.candidates and bound < found[-1].energy:
            break
        asked = np.array(nodes, np.int64)
        graph.look_up(asked)
        spread = read_out(reach.spread, graph, params, asked) if reach.spread else None
        said = reach.told.of(set(nodes), params)
        energies = energize(spread, reach.told, said, factors, nodes, params)
        choice.energy.update(energies)
        choice.said.update(said)
        if not choice.worths:
            of_hits = {node: energies.get(handle, 0.0) for node, handle in known.items()}
            choice.worths = fuse(hits, of_hits, params)
        _take(choice, reader, graph, energies, params)
    return choice


def _chunks(
    graph: AgedGraph, reach: Reach, present: Mapping[int, NodeId], params: RecallParams
) -> Iterator[tuple[Sequence[int], float]]:
    """Nodes to be looked at, ascending, and at most what one of them has, the first part apart."""
    if reach.of is not None and len(reach.of) <= _AT_ONCE:
        yield reach.of, np.inf
        return
    node, bound = bounds(reach.spread, graph.factors, params)
    first = set(present) | (reach.told.support.keys() if reach.of is None else set(reach.of))
    is_other = ~np.isin(node, np.fromiter(first, np.int64, len(first)))
    node, bound = node[is_other], bound[is_other]
    order = np.argsort(-bound, kind="stable")
    yield sorted(first | set(node[order[:_AT_ONCE]].tolist())), np.inf
    start, size = _AT_ONCE, 2 * _AT_ONCE
    while start < len(order):
        yield np.sort(node[order[start : start + size]]).tolist(), float(bound[order[start]])
        start, size = start + size, 2 * size


def _take(
    choice: Choice,
    reader: Reader,
    graph: AgedGraph,
    energies: Mapping[int, float],
    params: RecallParams,
) -> None:
    """Put the best absent of these nodes among the best so far; ties are decided by the id."""
    enough = _enough(choice.worths, params)
    found = [
        (energy, node)
        for node, energy in energies.items()
        if energy >= enough and node not in choice.names
    ]
    if not found:
        return
    is_gone = graph.is_gone(np.array([node for _, node in found], np.int64)).tolist()
    found = sorted(
        (one for one, is_marked in zip(found, is_gone, strict=True) if not is_marked), reverse=True
    )
    last = found[: params.candidates][-1:]
    found = [one for one in found if one[0] >= last[0][0]]
    names = reader.ids(np.array([node for _, node in found], np.int64)) if found else []
    choice.absent += [
        Absent(name, energy, boosted(energy, params))
        for name, (energy, _) in zip(names, found, strict=True)
    ]
    choice.absent.sort(key=lambda one: (-one.energy, one.id))
    del choice.absent[params.candidates :]
    choice.names.update({node: name for name, (_, node) in zip(names, found, strict=True)})


def _enough(worths: Sequence[float], params: RecallParams) -> float:
    """The least energy with which an absent node could come in beside hits worth that much."""
    if params.fusion == "scores" or len(worths) <= 1:
        return 0.0
    return (min(worths[1:]) - 1e-9) / params.boost if params.boost else np.inf
