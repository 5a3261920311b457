"""Kind of evidence -> how much it counts."""

from typing import Literal

from synapse_retrievers.params import LearningParams

Evidence = Literal["feedback", "cited", "edited", "read", "used", "hinted"]
"""Why a node counts as used: said by the user, by the answer, by a tool call, by the wording."""


def strength_of(evidence: Evidence, params: LearningParams) -> float:
    """What one such sign is worth, in (0, 2].

    >>> strength_of("read", LearningParams())
    0.5
    """
    return {
        "feedback": params.feedback_strength,
        "cited": params.cited_strength,
        "edited": params.edited_strength,
        "read": params.read_strength,
        "used": params.used_strength,
        "hinted": params.hinted_strength,
    }[evidence]


def evidence_of(score: float, params: LearningParams) -> Literal["used", "hinted"] | None:
    """What a score of `usage` proves; None: nothing.

    >>> evidence_of(1.2, LearningParams())
    'hinted'
    """
    if score >= params.used_score:
        return "used"
    return "hinted" if score >= params.hinted_score else None
