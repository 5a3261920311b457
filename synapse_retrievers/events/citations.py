"""Which of the numbered or named sources of a prompt an answer cites."""

# ruff: noqa: RUF001 - the brackets and dashes of many scripts

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from synapse_retrievers.types import NodeId

_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)
_LIST = r"\s{0,3}\d{1,3}(?:\s{0,3}(?:[,;&–-]|and|und|et|y)\s{0,3}#?\d{1,3}){0,20}\s{0,3}"
_NOUN = (
    r"(?:sources?|documents?|docs?|passages?|chunks?|context|ref(?:erence)?s?|quellen?|fuentes?"
    r"|источник|来源|文档|资料)"
)
_BRACKETS = re.compile(
    rf"(?P<run>(?:\[\^?{_LIST}\]\s?)+)(?![(\w]|:\s)"
    rf"|[【]{_LIST}(?:†[^】\n]{{0,40}})?[】]"
    rf"|[\[(（【](?:see |siehe |voir )?{_NOUN}\s?#?{_LIST}[\])）】]",
    re.IGNORECASE,
)
_NUMBERS = re.compile(r"(\d+)(?:\s*[–-]\s*(\d+))?")
# Before `[1]` these make it an index, a list or a call: items[1], x = [1, 2], f([1]) ...
_CODE_BEFORE = re.compile(
    r"(?:[A-Za-z0-9_)\]}\"']|[=+*/<>]\s*|\w[(,]\s*|\b(?:return|in range)\s)\Z"
)
# ... and these an entry: "ids": [1], or a line that begins with ids: [1].
_KEY_BEFORE = re.compile(r"(?:^|\{)\s*[\w-]{1,40}\s*:\s*\Z|[\"']\s*:\s*\Z")
_SOURCE_BEFORE = re.compile(
    r"(?:sources?|see|references?|quellen?|fuentes?|来源)\s*[:：]\s*\Z", re.IGNORECASE
)
# ... but a word's citation may stick to it where the sentence ends: "opened in 1998[1]."
_WORD_BEFORE = re.compile(r"[A-Za-z0-9]{3}\Z")
_SENTENCE_END = re.compile(r"[.!?](?:\s|\Z)")
_LINE_LABEL = re.compile(r"[^\S\n]*[^\s\[,;.&]")

_LABEL = re.compile(
    rf"^[ \t>*#-]*(?:\[{_NOUN}?\s?(?P<a>\d{{1,3}})\]|【(?P<b>\d{{1,3}})】"
    rf"|{_NOUN}\s?[#:]?\s?(?P<c>\d{{1,3}})\b|<{_NOUN}[^>\n]{{0,40}}?[\"'](?P<d>\d{{1,3}})[\"'][^>\n]*>)"
    r"[^\n]{0,150}(?:\n[ \t]*(?:[\w-]{1,20}:[^\n]{0,150}|[-=*]{3,}|<[^\n]{1,150})?){0,4}\Z"
    r"|^[ \t]*(?P<e>\d{1,3})[.):][ \t]*\n?\Z",
    re.IGNORECASE | re.MULTILINE,
)
_PART_LABEL = re.compile(
    rf"^[ \t>*#-]{{0,9}}(?:\[{_NOUN}?\s?(\d{{1,3}})\]|{_NOUN}\s?[#:]?\s?(\d{{1,3}})\b):?\s{{0,3}}",
    re.IGNORECASE | re.MULTILINE,
)
_PART = (30, 60)  # least and most characters by which a part of a chunk is found
_PARTS = 100  # labels that are looked at, the newest first
_BEFORE = 400  # characters before a chunk in which its label is sought
_HEAD = 300  # characters of a chunk by which it is found
_OCCURRENCES = 8  # of a text that are looked at, the newest first
_ID_LENGTH = 4
_QUOTED = re.compile(r"\[([^\[\]\n]{1,400})\]|【([^【】\n]{1,400})】|`([^`\n]{1,400})`")


def citations(answer: str, numbering: Mapping[int, Collection[int]]) -> set[int]:
    """The positions that the answer cites by number, as in [1], [2, 3], [1-3], 【1】, (source 2).

    Indices, lists, links, footnote definitions, reference lists and code cite nothing; nor does a
    bracket with a number that no source has.

    Args:
        answer: What the model wrote.
        numbering: Number -> positions, from `numbering`; empty: numbers mean nothing.

    >>> citations("Keys rotate [1] in items[2] there.", {1: (0,), 2: (1,)})
    {0}
    """
    cited: set[int] = set()
    if not numbering:
        return cited
    text = _CODE.sub("` `", answer)
    for match in _BRACKETS.finditer(text):
        if match["run"] is None or _is_citation(text, match.start("run"), match.end("run")):
            for bracket in re.split(r"\]\s?\[", match[0]):
                cited |= _positions(bracket, numbering)
    return cited


