"""Which memories a namespace reads, and what each counts there."""

from synapse_retrievers.types import Namespace


def readable(namespace: Namespace) -> dict[Namespace, float]:
    """Namespace -> factor in (0, 1], the active one first; writes go to the active one alone.

    >>> readable("branch:x")
    {'branch:x': 1.0, 'personal': 0.8, 'shared': 0.5}
    >>> readable("acme")
    {'acme': 1.0}
    """
    if namespace == "personal":
        return {"personal": 1.0, "shared": 0.5}
    if namespace == "ephemeral" or namespace.startswith("branch:"):
        return {namespace: 1.0, "personal": 0.8, "shared": 0.5}
    return {namespace: 1.0}
