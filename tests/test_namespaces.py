"""Which memories a namespace reads: the table of design 3.6."""

import pytest

from synapse_retrievers.namespaces import readable


@pytest.mark.parametrize(
    ("active", "reads"),
    [
        ("personal", [("personal", 1.0), ("shared", 0.5)]),
        ("branch:x", [("branch:x", 1.0), ("personal", 0.8), ("shared", 0.5)]),
        ("ephemeral", [("ephemeral", 1.0), ("personal", 0.8), ("shared", 0.5)]),
        ("shared", [("shared", 1.0)]),
        ("acme", [("acme", 1.0)]),
        ("branchless", [("branchless", 1.0)]),
        ("Personal", [("Personal", 1.0)]),
    ],
)
def test_a_namespace_reads_these_the_active_one_first(active, reads):
    assert list(readable(active).items()) == reads
