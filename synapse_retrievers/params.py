"""Every constant of the product, with its unit, its range and why it has that value."""

import math
from dataclasses import dataclass, fields
from typing import Literal, Self, get_args

from synapse_retrievers.errors import ParamError

Kernel = Literal["conditional", "hub", "paper"]
Fusion = Literal["ranks", "scores"]

DAY = 86_400.0
"""Seconds in a day."""


@dataclass(frozen=True, slots=True)
class RecallParams:
    """How a recall finds energy and what it may change.

    The defaults are the rule that measured best on replayed histories (docs/benchmarks.md);
    `RecallParams.paper()` is the seed paper "Budget-Neutral Synaptic Recall" to the letter.

    Attributes:
        kernel: How energy spreads over edges. "conditional": one hop of P(neighbor | seed);
            "hub": the paper's spread, bounded and damped at hubs; "paper": as published.
        fusion: What energy is added to. "ranks": the place in the wrapped result;
            "scores": the wrapped scores (ranks where a hit has none), as in the paper.
        edge_budget: At most about so many edges are read for one hop of the kernels "hub" and
            "paper", those of the senders with most energy after damping; None: all of them.
            200,000 changes next to nothing and bounds what a hub can cost (docs/performance.md).
        seeds: How many leading nodes start with energy, 1..50; None: what the kernel was
            measured with, 5 for "conditional" and 3 for "hub" and "paper".
        hops: How far energy goes in the kernels "hub" and "paper", 1..4.
        attenuation: What is left of energy after one hop there, in (0, 1].
        hub_degree: Up to this many neighbors a node is damped by nothing, >= 1.
        edge_prior: Uses added to a node's own before P(b | a) is taken, >= 0: one accidental
            pair is no certainty.
        spread_weight: Share of the edges in the energy, in [0, 4].
        cue_weight: Share of the past episodes in the energy, in [0, 20]; 0 switches them off.
        cue_power: An episode speaks with its similarity to this power, in [1, 8]: many weak
            resemblances do not outweigh a strong one.
        cue_prior: Added to the sum of these weights over the episodes, in (0, 20]: a single weak
            resemblance is no certainty.
        cue_episodes: How many of the most similar episodes speak, 1..200.
        cue_floor: Similarity from which an episode speaks, in [0, 1).
        accepted_strength: Evidence of this strength counts whole in an episode, in (0, 2].
        common_share: From `common_from` episodes on, terms that stand in a larger share of them
            say nothing, in (0, 1].
        common_from: Episodes below which no term is common, >= 1.
        boost: What an energy of 1 is worth beside the first place, in [0, 10].
        displacements: At most how many absent nodes come in, 0..50; never more than half
            of the hits under fusion "ranks".
        displace_from: Least energy of a node that comes in, in [0, 1].
        displace_similarity: How like the question a single past one must be to bring a node in, in
            [0, 1]; several count together, and less like ones count by their share of it
            (`recall.cue.confidence`). 0: any resemblance will do.
        crowd_from: Up to this many episodes that holds, >= 1: of more, some resemble any question.
        crowd_growth: By what share it rises for every tenfold above, in [0, 4].
        candidates: How many absent nodes are fetched at most, so that dead ones can be skipped,
            1..64, not below `displacements`.
        time_limit: Seconds after which a recall gives up and changes nothing, in (0, 60].
    """

    kernel: Kernel = "conditional"
    fusion: Fusion = "ranks"
    seeds: int | None = None
    hops: int = 2
    edge_budget: int | None = None
    attenuation: float = 0.6
    hub_degree: int = 50
    edge_prior: float = 2.0
    spread_weight: float = 1.0
    cue_weight: float = 3.0
    cue_power: float = 2.0
    cue_prior: float = 0.2
    cue_episodes: int = 20
    cue_floor: float = 0.05
    accepted_strength: float = 0.4
    common_share: float = 0.2
    common_from: int = 50
    boost: float = 2.0
    displacements: int = 2
    displace_from: float = 0.0
    displace_similarity: float = 0.33
    crowd_from: int = 1_000
    crowd_growth: float = 0.45
    candidates: int = 8
    time_limit: float = 0.5

    def __post_init__(self) -> None:
        _one_of(self, "kernel", get_args(Kernel))
        _one_of(self, "fusion", get_args(Fusion))
        if self.seeds is not None:
            _whole(self, "seeds", 1, 50)
        _whole(self, "hops", 1, 4)
        if self.edge_budget is not None:
            _whole(self, "edge_budget", 1, 10**9)
        _real(self, "attenuation", 0, 1, open_low=True)
        _whole(self, "hub_degree", 1, 10**9)
        _real(self, "edge_prior", 0, 1e6)
        _real(self, "spread_weight", 0, 4)
        _real(self, "cue_weight", 0, 20)
        _real(self, "cue_power", 1, 8)
        _real(self, "cue_prior", 0, 20, open_low=True)
        _whole(self, "cue_episodes", 1, 200)
        _real(self, "cue_floor", 0, 1, open_high=True)
        _real(self, "accepted_strength", 0, 2, open_low=True)
        _real(self, "common_share", 0, 1, open_low=True)
        _whole(self, "common_from", 1, 10**9)
        _real(self, "boost", 0, 10)
        _whole(self, "displacements", 0, 50)
        _real(self, "displace_from", 0, 1)
        _real(self, "displace_similarity", 0, 1)
        _whole(self, "crowd_from", 1, 10**9)
        _real(self, "crowd_growth", 0, 4)
        _whole(self, "candidates", 1, 64)
        _real(self, "time_limit", 0, 60, open_low=True)
        if self.candidates < self.displacements:
            raise ParamError("candidates", self.candidates, "not below displacements")

    @property
    def seed_count(self) -> int:
        """How many leading nodes start with energy."""
        if self.seeds is not None:
            return self.seeds
        return 5 if self.kernel == "conditional" else 3

    @classmethod
    def paper(cls) -> Self:
        """The seed paper to the letter: no cue, sums, scores, two displaced from 0.15 on."""
        return cls(
            kernel="paper",
            fusion="scores",
            cue_weight=0.0,
            spread_weight=1.0,
            boost=0.3,
            displace_from=0.15,
        )


