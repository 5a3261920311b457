"""Forgetting and pruning in a memory store."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from synapse_retrievers.stores.memory_state import BLANK, EdgeTuple, Space, State
from synapse_retrievers.types import (
    EDGE_STATE,
    Bools,
    EdgeStates,
    Episode,
    Namespace,
    NodeId,
    Pair,
    Removed,
)

_ACTIVATED_AT = 3


def edges_of(space: Space) -> list[tuple[Pair, EdgeTuple]]:
    """Every edge once, ascending."""
    return sorted(
        ((a, b), state) for a, row in space.edges.items() for b, state in row.items() if a < b
    )


def forget(
    state: State,
    *,
    ids: Sequence[NodeId] | None,
    namespace: Namespace | None,
    before: float | None,
    query: str | None,
) -> Removed:
    """Remove what meets all of the conditions that are not None."""
    names = list(state.spaces) if namespace is None else [namespace]
    counts = [Removed()]
    for name in names:
        space = state.spaces.get(name)
        if space is None:
            continue
        chosen = None if ids is None else set(ids)
        counts.append(forget_in(space, chosen, before, query))
        if ids is None and before is None and query is None:
            del state.spaces[name]
    state.sweep()
    return total(counts)


def total(counts: Sequence[Removed]) -> Removed:
    """The sum of the parts."""
    return Removed(
        sum(part.edges for part in counts),
        sum(part.episodes for part in counts),
        sum(part.nodes for part in counts),
    )


def forget_in(
    space: Space, chosen: set[NodeId] | None, before: float | None, query: str | None
) -> Removed:
    """The part of one namespace; `chosen` None = every node."""
    edges = nodes = 0
    if query is None:
        pairs = [
            pair
            for pair, state in edges_of(space)
            if (chosen is None or not chosen.isdisjoint(pair))
            and (before is None or state[_ACTIVATED_AT] < before)
        ]
        edges = _drop_edges(space, pairs)
        nodes = _drop_counters(space, chosen, before)
    episodes = 0
    for episode in list(space.episodes.values()):
        if query is not None and episode.query != query:
            continue
        if before is not None and not episode.renewed_at < before:
            continue
        left = replace(episode, used={}) if chosen is None else without(episode, chosen)
        space.put_episode(left)
        episodes += not left.used
    return Removed(edges, episodes, nodes)


def without(episode: Episode, chosen: set[NodeId]) -> Episode:
    """The episode without these nodes, and without them as chunks."""
    used = {
        node: replace(use, chunk=None) if use.chunk in chosen else use
        for node, use in episode.used.items()
        if node not in chosen
    }
    return replace(episode, used=used)


def _drop_edges(space: Space, pairs: Sequence[Pair]) -> int:
    for pair in pairs:
        space.put_edge(pair, (0, 0.0, 0.0, 0.0, 0.0))
    return len(pairs)


def _drop_counters(space: Space, chosen: set[NodeId] | None, before: float | None) -> int:
    removed = 0
    for node, (_, used_at, gone_at) in list(space.counters.items()):
        if chosen is not None and node not in chosen:
            continue
        if before is not None and not used_at < before:
            continue
        if before is None or not space.degree(node):
            del space.counters[node]
            removed += 1
        else:
            space.counters[node] = (0.0, 0.0, gone_at)
    return removed


def prune(
    state: State, is_prunable: Callable[[Namespace, EdgeStates], Bools], gone_before: float
) -> Removed:
    """Remove prunable edges, gone nodes and empty counters."""
    counts = [Removed()]
    for name, space in state.spaces.items():
        found = edges_of(space)
        if found:
            states = np.array([edge for _, edge in found], dtype=EDGE_STATE)
            chosen = is_prunable(name, states)
            pairs = [pair for (pair, _), is_chosen in zip(found, chosen, strict=True) if is_chosen]
            counts.append(Removed(edges=_drop_edges(space, pairs)))
        gone = {node for node, counter in space.counters.items() if counter[2] < gone_before}
        counts.append(forget_in(space, gone, None, None))
        empty = {
            node
            for node, counter in space.counters.items()
            if not space.degree(node) and counter[0] == BLANK[0] and math.isnan(counter[2])
        }
        counts.append(Removed(nodes=_drop_counters(space, empty, None)))
    state.sweep()
    return total(counts)
