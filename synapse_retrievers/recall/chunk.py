"""Which chunk of a document stands for it when it comes in."""

import math
from collections import Counter
from collections.abc import Sequence


def best_chunk(words: Sequence[str], chunks: Sequence[Sequence[str]]) -> int:
    """The chunk that shares most with the query: sum of idf over the shared terms.

    idf(t) = ln((1 + N) / (1 + df(t))) + 1 over the given chunks, so that what all of them hold
    decides nothing. Ties go to the earlier chunk.

    Args:
        words: The query's tokens.
        chunks: The tokens of each chunk, at least one chunk.

    Returns:
        Its position.

    >>> best_chunk(["token", "expires"], [["token", "made"], ["token", "expires"]])
    1
    """
    terms = [set(chunk) for chunk in chunks]
    frequency = Counter(term for chunk in terms for term in chunk)
    asked = sorted(set(words))

    def shared(place: int) -> float:
        return sum(
            math.log((1 + len(chunks)) / (1 + frequency[term])) + 1
            for term in asked
            if term in terms[place]
        )

    return max(range(len(chunks)), key=lambda place: (round(shared(place), 12), -place))
