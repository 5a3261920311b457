"""Which chunks define a symbol that an answer names."""

import re
from collections import Counter
from collections.abc import Sequence
from itertools import chain

_DEFINED = re.compile(
    r"^[ \t]*(?:(?:export|default|public|private|protected|internal|static|final|abstract|sealed"
    r"|async|data|open|override|unsafe|extern|declare|inline|pub(?:\([a-z]+\))?)[ \t]+){0,6}"
    r"(?:(?:def|fun|fn|func|function\*?)[ \t]+(?:self\.|\([^()\n]{0,80}\)[ \t]*)?(\w+)[ \t]*[(<\[]"
    r"|(?:class|interface|struct|enum|trait|record|module|object|protocol)[ \t]+(\w+)"
    r"(?=[ \t]*(?:[(:{<;\[]|$)|[ \t]+(?:extends|implements|with|where)\b)"
    r"|type[ \t]+(\w+)(?=[^\n=]{0,80}=|[ \t]+(?:struct|interface|func)\b|[ \t]*\[)"
    r"|(?:const|let|var|val|static)[ \t]+(\w+)[ \t]*(?=[=:])"
    r"|([A-Z][A-Z0-9_]{2,99})[ \t]*(?::[^=\n]{0,80})?=|\#define[ \t]+(\w+))",
    re.MULTILINE,
)
_NAME = re.compile(r"(`?)\b([^\W\d]\w{2,99})\b(\(?)")
_CAMEL = re.compile(r"[a-z0-9][A-Z]|[A-Z]{2}[a-z]")
_LONG_NAME = 9


def names_symbol(said: str, query: str, texts: Sequence[str]) -> list[bool]:
    """Whether `said` names a symbol that this text alone defines and the query does not name.

    A distinctive name counts wherever it stands (`verify_token`, `HTTPServer`, `Scheduler`), any
    other only as code: called, `run(`, or in backticks.

    >>> names_symbol("It calls verify_token.", "Who checks it?", ["def verify_token(t):", "x = 1"])
    [True, False]
    """
    defined = [set(filter(None, chain.from_iterable(_DEFINED.findall(text)))) for text in texts]
    holders = Counter(chain.from_iterable(defined))
    if not holders:
        return [False] * len(texts)
    asked = {name for _, name, _ in _NAME.findall(query)}
    named = {
        name
        for tick, name, call in _NAME.findall(said)
        if holders[name] == 1 and name not in asked and (tick or call or _is_distinctive(name))
    }
    return [not named.isdisjoint(names) for names in defined]


def _is_distinctive(name: str) -> bool:
    # A long lower-case name (configure, normalize) is an ordinary verb too: it needs code marks.
    is_long = len(name) >= _LONG_NAME and not name.islower()
    return "_" in name.strip("_") or bool(_CAMEL.search(name)) or is_long
