"""What a disappointment takes away, from the one carrier that brought the node in."""

from dataclasses import replace

import numpy as np

from synapse_retrievers.learning.decay import count_at, decay_factor, weight_at
from synapse_retrievers.params import LearningParams
from synapse_retrievers.types import EdgeStates, Episode, Namespace, NodeId, Use


def weaken(
    edges: EdgeStates, penalty: float, now: float, namespace: Namespace, params: LearningParams
) -> EdgeStates:
    """The edges with `penalty` less weight and co-activation *as they are now*, never below 0.

    Neither the activations nor the time of the last one change: a disappointment is no use. A
    potentiated edge may go below its floor.

    Args:
        edges: As stored, shape [edges]; absent ones stay absent.
        penalty: Taken from weight and co, >= 0.
        now: Unix seconds.
        namespace: Where the edges are.
        params: Half-lives and floor.

    Returns:
        New states, shape [edges].

    >>> from synapse_retrievers.types import EDGE_STATE
    >>> old = np.array([(9, 0.5, 1.0, 0.0, 0.0)], EDGE_STATE)
    >>> year = 365 * 86_400.0
    >>> after = weaken(old, 0.05, year, "personal", LearningParams())
    >>> weight_at(after, year, "personal", LearningParams()).round(12)
    array([0.15])
    """
    after = edges.copy()
    weight = weight_at(edges, now, namespace, params)
    target = np.maximum(0.0, weight - penalty)
    left = decay_factor(edges, now, namespace, params)
    is_potentiated = edges["activations"] >= params.potentiation_count
    is_floored = is_potentiated & (target < params.potentiation_floor) & (namespace != "ephemeral")
    with np.errstate(divide="ignore", invalid="ignore"):
        unfloored = np.where(left > 0.0, target / left, 0.0)
    after["weight"] = np.minimum(edges["weight"], np.where(is_floored, target, unfloored))
    co = count_at(edges["co"], edges["activated_at"], now, params)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(co > 0.0, np.maximum(0.0, co - penalty) / co, 0.0)
    after["co"] = edges["co"] * share
    return np.where(edges["activations"] > 0, after, edges)


def weaken_use(episode: Episode, node: NodeId, penalty: float) -> Episode:
    """The episode with `penalty` less strength for `node`; at 0 the node leaves it."""
    use = episode.used[node]
    left = use.strength - penalty
    used = {key: value for key, value in episode.used.items() if key != node or left > 0.0}
    if left > 0.0:
        used[node] = Use(left, use.chunk)
    return replace(episode, used=used)
