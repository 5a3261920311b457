"""What is left of a weight or a count at a moment: a pure function of the clock."""

import numpy as np

from synapse_retrievers.learning.half_life import half_life
from synapse_retrievers.params import DAY, LearningParams
from synapse_retrievers.types import Bools, EdgeStates, Floats, Namespace


def decay_factor(
    edges: EdgeStates, now: float, namespace: Namespace, params: LearningParams
) -> Floats:
    """What decay alone, without the floor, leaves of each edge: 2 ** -(age / half_life)."""
    idle_days = np.maximum(now - edges["activated_at"], 0.0) / DAY
    return np.exp2(-idle_days / half_life(edges["activations"], idle_days, namespace, params))


def weight_at(
    edges: EdgeStates, now: float, namespace: Namespace, params: LearningParams
) -> Floats:
    """What is left of each edge's weight at `now`.

    w(t) = w0 * 2 ** -(age / half_life); from `potentiation_count` activations on never below
    min(w0, potentiation_floor), except in `ephemeral` (seed paper, section 2; Ebbinghaus 1885).

    Args:
        edges: As stored, shape [edges]; their weight counts from `activated_at`.
        now: Unix seconds; earlier than `activated_at` counts as age 0.
        namespace: Where the edges are.
        params: Half-lives and floor.

    Returns:
        Weights in [0, 1], shape [edges].

    >>> from synapse_retrievers.types import EDGE_STATE
    >>> edge = np.array([(1, 0.3, 0.0, 0.0, 0.0)], EDGE_STATE)
    >>> fixed = LearningParams(half_life_min_days=30, half_life_max_days=30)
    >>> weight_at(edge, 10 * DAY, "personal", fixed).round(3)
    array([0.238])
    """
    stored = edges["weight"]
    left = stored * decay_factor(edges, now, namespace, params)
    if namespace == "ephemeral":
        return np.asarray(left)
    is_potentiated = edges["activations"] >= params.potentiation_count
    floor = np.minimum(stored, params.potentiation_floor)
    return np.where(is_potentiated, np.maximum(left, floor), left)


def count_at(counts: Floats, counted_at: Floats, now: float, params: LearningParams) -> Floats:
    """What is left of counts (uses, co-activation mass) at `now`; never older than age 0.

    >>> count_at(np.array([4.0]), np.array([0.0]), 365 * DAY, LearningParams())
    array([2.])
    """
    idle_days = np.maximum(now - counted_at, 0.0) / DAY
    return np.asarray(counts * np.exp2(-idle_days / params.count_half_life_days))


def is_prunable(
    edges: EdgeStates, now: float, namespace: Namespace, params: LearningParams
) -> Bools:
    """Whether so little is left of an edge, in weight and in co-activation, that it may go."""
    is_weak = weight_at(edges, now, namespace, params) < params.prune_below
    co = count_at(edges["co"], edges["activated_at"], now, params)
    return np.asarray(is_weak & (co < params.prune_co_below))
