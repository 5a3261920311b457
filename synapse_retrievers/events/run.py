"""What is known of one run in one namespace: it grows, and teaches each thing once."""

import threading
from collections.abc import Iterable, Mapping

from synapse_retrievers.types import Namespace, NodeId, Use


class Run:
    """Queries asked and nodes used so far; small, because thousands are kept.

    `lock` is held while a piece of evidence is turned into a lesson and written, so that two
    threads never teach one pair twice. `used` changes only once the lesson is safe.
    """

    __slots__ = (
        "carriers",
        "chunks",
        "is_replay",
        "key",
        "lock",
        "namespace",
        "owner",
        "penalties",
        "queries",
        "seen_at",
        "used",
    )

    def __init__(self, key: str, namespace: Namespace, owner: object, seen_at: float) -> None:
        self.key = key
        self.namespace = namespace
        self.owner = owner
        self.lock = threading.RLock()
        self.queries: dict[str, tuple[NodeId, ...]] = {}
        self.used: dict[NodeId, Use] = {}
        self.carriers: dict[NodeId, object] = {}
        self.chunks: dict[NodeId, NodeId] = {}
        self.is_replay = False
        self.penalties: dict[NodeId, float] = {}
        self.seen_at = seen_at

    def asked(
        self,
        query: str,
        returned: Iterable[NodeId],
        carriers: Mapping[NodeId, object] | None = None,
        chunks: Mapping[NodeId, NodeId] | None = None,
    ) -> None:
        """Note a query of the run, what came back for it, and by which chunk a document came."""
        with self.lock:
            known = self.queries.get(query, ())
            self.queries[query] = tuple(dict.fromkeys((*known, *returned)))
            self.carriers.update(carriers or {})
            self.chunks.update(chunks or {})

    def with_evidence(self, evidence: Mapping[NodeId, Use]) -> dict[NodeId, Use]:
        """What the run is known to have used together with this, the strongest of each; pure."""
        united = dict(self.used)
        for node, use in evidence.items():
            known = united.get(node)
            if known is None or use.strength > known.strength:
                chunk = use.chunk or (known.chunk if known else self.chunks.get(node))
                united[node] = Use(use.strength, chunk)
        return united

    def known(self, nodes: Iterable[NodeId]) -> list[NodeId]:
        """Those of the nodes that its queries returned or that it is known to have used."""
        with self.lock:
            returned = {node for nodes in self.queries.values() for node in nodes}
            own = returned | self.used.keys()
        return [node for node in nodes if node in own]

    def credits(self, used: Mapping[NodeId, Use]) -> dict[str, dict[NodeId, Use]]:
        """Query -> the used nodes credited to it.

        A node is credited to the queries that returned it; one that no query returned, to all.
        """
        returned = {node for nodes in self.queries.values() for node in nodes}
        return {
            query: {
                node: use for node, use in used.items() if node in nodes or node not in returned
            }
            for query, nodes in self.queries.items()
        }