def _is_citation(text: str, start: int, end: int) -> bool:
    before = text[max(0, start - 20) : start]
    if not before.strip(" \t") or before.rstrip(" \t").endswith("\n"):
        # "[1] Handbook, page 3" at a line's start lists a source.
        return not _LINE_LABEL.match(text, end)
    line = text[max(0, start - 200) : start].rpartition("\n")[2]
    if _KEY_BEFORE.search(line) and not _SOURCE_BEFORE.search(before):
        return False
    if _CODE_BEFORE.search(before) and not _SOURCE_BEFORE.search(before):
        return bool(_WORD_BEFORE.search(before) and _SENTENCE_END.match(text, end))
    return True


def _positions(bracket: str, numbering: Mapping[int, Collection[int]]) -> set[int]:
    numbers: set[int] = set()
    for first, last in _NUMBERS.findall(bracket):
        numbers.update(range(int(first), int(last or first) + 1))
    if not numbers <= numbering.keys():
        return set()
    return {position for number in numbers for position in numbering[number]}


def numbering(prompt: str, chunks: Sequence[str]) -> dict[int, tuple[int, ...]]:
    r"""The number that labels each chunk in the prompt -> the chunk's position.

    A label is `[1]`, `Source 1:`, `Document 1`, `1.` or `<source id="1">` directly before the
    text; a title or `key: value` lines may stand between. Equal texts have one number, a chunk
    that was split has one for each part; a number of different texts means nothing. Empty where
    the prompt numbers nothing.

    >>> numbering("Source 1:\nKeys rotate.\nSource 2:\nTokens expire.", ["Tokens expire."])
    {2: (0,)}
    """
    page = _squeezed(prompt)
    positions: dict[str, list[int]] = {}
    for position, chunk in enumerate(chunks):
        positions.setdefault(_squeezed(chunk), []).append(position)
    labels: dict[int, list[str]] = {}
    for text in positions:
        labels.setdefault(_number(text[:_HEAD], page), []).append(text)
    for number, text in _parts(page, positions):
        labels.setdefault(number, [text])
    return {
        number: tuple(positions[texts[0]])
        for number, texts in labels.items()
        if number >= 0 and len(texts) == 1
    }


def _parts(page: str, texts: Collection[str]) -> Iterator[tuple[int, str]]:
    """Labels before what stands within one text alone, the newest first."""
    for label in list(_PART_LABEL.finditer(page))[: -_PARTS - 1 : -1]:
        part = page[label.end() : label.end() + _PART[1]]
        for head in (part, part.partition("\n")[0].rstrip()):
            own = [text for text in texts if head in text] if len(head) >= _PART[0] else []
            # A text may number things itself: then the label stands in the text too.
            if len(own) == 1 and label[0] + head not in own[0]:
                yield int(label[1] or label[2]), own[0]
                break


def _number(head: str, page: str) -> int:
    """The newest label of the text, -1 for none; overlapping chunks repeat it without one."""
    place = len(page)
    for _ in range(_OCCURRENCES if head else 0):
        place = page.rfind(head, 0, place + len(head) - 1)
        if place < 0:
            break
        for number in _label(page[max(0, place - _BEFORE) : place]):
            return number
    return -1


def _label(before: str) -> Iterator[int]:
    # From the last line upward: the nearest label is the chunk's own.
    places = [match.start() for match in re.finditer(r"^", before, re.MULTILINE)]
    for place in reversed(places[-6:]):
        if match := _LABEL.match(before, place):
            return (int(number) for number in match.groups() if number)
    return iter(())


def _squeezed(text: str) -> str:
    return re.sub(r"\s*\n\s*", "\n", re.sub(r"[^\S\n]+", " ", text)).strip()


def cited_ids(answer: str, ids: Iterable[NodeId]) -> set[NodeId]:
    """The ids that stand literally in brackets or backticks in the answer.

    Ids of less than four characters, years and, in backticks, plain words are no citations.

    >>> cited_ids("Keys rotate [auth-7].", ["auth-7", "auth-8"])
    {'auth-7'}
    """
    named: set[str] = set()
    marked: set[str] = set()
    for square, lenticular, ticked in _QUOTED.findall(answer):
        inner = square or lenticular or ticked
        pieces = {inner.strip(), *(piece.strip(" `'\"") for piece in re.split("[,;]", inner))}
        (marked if ticked else named).update(pieces)
    marked = {piece for piece in marked if not piece.isalpha()}
    return {
        id_
        for id_ in ids
        if len(id_) >= _ID_LENGTH
        and id_ in named | marked
        and not re.fullmatch(r"(?:19|20)\d\d", id_)
    }
