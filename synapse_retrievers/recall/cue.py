"""Energy from past episodes whose query resembles this one."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np

from synapse_retrievers.params import RecallParams
from synapse_retrievers.types import Floats, Ints, Postings, Uses

_AT_ONCE = 8_192
"""Postings that are read without asking whether fewer would do: about 0.1 ms."""
_LOOKUP = 100
"""Postings that could be read in the time in which the rest of one episode is looked up."""
_DENSE = 16
_ROUNDING = 1e-9
_NOTHING = 5e-13  # rounds to 0


@dataclass(frozen=True, slots=True)
class Similar:
    """Episodes like the query, best first; `similarity` in (0, 1]; `of` how many there are."""

    episode: Ints
    similarity: Floats
    of: int = 0


class Speaker(NamedTuple):
    """An episode that speaks: its place among the episodes chosen from, and how loudly."""

    row: int
    similarity: float
    weight: float  # similarity ** 2


@dataclass(frozen=True, slots=True)
class Cue:
    """What the speaking episodes of one namespace say.

    Attributes:
        speakers: Best first.
        uses: What all episodes used that were chosen from.
        weight: Sum of the speakers' weights.
        of: How many episodes the namespace holds.
    """

    speakers: Sequence[Speaker] = ()
    uses: Uses = field(default_factory=Uses)
    weight: float = 0.0
    of: int = 0


def query_terms(words: Iterable[str]) -> dict[str, float]:
    """Term -> 1 + ln(count), in ascending order of the term."""
    return {term: 1.0 + math.log(count) for term, count in sorted(Counter(words).items())}


class Index(Protocol):
    """Which episodes of one namespace hold the query's terms."""

    @property
    def episodes(self) -> int:
        """How many episodes the namespace holds."""
        ...

    @property
    def document_frequency(self) -> Sequence[int]:
        """In how many episodes each of the query's terms stands."""
        ...

    def postings(self, places: Sequence[int]) -> Postings:
        """Where these of the query's terms stand; `term` counts in `places`."""
        ...

    def weights(self, episodes: Ints, places: Sequence[int]) -> Floats:
        """Shape [episodes, places]: the weight of these of the query's terms in each episode."""
        ...


def similar(terms: dict[str, float], index: Index, params: RecallParams) -> Similar:
    """The episodes most like the query: at least as many as may speak, ties included.

    Cosine of SMART lnc.ltc (Manning, Raghavan, Schuetze 2008, 6.4.3): the idf stands on the
    query's side only, and squared, as if it stood on both,

        weight(t) = (1 + ln tf(t)) * idf(t) ** 2,    idf(t) = ln((1 + N) / (1 + df(t))) + 1

    with N and df over the namespace's episodes; a term never seen lengthens the query; from
    `common_from` episodes on, terms in more than `common_share` of them have idf 0.

    The rarest terms are read first. An episode has length 1, so terms that are not read yet can
    give it no more than the Euclidean length of their shares (Cauchy and Schwarz); once that is
    less than what the last speaking episode has already, no other episode can become one of them,
    and the rest is looked up for those that still can (as max-score does: Turtle and Flood 1995).
    The result is that of reading everything.

    Args:
        terms: Out of `query_terms`.
        index: What one namespace holds of them, in the same order.
        params: How many may speak, from which similarity.

    Returns:
        Similarities >= `cue_floor`, rounded to 12 digits, best first; empty where none is.
    """
    total, frequency = index.episodes, index.document_frequency
    shares = _shares(terms, total, frequency, params)
    order = sorted(
        (place for place, share in enumerate(shares) if share > 0.0 and frequency[place]),
        key=lambda place: -shares[place],
    )
    episode, score = np.zeros(0, np.int64), np.zeros(0)
    ahead = sum(frequency[place] for place in order)
    end = done = 0
    while end < len(order):
        start, end = end, _next_part(order, end, frequency, max(_AT_ONCE, done))
        part, rest = order[start:end], order[end:]
        rows = index.postings(part)
        given = np.array([shares[place] for place in part])[rows.term] * rows.weight
        episode, score = _added(episode, score, rows.episode, given)
        done += sum(frequency[place] for place in part)
        if not rest:
            break
        most = math.sqrt(sum(shares[place] ** 2 for place in rest))
        least = max(_last_speaking(score, params), params.cue_floor) - _ROUNDING
        can_speak = score + most >= least
        if most < least and np.count_nonzero(can_speak) * _LOOKUP < ahead - done:
            episode, score = episode[can_speak], score[can_speak]
            unread = np.array([shares[place] for place in rest])
            score = score + index.weights(episode, rest) @ unread
            break
    similarity = np.round(score, 12)
    least = max(_last_speaking(similarity, params), params.cue_floor, _NOTHING)
    wanted = (similarity >= least).nonzero()[0]
    wanted = wanted[np.argsort(-similarity[wanted], kind="stable")]
    return Similar(episode[wanted], np.minimum(similarity[wanted], 1.0), total)


