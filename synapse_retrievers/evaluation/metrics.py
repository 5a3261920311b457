"""How good a ranking is against what was used; trec_eval's own code does the sums."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import pytrec_eval

from synapse_retrievers.errors import ParamError
from synapse_retrievers.types import NodeId


@dataclass(frozen=True, slots=True)
class Measures:
    """The metrics of one ranking, each in [0, 1].

    Ranks are counted over distinct nodes, each at its first place: a node that stands there twice
    (two chunks of one file) counts once and fills two places.

    Attributes:
        recall: The share of the used nodes among the k places (trec_eval `recall`).
        reciprocal_rank: 1 / the rank of the first used node, 0 if there is none (`recip_rank`).
        ndcg: Normalized discounted cumulative gain as a share of the best order of min(k, used)
            nodes (Järvelin & Kekäläinen 2002, gains 0 and 1; `ndcg_cut`).
        hit: 1 if there is a used node among the k places, else 0 (`success`).
    """

    recall: float
    reciprocal_rank: float
    ndcg: float
    hit: float


def measured(ranked: Sequence[NodeId], used: Collection[NodeId], k: int) -> Measures:
    """The metrics of the first `k` places.

    Args:
        ranked: Best first.
        used: Not empty.
        k: How many places count, at least 1.

    Raises:
        ParamError: Nothing was used, or `k` is below 1.

    >>> measured(["a", "a", "b", "c"], {"a", "c"}, k=3)
    Measures(recall=0.5, reciprocal_rank=1.0, ndcg=0.6131471927654584, hit=1.0)
    """
    if not used:
        raise ParamError("used", used, "that is not empty")
    if k < 1:
        raise ParamError("k", k, "of at least 1")
    nodes = list(dict.fromkeys(ranked[:k]))
    scores = {node: float(len(nodes) - rank) for rank, node in enumerate(nodes)}
    names = (f"recall.{k}", "recip_rank", f"ndcg_cut.{k}", f"success.{k}")
    judge = pytrec_eval.RelevanceEvaluator({"q": dict.fromkeys(used, 1)}, names)
    found = judge.evaluate({"q": scores})["q"]
    return Measures(
        found[f"recall_{k}"], found["recip_rank"], found[f"ndcg_cut_{k}"], found[f"success_{k}"]
    )