@dataclass(frozen=True, slots=True)
class LearningParams:
    """How use changes what is stored.

    Attributes:
        gain: What one co-activation of strength 1 adds to an edge's weight, in (0, 1].
        half_life_days: Of an edge that is not yet, or no longer, confirmed, in (0, 3650].
        shared_half_life_days: The same in the namespace `shared`, and its least.
        ephemeral_half_life_days: The fixed half-life in the namespace `ephemeral`.
        half_life_min_days: Shortest learned half-life, in (0, 3650].
        half_life_max_days: Longest learned half-life, not below the shortest.
        activation_scale: Activations at which ln(1 + n/scale) = ln 2, in (0, 1e6].
        potentiation_count: From this many activations an edge keeps its floor, >= 1.
        potentiation_floor: What is left of a potentiated edge however old it is, in [0, 1].
        count_half_life_days: Half-life of co-activation mass and use counts, in (0, 1e5].
        max_nodes: Nodes of one run that are paired, strongest evidence first, 2..256.
        max_episodes: Episodes kept in a namespace, >= 1; the longest unrenewed go first.
        repeat_after: Seconds within which the same query with the same nodes is a repetition,
            >= 0.
        prune_below: An edge may go when its weight is below this, in [0, 1] ...
        prune_co_below: ... and its co-activation mass below this, >= 0.
        feedback_strength: Of what a user confirms, in (0, 2].
        cited_strength: Of what the answer cites, in (0, 2].
        edited_strength: Of a node whose source a tool wrote, in (0, 2].
        read_strength: Of a node whose source a tool read or ran, in (0, 2].
        used_strength: Of a node whose wording the answer clearly shares, in (0, 2].
        hinted_strength: Of a node whose wording it may share, in (0, 2].
        used_score: Wording score from which use is clear, not below `hinted_score`.
        hinted_score: Wording score from which use is possible, > 0.
        unhelpful_penalty: What "this did not help" takes from what brought a node in, in [0, 2].
        unused_penalty: What it costs to be brought in and not used, in [0, 2].
        store_queries: Keep query texts; False keeps keyed hashes of their terms only (recall is
            the same, `explain` cannot quote).
    """

    gain: float = 0.30
    half_life_days: float = 30.0
    shared_half_life_days: float = 60.0
    ephemeral_half_life_days: float = 1.0
    half_life_min_days: float = 3.0
    half_life_max_days: float = 120.0
    activation_scale: float = 10.0
    potentiation_count: int = 5
    potentiation_floor: float = 0.20
    count_half_life_days: float = 365.0
    max_nodes: int = 32
    max_episodes: int = 20_000
    repeat_after: float = 3_600.0
    prune_below: float = 0.01
    prune_co_below: float = 0.02
    feedback_strength: float = 1.0
    cited_strength: float = 1.0
    edited_strength: float = 1.0
    read_strength: float = 0.5
    used_strength: float = 0.6
    hinted_strength: float = 0.4
    used_score: float = 1.5
    hinted_score: float = 1.0
    unhelpful_penalty: float = 0.30
    unused_penalty: float = 0.05
    store_queries: bool = True

    def __post_init__(self) -> None:
        _real(self, "gain", 0, 1, open_low=True)
        for field in fields(self):
            if field.name.startswith(("half_life", "shared_half", "ephemeral_half")):
                _real(self, field.name, 0, 3650, open_low=True)
            elif field.name.endswith("_strength"):
                _real(self, field.name, 0, 2, open_low=True)
            elif field.name.endswith("_penalty"):
                _real(self, field.name, 0, 2)
        if self.half_life_max_days < self.half_life_min_days:
            raise ParamError(
                "half_life_max_days", self.half_life_max_days, "not below half_life_min_days"
            )
        _real(self, "activation_scale", 0, 1e6, open_low=True)
        _whole(self, "potentiation_count", 1, 10**9)
        _real(self, "potentiation_floor", 0, 1)
        _real(self, "count_half_life_days", 0, 1e5, open_low=True)
        _whole(self, "max_nodes", 2, 256)
        _whole(self, "max_episodes", 1, 10**9)
        _real(self, "repeat_after", 0, 1e12)
        _real(self, "prune_below", 0, 1)
        _real(self, "prune_co_below", 0, 1e6)
        _real(self, "hinted_score", 0, 1e6, open_low=True)
        _real(self, "used_score", 0, 1e6, open_low=True)
        if self.used_score < self.hinted_score:
            raise ParamError("used_score", self.used_score, "not below hinted_score")
        if not isinstance(self.store_queries, bool):
            raise ParamError("store_queries", self.store_queries, "that is True or False")

    @classmethod
    def paper(cls) -> Self:
        """The seed paper to the letter: every used node counts 1, however it was noticed."""
        return cls(
            read_strength=1.0,
            used_strength=1.0,
            hinted_strength=1.0,
            unused_penalty=0.0,
        )


def _one_of(params: object, name: str, allowed: tuple[str, ...]) -> None:
    value = getattr(params, name)
    if value not in allowed:
        raise ParamError(name, value, "out of " + ", ".join(map(repr, allowed)))


def _whole(params: object, name: str, low: int, high: int) -> None:
    value = getattr(params, name)
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise ParamError(name, value, f"that is a whole number in [{low}, {high}]")


def _real(
    params: object,
    name: str,
    low: float,
    high: float,
    *,
    open_low: bool = False,
    open_high: bool = False,
) -> None:
    value = getattr(params, name)
    is_real = isinstance(value, int | float) and not isinstance(value, bool)
    if (
        not is_real
        or not math.isfinite(value)
        or not low <= value <= high
        or (open_low and value == low)
        or (open_high and value == high)
    ):
        ends = ("(" if open_low else "[", ")" if open_high else "]")
        raise ParamError(name, value, f"in {ends[0]}{low:g}, {high:g}{ends[1]}")