def _shares(
    terms: Mapping[str, float], total: int, frequency: Sequence[int], params: RecallParams
) -> list[float]:
    """The query's weights, scaled to length 1; all 0 where every term is common."""
    most = params.common_share * total if total >= params.common_from else math.inf
    weights = [
        weight * (math.log((1.0 + total) / (1.0 + df)) + 1.0) ** 2 if df <= most else 0.0
        for weight, df in zip(terms.values(), frequency, strict=True)
    ]
    length = math.sqrt(sum(weight * weight for weight in weights))
    return [weight / length for weight in weights] if length else weights


def _next_part(order: Sequence[int], start: int, frequency: Sequence[int], most: int) -> int:
    """Where the terms end, one at least, that have no more than so many postings together."""
    end, count = start + 1, frequency[order[start]]
    while end < len(order) and (count := count + frequency[order[end]]) <= most:
        end += 1
    return end


def _added(episode: Ints, score: Floats, more: Ints, given: Floats) -> tuple[Ints, Floats]:
    """Distinct episodes, ascending, and the sum of what each was given."""
    if len(episode):
        more, given = np.concatenate([episode, more]), np.concatenate([score, given])
    if not len(more):
        return more, given
    first = int(more.min())
    span = int(more.max()) - first + 1
    # Counting into every number between is quicker than sorting, unless they lie far apart.
    if span <= _DENSE * len(more):
        sums = np.bincount(more - first, given, span)
        found = sums.nonzero()[0]
        return np.asarray(found + first, np.int64), sums[found].astype(np.float64)
    found, row = np.unique(more, return_inverse=True)
    return found, np.bincount(row, given, len(found)).astype(np.float64)


def _last_speaking(score: Floats, params: RecallParams) -> float:
    """What the last of the episodes that may speak has; 0 while there are fewer."""
    if len(score) < params.cue_episodes:
        return 0.0
    return float(np.partition(score, -params.cue_episodes)[-params.cue_episodes])


def cue(
    found: Similar, uses: Uses, params: RecallParams, used: AbstractSet[int] = frozenset()
) -> Cue:
    """What the `cue_episodes` most similar episodes say; ties: newest first, then query text.

    An episode that used nothing but what this run has used already is silent: it is mostly the
    run's own, and as like the question as can be.

        cue(v) = sum over episodes j of w_j * min(1, strength_j(v) / 0.4) / sqrt(nodes of j)
        w_j    = sim_j ** 2

    Args:
        found: Out of `similar`.
        uses: What these episodes used, in the same order.
        params: How many speak, and how loudly.
        used: Handles of what this run has used.
    """
    similarity = found.similarity.tolist()
    rows: Iterable[int] = range(len(similarity))
    if used:
        rows = [row for row in rows if any(one[0] not in used for one in uses.nodes[row])]
    order = sorted(rows, key=lambda row: (-similarity[row], -uses.renewed_at[row], uses.query[row]))
    speakers = [
        Speaker(row, similarity[row], similarity[row] ** params.cue_power)
        for row in order[: params.cue_episodes]
        if uses.nodes[row]
    ]
    return Cue(speakers, uses, sum([one.weight for one in speakers]), found.of)


def least_likeness(episodes: int, params: RecallParams) -> float:
    """How like the question a single past one must be to bring a node in, of so many episodes.

        s = 0.33 * (1 + 0.45 * log10(N / 1000))        N episodes, 1,000 at least

    A question about something else resembles many past ones a little and none much; the more
    there are, the more one of them resembles it by chance (docs/benchmarks.md, "off topic").

    >>> [round(least_likeness(count, RecallParams()), 3) for count in (100, 1_000, 100_000)]
    [0.33, 0.33, 0.627]
    """
    crowd = math.log10(max(episodes, params.crowd_from) / params.crowd_from)
    return min(1.0, params.displace_similarity * (1.0 + params.crowd_growth * crowd))


def confidence(support: float, least: float, params: RecallParams) -> float:
    """How far the memory is about the question, for one node, in [0, 1]; 1: it may come in.

        confidence(v) = min(1, sqrt(support(v)) / s)
        support(v)    = sum over episodes of w * min(1, strength(v) / 0.4)

    sqrt(support) is the similarity of the one past question that is worth as much.

    Args:
        support: Of the node, over all namespaces read.
        least: s, out of `least_likeness`.
        params: The power that the similarities were raised to.

    >>> [confidence(s, 0.33, RecallParams()) for s in (0.0, 0.33**2 / 4, 0.3**2 + 0.25**2)]
    [0.0, 0.5, 1.0]
    """
    if least == 0.0:
        return 1.0
    return min(1.0, round(math.pow(support, 1.0 / params.cue_power) / least, 12))
