"""The words of a text, as the cue and the usage rule see them."""

import re
from itertools import pairwise
from unicodedata import category, normalize

CJK = (
    "\u1100-\u11ff\u3005-\u3007\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3105-\u312f"
    "\u3131-\u318e\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
"""Han, kana, bopomofo and Hangul, to stand inside a regular expression's brackets."""

# re knows no \p{M}, and \w holds no marks: without them Hindi and vocalized Arabic fall to pieces.
_MARKS = "".join(c for c in map(chr, range(0x300, 0x1E00)) if category(c)[0] == "M")
_WORD = rf"[^\W{CJK}]+(?:[{_MARKS}]+[^\W{CJK}]*)*"
_RUN = re.compile(rf"[{CJK}]+|{_WORD}")
_ASCII_RUN = re.compile(r"\w+", re.ASCII)
_FIRST_CJK = "\u1100"
_IS_CJK = re.compile(f"[{CJK}]").match
# Between the parts of snake_case and CamelCase: HTTPServer is HTTP and Server, but APIs is one.
_SEAM = re.compile(r"_+|(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z](?!s(?![a-z]))[a-z])")
# normalize() sorts a run of marks in quadratic time; no text has more than 30 (Unicode annex 15).
_LONG = 1_000  # characters; below, even that is quick
_PILE = re.compile(r"((?:[^\w\x00-\x7f]|[\uff9e\uff9f]){30})(?:[^\w\x00-\x7f]|[\uff9e\uff9f])+")


def tokens(text: str) -> list[str]:
    """The words of `text` in their order, folded; an identifier is followed by its parts.

    Words are Unicode letters, marks and digits; composed, decomposed and compatibility forms of a
    character are the same. Han, kana and Hangul give every two neighboring characters, a lone one
    itself. Takes linear time and never fails, whatever the text holds.

    >>> tokens("Does verify_token() use HTTPServer?")
    ['does', 'verify_token', 'verify', 'token', 'use', 'httpserver', 'http', 'server']
    >>> tokens("向量数据库")
    ['向量', '量数', '数据', '据库']
    """
    return _split(text, keep_whole=True)


def words(text: str) -> list[str]:
    """As `tokens`, but an identifier gives its parts only: what stands beside what in the text.

    >>> words("verify_token checks")
    ['verify', 'token', 'checks']
    """
    return _split(text, keep_whole=False)


def _split(text: str, *, keep_whole: bool) -> list[str]:
    is_ascii = text.isascii()
    runs = _ASCII_RUN.findall(text) if is_ascii else _RUN.findall(_normalized(text))
    found: list[str] = []
    for run in runs:
        folded = run.casefold()
        if run >= _FIRST_CJK and _IS_CJK(run):
            found += [run] if len(run) == 1 else map("".join, pairwise(run))
        elif folded[1:] == run[1:] and "_" not in run:  # the usual word, capitalized at most
            found.append(folded)
        else:
            parts = [part.casefold() for part in _SEAM.split(run) if part]
            if len(parts) == 1:
                found += parts
            elif parts:
                found += [folded.strip("_"), *parts] if keep_whole else parts
    return found


def _normalized(text: str) -> str:
    return normalize("NFKC", _PILE.sub(r"\1", text) if len(text) > _LONG else text)
