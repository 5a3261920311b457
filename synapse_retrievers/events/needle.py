"""Windows of text by which a chunk is recognized in a prompt."""

import re
from collections.abc import Iterator, Sequence

from synapse_retrievers.tokens import CJK

Needle = tuple[str, ...]
"""Folded windows of one text; most of them must occur. Empty: the text is never recognized."""

_WINDOW = 60  # characters
_WINDOWS = 3
_SHORT = 20  # characters below which a text could stand inside a word
_LIMIT = 20_000  # characters of a text in which windows are sought

# Escaped four times over there are 15 backslashes; unbounded, a run of them takes quadratic time.
_ESCAPED = re.compile(r"(?:\\{1,15}(?:u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}))+")
_CODE_POINT = re.compile(r"\\+[ux]")
_ESCAPE = re.compile(r"\\+([nrtbf]?)")


def needles(texts: Sequence[str]) -> list[Needle]:
    """For each text the windows that tell it from the other texts of the list.

    Windows stand away from a text's ends, which headers and overlapping neighbors share, and in
    no different text of the list where that can be had. Equal texts have equal needles.
    """
    folded = [_folded(text[:_LIMIT]) for text in texts]
    distinct = list(dict.fromkeys(folded))
    found = {text: _needle(text, distinct) for text in distinct}
    return [found[text] for text in folded]


def needle(text: str) -> Needle:
    """The windows of a text that is alone."""
    return needles([text])[0]


def occurs(needle: Needle, prompt: str) -> bool:
    """Whether the needle's text stands in the prompt."""
    return found(prompt, [needle])[0]


def found(prompt: str, needles: Sequence[Needle]) -> list[bool]:
    r"""Which needles' texts stand in the prompt; white space and JSON escapes do not matter.

    >>> found('{"text": "keys\\nrotate every week"}', needles(["keys rotate every week", ""]))
    [True, False]
    """
    page = _folded(prompt)
    return [_occurs(needle, page) for needle in needles]


def _folded(text: str) -> str:
    # Both sides fold alike, so a text is found however often JSON or repr() has escaped it.
    if "\\" in text:
        text = _ESCAPED.sub(_unescaped, text)
        text = _ESCAPE.sub(lambda match: " " if match[1] else "", text)
    return " ".join(text.split())


def _unescaped(match: re.Match[str]) -> str:
    codes = (code.rjust(4, "0") for code in _CODE_POINT.split(match[0])[1:])
    return bytes.fromhex("".join(codes)).decode("utf-16-be", "surrogatepass")


def _needle(text: str, texts: Sequence[str]) -> Needle:
    if len(text) <= 2 * _WINDOW:
        return (text,) if text else ()
    others = "\n".join(other for other in texts if other != text)
    telling = []
    for window in _windows(text):
        if window not in others:
            telling.append(window)
        if len(telling) == _WINDOWS:
            break
    # None tells: the text is contained in the others, and stands wherever they do.
    return tuple(telling or list(_windows(text))[:_WINDOWS])


def _windows(text: str) -> Iterator[str]:
    """The middle, the quarters, then all others: every character is in one of them."""
    last = len(text) - _WINDOW
    for place in (last // 2, last // 4, last * 3 // 4, *range(0, last, _WINDOW // 2), last):
        yield text[place : place + _WINDOW]


def _occurs(needle: Needle, page: str) -> bool:
    if len(needle) == 1 and len(needle[0]) < _SHORT:
        return bool(_alone(needle[0]).search(page))
    missing = 0
    for window in needle:
        missing += window not in page
        if 2 * missing >= len(needle):
            return False
    return bool(needle)


def _alone(text: str) -> re.Pattern[str]:
    # Chinese and Japanese write no spaces: a neighbor of theirs ends no word of another script.
    letter = rf"[^\W{CJK}]"
    return re.compile(rf"(?<!{letter}){re.escape(text)}(?!{letter})")
