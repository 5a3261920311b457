"""Readable asserts in the shipped suites; how long Hypothesis searches."""

import os

import pytest
from hypothesis import HealthCheck, settings

from synapse_retrievers.recalling import Recalling

pytest.register_assert_rewrite("synapse_retrievers.testing")

# On a busy machine the first example of a test may take seconds: the imports are in it.
settings.register_profile(
    "fast", max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("ci", settings.get_profile("fast"), derandomize=True)
settings.register_profile("nightly", settings.get_profile("fast"), max_examples=1_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if "CI" in os.environ else "fast"))


@pytest.fixture(autouse=True)
def no_time_passes(monkeypatch):
    """A busy machine stalls at any moment: the time limit is for tests that bring a clock."""
    monkeypatch.setitem(Recalling.__init__.__kwdefaults__, "monotonic", lambda: 0.0)
