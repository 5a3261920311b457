"""Which given nodes' source files a tool call touched."""

# ruff: noqa: SIM905 - lists of words

import json
import re
from collections.abc import Iterator, Mapping
from typing import Literal
from urllib.parse import unquote

from synapse_retrievers.tokens import tokens
from synapse_retrievers.types import NodeId

Touch = Literal["edited", "read"]

_LIMIT = 20_000  # characters of one argument that are looked at
_NAME_LIMIT = 400  # characters of a path
_DEPTH = 8  # of nested arguments
_EDITS = frozenset(
    "write edit patch create replace insert apply append update modify save overwrite".split()
)
_READS = frozenset(["view", "read", "open", "list", "cat", "show", "get", "search", "find"])
_VERB_KEYS = frozenset(["command", "action", "operation", "op", "mode"])
# What is written, said or sought: the paths in there are not what the tool touches.
_TEXT_KEYS = frozenset(
    """content contents text body new_string old_string new_str old_str file_text insert_text
    replacement message description prompt query pattern regex patch diff glob reason thought
    """.split()
)
_EDIT_KEYS = frozenset(
    "new_string old_string new_str old_str file_text insert_text replacement patch diff".split()
)
_PATCHED = re.compile(
    r"^(?:\+\+\+ (?:b/)?|--- (?:a/)?|\*\*\* (?:Update|Add|Delete) File: )([^\t\n]{1,400})",
    re.MULTILINE,
)
_QUOTED = re.compile(r"\"([^\"\n]{1,400})\"|'([^'\n]{1,400})'|`([^`\n]{1,400})`")
_BARE = re.compile(r"[^\s\"'`<>|;,(){}=&]{1,400}")
_LINE = re.compile(r"(?::\d+(?:[-:,]\d+){0,2}|#L?\d+(?:-L?\d+)?|\(\d+(?:,\d+)?\))?[.,:;]*\Z")
_SCHEME = re.compile(r"([a-z][a-z0-9+.-]{1,20})://", re.IGNORECASE)
_DRIVE = re.compile(r"[A-Za-z]:(?=/)")
# Every folder may hold one of these: the name under another folder is another file.
_COMMON = re.compile(
    r"(?:readme|index|main|__init__|__main__|setup|conftest|mod|makefile|license"
    r"|dockerfile|package|changelog|utils|config|test)(?:\.[a-z]+)*",
    re.IGNORECASE,
)

Path = tuple[str, ...]


def touched(
    tool: str, inputs: Mapping[str, object] | str, sources: Mapping[NodeId, str]
) -> dict[NodeId, Touch]:
    """The nodes whose source the tool call names, and whether it wrote or only read it.

    A path and a source are the same file when one ends with all components of the other: the
    longest match wins, two different files as good as each other are none. A bare file name
    counts when one source alone has it; a source that is a bare name is not the file of that name
    in another folder. Globs and the text that is written or sought name nothing.

    Args:
        tool: The tool's name; its verb decides between "edited" and "read".
        inputs: Its arguments, or their JSON, or free text such as a shell command.
        sources: Node -> the path or URL of its source.

    >>> touched("read_file", {"path": "./src/auth.py:12"}, {"n1": "/repo/src/auth.py"})
    {'n1': 'read'}
    """
    leaves = list(_leaves(_parsed(inputs)))
    files = {path for path in map(_path, sources.values()) if path}
    named = {match for leaf in leaves for path in _paths(*leaf) for match in _matches(path, files)}
    touch: Touch = "edited" if _is_edit(tool, leaves) else "read"
    return {node: touch for node, source in sources.items() if _path(source) in named}


def _parsed(inputs: object) -> object:
    if isinstance(inputs, str) and inputs.lstrip()[:1] in ("{", "["):
        try:
            return json.loads(inputs)
        except (ValueError, RecursionError):
            return inputs
    return inputs


def _leaves(inputs: object, key: str = "", depth: int = 0) -> Iterator[tuple[str, str]]:
    if isinstance(inputs, str):
        yield key, inputs[:_LIMIT]
    elif depth < _DEPTH and isinstance(inputs, Mapping):
        for name, value in inputs.items():
            yield from _leaves(value, str(name).lower(), depth + 1)
    elif depth < _DEPTH and isinstance(inputs, list | tuple):
        for value in inputs:
            yield from _leaves(value, key, depth + 1)


def _is_edit(tool: str, leaves: list[tuple[str, str]]) -> bool:
    for key, value in leaves:
        if key in _VERB_KEYS and value in _READS:
            return False
    if not _EDITS.isdisjoint(tokens(tool)):
        return True
    return any(
        key in _EDIT_KEYS or (key in _VERB_KEYS and not _EDITS.isdisjoint(tokens(value)[:2]))
        for key, value in leaves
    )


def _paths(key: str, text: str) -> Iterator[Path]:
    written = _PATCHED.findall(text)
    if not written and key not in _TEXT_KEYS:
        quoted = ("".join(groups) for groups in _QUOTED.findall(text))
        written = [*_BARE.findall(text), *quoted, *([text] if len(text) < _NAME_LIMIT else [])]
    return (_path(_LINE.sub("", name.strip())) for name in written)


def _path(name: str) -> Path:
    if scheme := _SCHEME.match(name):
        name = re.split("[?#]", name[scheme.end() :], maxsplit=1)[0]
        name = unquote("/" + name.lstrip("/") if scheme[1].lower() == "file" else name)
    name = _DRIVE.sub("", name.replace("\\", "/"), count=1)
    parts: list[str] = ["/"] if name.startswith("/") else []
    for part in name.split("/"):
        if part == ".." and parts and parts[-1] not in ("/", ".."):
            parts.pop()
        elif part not in ("", ".", "~"):
            parts.append(part)
    return tuple(parts) if parts != ["/"] else ()


def _matches(path: Path, files: set[Path]) -> set[Path]:
    if not path:
        return set()
    if path in files:
        return {path}
    shared = {file: _shared(path, file) for file in files if file[-1] == path[-1]}
    longest = max(shared.values(), default=0)
    best = {file for file, length in shared.items() if length == longest}
    return best if longest and len(best) == 1 else set()


def _shared(path: Path, file: Path) -> int:
    """How many components both end with, when that is all of one of them; else 0."""
    named, known = path[path[0] == "/" :], file[file[0] == "/" :]
    length = min(len(named), len(known))
    if named[-length:] != known[-length:] or (path[0] == file[0] == "/" and named != known):
        return 0
    if len(known) == 1 < len(named) and (path[0] != "/" or _COMMON.fullmatch(known[0])):
        return 0
    return length
