"""The Hebbian gain: what was used together belongs together."""

import numpy as np

from synapse_retrievers.learning.decay import count_at, weight_at
from synapse_retrievers.params import LearningParams
from synapse_retrievers.types import EdgeStates, Floats, Namespace, NodeStates


def reinforce(
    edges: EdgeStates,
    strength: Floats,
    run_size: int,
    now: float,
    namespace: Namespace,
    params: LearningParams,
) -> EdgeStates:
    """The edges after one co-activation each.

        w  <- min(1, w(now) + 0.30 * strength)      decay first: an idle edge is not topped up
        n  <- n + 1                                 t_last <- now, t_first stays
        co <- co(now) + strength / (run_size - 1)   a six-node run does not weigh 15 pairs

    Source: seed paper, section 1; `co` after the replay study (docs/benchmarks.md).

    Args:
        edges: As stored, shape [edges]; `activations` 0 = new.
        strength: Of each co-activation, clamped to [0, 2]; 0 leaves the edge as it is.
        run_size: Nodes that the run is known to have used, >= 2.
        now: Unix seconds.
        namespace: Where the edges are.
        params: The gain and the half-lives.

    Returns:
        New states, shape [edges]; the given ones are not written.

    >>> from synapse_retrievers.types import EDGE_STATE
    >>> old = np.array([(1, 0.9, 1.0, 0.0, 0.0)], EDGE_STATE)
    >>> year = 365 * 86_400.0
    >>> reinforce(old, np.ones(1), 2, year, "personal", LearningParams())["weight"].round(3)
    array([0.3])
    """
    gain = np.clip(strength, 0.0, 2.0)
    after = edges.copy()
    is_new = edges["activations"] == 0
    after["weight"] = np.minimum(1.0, weight_at(edges, now, namespace, params) + params.gain * gain)
    after["co"] = count_at(edges["co"], edges["activated_at"], now, params) + gain / (run_size - 1)
    after["activations"] = np.minimum(edges["activations"].astype(np.int64) + 1, 2**32 - 1)
    after["activated_at"] = now
    after["created_at"] = np.where(is_new, now, edges["created_at"])
    return np.where(gain > 0.0, after, edges)


def count_uses(
    counters: NodeStates, strength: Floats, now: float, params: LearningParams
) -> NodeStates:
    """The counters after one use each: used <- used(now) + strength; 0 changes nothing."""
    after = counters.copy()
    after["used"] = count_at(counters["used"], counters["used_at"], now, params) + strength
    after["used_at"] = now
    return np.where(strength > 0.0, after, counters)
