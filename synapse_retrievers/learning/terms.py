"""A query's terms as an episode keeps them."""

import math
from collections import Counter
from collections.abc import Iterable


def term_weights(words: Iterable[str]) -> dict[str, float]:
    """Term -> 1 + ln(count), scaled to Euclidean length 1; empty for no words.

    The document side of SMART's lnc.ltc weighting (Manning, Raghavan, Schuetze 2008, 6.4.3): it
    needs no other document, so it is fixed when it is written.

    >>> term_weights(["a", "b"])
    {'a': 0.7071067811865475, 'b': 0.7071067811865475}
    """
    weights = {term: 1.0 + math.log(count) for term, count in sorted(Counter(words).items())}
    length = math.sqrt(sum(weight * weight for weight in weights.values()))
    return {term: weight / length for term, weight in weights.items()}
