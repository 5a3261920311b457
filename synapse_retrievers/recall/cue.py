"""Energy from past episodes whose query resembles this one."""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from synapse_retrievers.params import RecallParams
from synapse_retrievers.types import Floats, Ints, Postings, Uses


@dataclass(frozen=True, slots=True)
class Similar:
    """Episodes like the query, best first; `similarity` in (0, 1]; `of` how many there are."""

    episode: Ints
    similarity: Floats
    of: int = 0


@dataclass(frozen=True, slots=True)
class Cue:
    """What the speaking episodes of one namespace give to the nodes they used.

    Attributes:
        weight: Sum of w = sim ** 2 over the speaking episodes.
        speaking: Positions in the `Uses` they were chosen from, best first.
        similarity: One value a speaking episode.
        use: Positions of their rows in the `Uses`.
        energy: What each of these rows gives to its node: w * min(1, s / 0.4) / sqrt(n).
        support: The same undivided, w * min(1, s / 0.4): how sure the episode is of the node.
        of: How many episodes the namespace holds.
    """

    weight: float
    speaking: Ints
    similarity: Floats
    use: Ints
    energy: Floats
    support: Floats
    of: int = 0


def query_terms(words: Iterable[str]) -> dict[str, float]:
    """Term -> 1 + ln(count), in ascending order of the term."""
    return {term: 1.0 + math.log(count) for term, count in sorted(Counter(words).items())}


def similar(terms: dict[str, float], postings: Postings, params: RecallParams) -> Similar:
    """The episodes most like the query: at least as many as may speak, ties included.

    Cosine of SMART lnc.ltc (Manning, Raghavan, Schuetze 2008, 6.4.3): the idf stands on the
    query's side only, and squared, as if it stood on both,

        weight(t) = (1 + ln tf(t)) * idf(t) ** 2,    idf(t) = ln((1 + N) / (1 + df(t))) + 1

    with N and df over the namespace's episodes; a term never seen lengthens the query; from
    `common_from` episodes on, terms in more than `common_share` of them have idf 0.

    Args:
        terms: Out of `query_terms`, in the order in which the postings were asked for.
        postings: What one namespace holds of them.
        params: How many may speak, from which similarity.

    Returns:
        Similarities >= `cue_floor`, rounded to 12 digits, best first; empty where none is.
    """
    total, frequency = postings.episodes, postings.document_frequency
    idf = np.log((1.0 + total) / (1.0 + frequency)) + 1.0
    if total >= params.common_from:
        idf[frequency > params.common_share * total] = 0.0
    weights = np.fromiter(terms.values(), float, len(terms)) * idf * idf
    length = float(np.sqrt(np.sum(weights * weights)))
    if not len(postings.episode) or length == 0.0:
        return Similar(np.zeros(0, np.int64), np.zeros(0), total)
    episode, row = np.unique(postings.episode, return_inverse=True)
    shares = weights[postings.term] * postings.weight / length
    similarity = np.round(np.bincount(row, shares, len(episode)), 12)
    if len(similarity) > params.cue_episodes:
        least = np.partition(similarity, -params.cue_episodes)[-params.cue_episodes]
        is_wanted = similarity >= max(least, params.cue_floor)
    else:
        is_wanted = similarity >= params.cue_floor
    is_wanted &= similarity > 0.0
    order = np.argsort(-similarity[is_wanted], kind="stable")
    return Similar(episode[is_wanted][order], np.minimum(similarity[is_wanted][order], 1.0), total)


def cue(found: Similar, uses: Uses, params: RecallParams, used: Ints | None = None) -> Cue:
    """What the `cue_episodes` most similar episodes give; ties: newest first, then query text.

    An episode that used nothing but what this run has used already is silent: it is mostly the
    run's own, and as like the question as can be.

        cue(v) = sum over episodes j of w_j * min(1, strength_j(v) / 0.4) / sqrt(nodes of j)
        w_j    = sim_j ** 2

    Args:
        found: Out of `similar`.
        uses: What these episodes used, in the same order.
        params: How many speak, how loudly, and from which strength a use counts whole.
        used: Handles of what this run has used; None: nothing.
    """
    new = uses.episode if used is None else uses.episode[~np.isin(uses.node, used)]
    order = sorted(
        np.unique(new).tolist(),
        key=lambda row: (-found.similarity[row], -uses.renewed_at[row], uses.query[row]),
    )[: params.cue_episodes]
    speaking = np.array(order, dtype=np.int64)
    weights = np.zeros(len(found.episode))
    weights[speaking] = found.similarity[speaking] ** params.cue_power
    sizes = np.maximum(np.bincount(uses.episode, minlength=len(found.episode)), 1)
    share = np.minimum(1.0, uses.strength / params.accepted_strength)
    support = weights[uses.episode] * share
    use = np.flatnonzero(support > 0.0)
    return Cue(
        float(np.sum(weights)),
        speaking,
        found.similarity[speaking],
        use,
        support[use] / np.sqrt(sizes[uses.episode[use]]),
        support[use],
        found.of,
    )


def confidence(support: Floats, episodes: int, params: RecallParams) -> Floats:
    """How far the memory is about the question, for each node, in [0, 1]; 1: it may come in.

        confidence(v) = min(1, sqrt(support(v)) / s)
        support(v)    = sum over episodes of w * min(1, strength(v) / 0.4)
        s             = 0.33 * (1 + 0.45 * log10(N / 1000))        N episodes, 1,000 at least

    sqrt(support) is the similarity of the one past question that is worth as much. A question
    about something else resembles many past ones a little and none much; the more there are, the
    more one of them resembles it by chance (docs/benchmarks.md, "off topic").

    Args:
        support: Of some nodes, over all namespaces read.
        episodes: How many these namespaces hold.
        params: How like a past question must be.

    >>> confidence(np.array([0.0, 0.33**2 / 4, 0.3**2 + 0.25**2]), 1_000, RecallParams()).round(3)
    array([0. , 0.5, 1. ])
    >>> confidence(np.array([0.5**2]), 100_000, RecallParams()).round(3)
    array([0.797])
    """
    crowd = math.log10(max(episodes, params.crowd_from) / params.crowd_from)
    least = min(1.0, params.displace_similarity * (1.0 + params.crowd_growth * crowd))
    if least == 0.0:
        return np.ones(len(support))
    likeness = np.round(support ** (1.0 / params.cue_power) / least, 12)
    return np.minimum(1.0, likeness)
