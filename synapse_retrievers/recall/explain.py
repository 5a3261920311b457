"""What one recall moved and why: a side channel, never the documents' metadata."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from synapse_retrievers.types import Namespace, NodeId

MoveKind = Literal["displaced_in", "displaced", "raised", "lowered"]


@dataclass(frozen=True, slots=True)
class Carrier:
    """Something learned that gave a node energy.

    Attributes:
        kind: "episode" (a past query) or "edge" (a learned association).
        namespace: Where it was learned.
        source: The past query's text (or digest), or the node at the other end of the edge.
        path: The nodes that energy went through, from the seed to the node; empty for episodes.
        weight: The episode's similarity to this query, or the edge's P(node | source) or weight.
        energy: What it gave, before bounds.
        age_days: Since it was last learned.
        chunk: The chunk of the node that was used then, where nodes are documents.
    """

    kind: Literal["episode", "edge"]
    namespace: Namespace
    source: str
    weight: float
    energy: float
    age_days: float
    path: tuple[NodeId, ...] = ()
    chunk: NodeId | None = None

    def __str__(self) -> str:
        if self.kind == "episode":
            told = f"past query {self.source!r:.100} (similarity {self.weight:.2f}"
        else:
            told = f"used together, {' -> '.join(self.path)} (weight {self.weight:.2f}"
        return f"{told}, {self.age_days:.0f} days ago, {self.namespace})"


@dataclass(frozen=True, slots=True)
class Move:
    """One node whose place changed; places count from 0, None = not in that result.

    Attributes:
        node: Whose; None for a hit without an id.
        kind: What happened to it.
        before: Its place in the wrapped result.
        after: Its place in the new one.
        energy: What reached it, in [0, 1] (kernel "paper": unbounded).
        carriers: What gave it energy, most first.
        displaced: The node that had to go for it.
    """

    node: NodeId | None
    kind: MoveKind
    before: int | None
    after: int | None
    energy: float = 0.0
    carriers: tuple[Carrier, ...] = ()
    displaced: NodeId | None = None

    def __str__(self) -> str:
        because = f": {self.carriers[0]}" if self.carriers else ""
        if self.kind == "displaced_in":
            told = f"{self.node} came in at {self.after} for {self.displaced}"
        elif self.kind == "displaced":
            return f"{self.node} at {self.before} was displaced"
        else:
            told = f"{self.node} was {self.kind} from {self.before} to {self.after}"
        return f"{told}, energy {self.energy:.3f}{because}"


@dataclass(frozen=True, slots=True)
class Reached:
    """A node that energy reached, and what carried it there (most first)."""

    node: NodeId
    energy: float
    carriers: tuple[Carrier, ...] = ()
    is_hit: bool = False

    def __str__(self) -> str:
        because = "; ".join(map(str, self.carriers))
        return f"{self.node}: energy {self.energy:.3f}" + (f" from {because}" if because else "")


@dataclass(frozen=True, slots=True)
class Trace:
    """What one recall did.

    Attributes:
        query: As asked.
        namespace: The active one; None when the call named none.
        budget: How many hits the wrapped retriever returned.
        is_cold: The wrapped result was returned as it was.
        reason: Why nothing, or nothing more, was changed; None when nothing was held back.
        moves: Nodes whose place changed, in the new order, then the displaced.
        reached: Hits and candidates that energy reached, most first.
        refused: Candidate -> why it could not come in.
        skipped: How many edges `RecallParams.edge_budget` left unread.
    """

    query: str
    namespace: Namespace | None
    budget: int
    is_cold: bool = True
    reason: str | None = None
    moves: tuple[Move, ...] = ()
    reached: tuple[Reached, ...] = ()
    refused: Mapping[NodeId, str] = field(default_factory=dict)
    skipped: int = 0

    @property
    def displaced_in(self) -> tuple[Move, ...]:
        """The moves of nodes that the wrapped retriever had not returned."""
        return tuple(move for move in self.moves if move.kind == "displaced_in")

    def __str__(self) -> str:
        head = f"{self.query!r} in {self.namespace}: {self.budget} hits"
        if self.is_cold:
            return f"{head}, unchanged ({self.reason or 'nothing learned reaches them'})"
        lines = [f"{head}, {len(self.moves)} moved" + (f" ({self.reason})" if self.reason else "")]
        lines += [f"  {move}" for move in self.moves]
        lines += [f"  {node} refused: {why}" for node, why in self.refused.items()]
        return "\n".join(lines)
