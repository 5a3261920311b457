"""What a memory holds, and what happened to it in this process."""

from collections.abc import Mapping
from dataclasses import dataclass

from synapse_retrievers.types import Namespace, NamespaceStats


@dataclass(frozen=True, slots=True)
class Stats:
    """One look at a memory.

    Attributes:
        url: Of the store.
        schema: Its schema version.
        bytes: Its size on disk; 0 in memory.
        namespaces: What each holds.
        waiting: Writes of this process that wait for the store.
        lost: Writes of this process that found no place to wait in.
        failures: Failures of ours that were passed over in this process.
        ambiguous: Prompts of this process that could belong to two memories and taught nothing.
        unidentified: Hits of this process that had no id and taught nothing.
    """

    url: str
    schema: int
    bytes: int
    namespaces: Mapping[Namespace, NamespaceStats]
    waiting: int = 0
    lost: int = 0
    failures: int = 0
    ambiguous: int = 0
    unidentified: int = 0

    @property
    def nodes(self) -> int:
        """Counted nodes of all namespaces."""
        return sum(one.nodes for one in self.namespaces.values())

    @property
    def edges(self) -> int:
        """Edges of all namespaces."""
        return sum(one.edges for one in self.namespaces.values())

    @property
    def episodes(self) -> int:
        """Episodes of all namespaces."""
        return sum(one.episodes for one in self.namespaces.values())
