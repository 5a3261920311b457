"""How long an edge lasts: learned from its activations, the less certain the longer it idles."""

import numpy as np

from synapse_retrievers.params import LearningParams
from synapse_retrievers.types import Floats, Ints, Namespace


def half_life(
    activations: Ints, idle_days: Floats, namespace: Namespace, params: LearningParams
) -> Floats:
    """Days after which an edge has lost half of its weight.

    With n activations and H0 the namespace's own half-life (seed paper, section 2):

        rho     = ln(1 + n / 10)
        learned = 3 + (120 - 3) * rho / (1 + rho)
        c       = 2 ** (-idle_days / H0)
        H       = clamp((1 - c) * H0 + c * learned, 3, 120)

    In `shared` never below H0; in `ephemeral` always H0. Nothing of it is stored.

    Args:
        activations: Reinforcements so far, shape [edges].
        idle_days: Days since the last one, >= 0, shape [edges].
        namespace: Decides H0: 30 days, `shared` 60, `ephemeral` 1.
        params: The constants.

    Returns:
        Days > 0, shape [edges].

    >>> half_life(np.array([40, 2]), np.array([0.0, 25.0]), "personal", LearningParams()).round(2)
    array([75.16, 24.97])
    """
    if namespace == "ephemeral":
        return np.full(len(activations), params.ephemeral_half_life_days)
    is_shared = namespace == "shared"
    unlearned = params.shared_half_life_days if is_shared else params.half_life_days
    shortest, longest = params.half_life_min_days, params.half_life_max_days
    rho = np.log1p(activations / params.activation_scale)
    learned = shortest + (longest - shortest) * rho / (1.0 + rho)
    confidence = np.exp2(-idle_days / unlearned)
    blended = np.clip((1.0 - confidence) * unlearned + confidence * learned, shortest, longest)
    return np.maximum(blended, unlearned) if is_shared else blended
