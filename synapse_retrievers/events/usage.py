"""Which given nodes an answer used, read off its wording."""

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain

from synapse_retrievers.events.symbols import names_symbol
from synapse_retrievers.events.wording import has_content, without_refusals
from synapse_retrievers.tokens import CJK, words

Gram = tuple[str, str, str]

_LIMIT = 100_000  # characters of each text that are looked at, some 20,000 words
_NAMED = 1.5  # what naming a symbol is worth: as much as clearly shared wording

_PURE_CJK = re.compile(f"[{CJK}]+").fullmatch
_HAN = re.compile("[\u3400-\u9fff\U00020000-\U0003ffff]").search

_CONTENT_WORDS = 2


def usage(answer: str, query: str, chunks: Sequence[str]) -> list[float]:
    """How clearly the answer used each chunk; 0 = no sign of it.

    The words stand in 3-grams. A 3-gram counts when at least two of its words carry content and
    the query does not hold it; it is worth 1 / c**2 when c different chunks hold it (half of that
    in Chinese, a quarter in kana and Hangul, whose words are longer than their pairs). A chunk
    that shares only what another chunk shares too, and more, earns nothing: that is the overlap
    of two windows. A symbol that one chunk alone defines and the answer names is worth 1.5.
    Sentences saying that the context lacks something count for nothing.

    Args:
        answer: What the model wrote, without the prompt.
        query: What was asked; its own wording proves no use.
        chunks: The texts given to the model; equal texts score alike, empty ones 0.

    Returns:
        A score >= 0 for each chunk; LearningParams.used_score and hinted_score judge it.

    >>> usage("It opens the circuit breaker after five failures.", "When does it stop?",
    ...       ["The client opens the circuit breaker after five failures.", "Keys are rotated."])
    [5.0, 0.0]
    """
    said, asked = without_refusals(answer[:_LIMIT]), query[:_LIMIT]
    texts = [chunk[:_LIMIT] for chunk in chunks]
    distinct = list(dict.fromkeys(texts))
    wording = _shared_wording(said, asked, distinct)
    naming = names_symbol(said, asked, distinct)
    score = {
        text: max(shared, _NAMED * named)
        for text, shared, named in zip(distinct, wording, naming, strict=True)
    }
    return [score[text] for text in texts]


def _grams(text: str) -> Iterator[Gram]:
    sequence = words(text)
    return zip(sequence, sequence[1:], sequence[2:], strict=False)


def _shared_wording(said: str, asked: str, texts: Sequence[str]) -> list[float]:
    told = set(_grams(said)).difference(_grams(asked))
    shared = [told.intersection(_grams(text)) for text in texts]
    holders = Counter(chain.from_iterable(shared))
    worth = {gram: _worth(gram) / held**2 for gram, held in holders.items()}
    telling = [{gram for gram in grams if worth[gram]} for grams in shared]
    return [
        0.0
        if any(grams < others for others in telling)
        else math.fsum(worth[gram] for gram in grams)
        for grams in telling
    ]


def _worth(gram: Gram) -> float:
    if sum(map(has_content, gram)) < _CONTENT_WORDS:
        return 0.0
    joined = "".join(gram)
    if joined.isascii() or not _PURE_CJK(joined):
        return 1.0
    return 0.5 if _HAN(joined) else 0.25
