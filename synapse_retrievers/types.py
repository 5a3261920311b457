"""The values that cross the borders between the parts; no behaviour."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

NodeId: TypeAlias = str
"""The exact text by which the wrapped store knows a node."""

Namespace: TypeAlias = str
"""A separate memory: `personal`, `shared`, `ephemeral`, `branch:<name>` or any other token."""

Pair: TypeAlias = tuple[NodeId, NodeId]
"""Two different nodes in ascending order."""

Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
Bools: TypeAlias = NDArray[np.bool_]
EdgeStates: TypeAlias = NDArray[Any]
"""One-dimensional array of `EDGE_STATE`."""
NodeStates: TypeAlias = NDArray[Any]
"""One-dimensional array of `NODE_STATE`."""

EDGE_STATE = np.dtype(
    [
        ("activations", "<u4"),  # reinforcements so far; 0 = there is no edge
        ("weight", "<f8"),  # in [0, 1], as it was at activated_at
        ("co", "<f8"),  # co-activation mass >= 0, as it was at activated_at
        ("activated_at", "<f8"),  # Unix seconds of the last reinforcement
        ("created_at", "<f8"),  # Unix seconds of the first
    ]
)
NODE_STATE = np.dtype(
    [
        ("used", "<f8"),  # sum of the strengths of its uses, as it was at used_at
        ("used_at", "<f8"),  # Unix seconds
        ("gone_at", "<f8"),  # Unix seconds since when fetching it finds nothing; NaN = it is there
    ]
)


@dataclass(frozen=True, slots=True)
class Hit:
    """One place of a result list, best first.

    `id` is None where the wrapped store gives none; such a hit keeps its place and teaches nothing.
    `score` is higher-is-better or None; NaN and infinities are allowed and mean nothing.
    """

    id: NodeId | None
    score: float | None = None


@dataclass(frozen=True, slots=True)
class Edge:
    """A learned, undirected association of two nodes in one namespace, as stored."""

    pair: Pair
    namespace: Namespace
    weight: float
    co: float
    activations: int
    activated_at: float
    created_at: float


@dataclass(frozen=True, slots=True)
class Node:
    """What is stored of one node in one namespace; `gone_at` None = it is there."""

    id: NodeId
    namespace: Namespace
    degree: int
    used: float
    used_at: float
    gone_at: float | None = None


@dataclass(frozen=True, slots=True)
class Use:
    """How strongly an episode used a node, and which chunk of it (nodes that are documents)."""

    strength: float
    chunk: NodeId | None = None


@dataclass(frozen=True, slots=True)
class Episode:
    """One remembered use: a query and the nodes that were used for it.

    Attributes:
        namespace: Where it was learned.
        query: The query's text, or `hmac:<hex>` where texts are not kept.
        terms: Term (or its keyed hash) -> weight; the weights have Euclidean length 1, or there
            are none.
        used: Node -> use; never empty once stored.
        renewed_at: Unix seconds of the last time it was learned.
    """

    namespace: Namespace
    query: str
    terms: Mapping[str, float]
    used: Mapping[NodeId, Use]
    renewed_at: float


@dataclass(frozen=True, slots=True)
class Headers:
    """What is counted of nodes, each of shape [namespaces, nodes].

    Attributes:
        degree: How many neighbors the node has in that namespace.
        used: Sum of the strengths of its uses, as it was at `used_at` (Unix seconds).
        used_at: When that was.
        gone_at: Unix seconds since when fetching it finds nothing; NaN: it is there.
    """

    degree: Ints
    used: Floats
    used_at: Floats
    gone_at: Floats


@dataclass(frozen=True, slots=True)
class Neighbors:
    """Edges that leave a frontier, one row an edge and namespace, arrays of one length.

    `namespace` indexes the namespaces of the view, `sender` the frontier that
    was asked for, `neighbor` is a node handle; rows are in ascending order of the three.
    `headers` are the frontier's own.
    """

    namespace: Ints
    sender: Ints
    neighbor: Ints
    state: EdgeStates
    headers: Headers


@dataclass(frozen=True, slots=True)
class Terms:
    """Terms as the namespaces of a view know them, one entry a namespace.

    Attributes:
        episodes: How many episodes it holds.
        handle: To ask for each term's postings with; -1 where no episode has it.
        document_frequency: In how many episodes each term stands.
    """

    episodes: list[int]
    handle: list[list[int]]
    document_frequency: list[list[int]]


@dataclass(frozen=True, slots=True)
class Postings:
    """Which episodes hold the asked terms, rows in ascending order of `term`, then `episode`.

    `term` indexes the handles asked for, `episode` is a handle, `weight` the term's in it.
    """

    term: Ints
    episode: Ints
    weight: Floats


@dataclass(frozen=True, slots=True)
class Uses:
    """What episodes used, one entry an episode asked for, in that order.

    Attributes:
        query: Its text or digest; "" where there is none.
        renewed_at: Unix seconds.
        nodes: Handle of a node, its strength, and the handle of its chunk or -1.
    """

    query: list[str] = field(default_factory=list)
    renewed_at: list[float] = field(default_factory=list)
    nodes: list[list[tuple[int, float, int]]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Stored:
    """What a rule is handed: all that is stored of some nodes and of one query.

    Attributes:
        namespace: Where it is stored.
        nodes: As asked, distinct, ascending.
        pairs: Shape [pairs, 2], positions in `nodes`, every pair once, ascending.
        edges: Shape [pairs]; `activations` 0 where there is no edge.
        counters: Shape [nodes]; all 0 (gone_at NaN) for a node never seen.
        episode: The episode of the asked query, if there is one.
        taught_at: When the asked run key was taught, if it was.
    """

    namespace: Namespace
    nodes: tuple[NodeId, ...]
    pairs: Ints
    edges: EdgeStates
    counters: NodeStates
    episode: Episode | None
    taught_at: float | None


@dataclass(frozen=True, slots=True)
class Changes:
    """What a rule returns; None and empty mean: leave it as it is.

    Attributes:
        edges: Shape of `Stored.edges`; rows with `activations` 0 are not stored.
        counters: Shape of `Stored.counters`.
        episode: Takes the place of the episode with its query; without used nodes it is removed.
        episode_cap: Then the namespace's longest-unrenewed episodes above it are removed.
        taught_at: Records the asked run key with this time (Unix seconds).
        forget_keys_before: Run keys recorded before this time are removed.
    """

    edges: EdgeStates | None = None
    counters: NodeStates | None = None
    episode: Episode | None = None
    episode_cap: int | None = None
    taught_at: float | None = None
    forget_keys_before: float | None = None


@dataclass(frozen=True, slots=True)
class Removed:
    """How much a call removed."""

    edges: int = 0
    episodes: int = 0
    nodes: int = 0


@dataclass(frozen=True, slots=True)
class NamespaceStats:
    """What one namespace holds, whose nodes it joins and of which collection."""

    nodes: int
    edges: int
    episodes: int
    node_kind: str | None
    collection: str | None


@dataclass(frozen=True, slots=True)
class StoreStats:
    """What a store holds; `bytes` on disk, 0 in memory."""

    url: str
    schema: int
    bytes: int
    namespaces: Mapping[Namespace, NamespaceStats] = field(default_factory=dict)
