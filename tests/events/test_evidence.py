from typing import get_args

import pytest

from synapse_retrievers.events.evidence import Evidence, evidence_of, strength_of
from synapse_retrievers.params import LearningParams


@pytest.mark.parametrize(
    ("evidence", "strength"),
    [
        ("feedback", 1.0),
        ("cited", 1.0),
        ("edited", 1.0),
        ("read", 0.5),
        ("used", 0.6),
        ("hinted", 0.4),
    ],
)
def test_each_evidence_has_the_strength_of_the_design(evidence, strength):
    assert strength_of(evidence, LearningParams()) == strength


@pytest.mark.parametrize("evidence", get_args(Evidence))
def test_each_strength_can_be_set(evidence):
    params = LearningParams(**{f"{evidence}_strength": 0.123})
    assert strength_of(evidence, params) == 0.123


@pytest.mark.parametrize(
    ("score", "evidence"),
    [(0.0, None), (0.99, None), (1.0, "hinted"), (1.49, "hinted"), (1.5, "used"), (80.0, "used")],
)
def test_a_score_is_judged_by_the_thresholds(score, evidence):
    assert evidence_of(score, LearningParams()) == evidence


def test_the_thresholds_can_be_set():
    params = LearningParams(used_score=4.0, hinted_score=2.0)
    assert [evidence_of(score, params) for score in (1.9, 2.0, 4.0)] == [None, "hinted", "used"]
