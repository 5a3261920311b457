"""A log of use, and what the wrapped retriever answers to each of its queries.

LogError (SynapseError)
├── UnreadableLogError     the file cannot be opened or is no JSON Lines of runs
├── NothingToSearchError   the runs name neither what was shown nor anything that can be searched
└── NoTextsError           BM25 was asked for and only vectors are known
"""

import gzip
import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from synapse_retrievers.errors import SynapseError
from synapse_retrievers.types import NodeId

_Parsed = TypeVar("_Parsed")


class LogError(SynapseError):
    """A log cannot be replayed."""


class UnreadableLogError(LogError):
    """The file cannot be opened, or one of its lines is no run."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(
            f"{path}: {reason}; read is one JSON object a line, of a run "
            '{"t": Unix seconds, "query": text, "used": [node, ...], "shown": [node, ...]} '
            '("shown" may be left out) or, with --documents, {"id": node, "text": text}'
        )


class NothingToSearchError(LogError):
    """The runs name neither what was shown nor anything that can be searched."""

    def __init__(self, path: Path) -> None:
        super().__init__(
            f"{path} has runs without `shown` and there is nothing to search: give --documents, "
            f"or vectors in {path.name.partition('.')[0]}.npz beside it"
        )


class NoTextsError(LogError):
    """BM25 was asked for and only vectors are known."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"{name} has vectors and no texts, so BM25 has nothing to read: ask for base vector, "
            "or give --documents or --git"
        )


@dataclass(frozen=True, slots=True)
class Run:
    """One use out of a log.

    Attributes:
        t: When, Unix seconds.
        query: What was asked.
        used: The nodes that were used for it.
        shown: What a retriever had returned, best first; empty: not known.
    """

    t: float
    query: str
    used: tuple[NodeId, ...]
    shown: tuple[NodeId, ...] = ()


@dataclass(frozen=True, slots=True)
class Ranked:
    """A result list of the wrapped retriever: the node at each place, and its score if it has any.

    A node may stand there more than once: two chunks of one file.
    """

    nodes: tuple[NodeId, ...]
    scores: tuple[float, ...] | None = None


@dataclass(frozen=True, slots=True)
class Log:
    """Runs to be replayed.

    Attributes:
        name: What it is called.
        runs: Oldest first.
        nodes: What can be found at all.
        k: How many places a result has.
        results: Query -> what the wrapped retriever answers; empty: each run tells what was shown.
        foreign: Queries about something else, to see whether the memory keeps quiet.
    """

    name: str
    runs: tuple[Run, ...]
    nodes: frozenset[NodeId]
    k: int
    results: Mapping[str, Ranked] = field(repr=False)
    foreign: tuple[str, ...] = ()

    def plain(self, run: Run) -> Ranked:
        """What the wrapped retriever answers to the run's query."""
        return self.results[run.query] if self.results else Ranked(run.shown[: self.k])


def read_runs(path: Path) -> tuple[Run, ...]:
    """The runs of a JSON Lines file (`.gz` too), as they stand there.

    Raises:
        UnreadableLogError: The file, or one of its lines, is no log.
    """
    return tuple(_parsed(path, _run))


def read_documents(path: Path) -> list[tuple[NodeId, str]]:
    """Id and text of each document of a JSON Lines file (`.gz` too) of {"id", "text"}.

    Raises:
        UnreadableLogError: The file, or one of its lines, is none.
    """
    return _parsed(path, _document)


def _parsed(path: Path, parse: Callable[[Any], _Parsed]) -> list[_Parsed]:
    found = []
    for number, line in enumerate(_lines(path), start=1):
        if line.strip():
            try:
                found.append(parse(json.loads(line)))
            except (ValueError, TypeError, KeyError, RecursionError) as error:
                reason = f"line {number} cannot be used ({type(error).__name__}: {error})"
                raise UnreadableLogError(path, reason) from error
    if not found:
        raise UnreadableLogError(path, "there is nothing in it")
    return found


def _lines(path: Path) -> Iterator[str]:
    opened: Any = gzip.open if path.suffix == ".gz" else open
    try:
        with opened(path, "rt", encoding="utf-8-sig") as file:
            yield from file
    except (OSError, EOFError) as error:
        raise UnreadableLogError(path, getattr(error, "strerror", None) or str(error)) from error
    except UnicodeDecodeError as error:
        raise UnreadableLogError(path, "it is not UTF-8") from error


def _run(value: Any) -> Run:
    t = float(value["t"])
    if not math.isfinite(t):
        raise ValueError("t is not finite")
    return Run(t, _text(value["query"]), _nodes(value["used"]), _nodes(value.get("shown") or []))


def _document(value: Any) -> tuple[NodeId, str]:
    node = _text(value["id"])
    if not node:
        raise ValueError("id is empty")
    return node, _text(value["text"])


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("query, id and text are texts")
    return value


def _nodes(value: Any) -> tuple[NodeId, ...]:
    if not isinstance(value, list) or not all(isinstance(one, str) and one for one in value):
        raise TypeError("used and shown are lists of node ids")
    return tuple(value)
