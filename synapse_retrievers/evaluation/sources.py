"""Where logs come from: a git repository, or a file of runs with something to search."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeAlias
from zipfile import BadZipFile

import numpy as np

from synapse_retrievers.evaluation.embedding import embed
from synapse_retrievers.evaluation.foreign import EVERYDAY
from synapse_retrievers.evaluation.history import History, read_history
from synapse_retrievers.evaluation.log import (
    Log,
    NoTextsError,
    NothingToSearchError,
    Run,
    UnreadableLogError,
    read_documents,
    read_runs,
)
from synapse_retrievers.evaluation.ranking import Base, Corpus, Unit, ranked
from synapse_retrievers.evaluation.replay import FEWEST_WORDS, split_at
from synapse_retrievers.evaluation.tree import chunks, text_files
from synapse_retrievers.types import Floats, NodeId

MOST_FOREIGN = 100
"""Questions that are borrowed from each other source."""

Progress: TypeAlias = Callable[[str, int, int | None], None]
"""Told (stage, steps done, steps in all or None) now and then."""


@dataclass(frozen=True, slots=True)
class Source:
    """A log of use and what its queries search.

    Attributes:
        name: What it is called.
        runs: Oldest first.
        corpus: What is searched; None: each run tells what was shown.
        vectors: Of the queries, shape [runs, dimensions].
    """

    name: str
    runs: tuple[Run, ...]
    corpus: Corpus | None
    vectors: Floats = field(repr=False)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A repository as it stood when four fifths of its usable commits had happened.

    Attributes:
        history: All commits.
        commit: Whose files are searched.
        files: Path -> text.
        runs: The usable commits, their files under the names they had then.
    """

    history: History
    commit: str
    files: Mapping[str, str] = field(repr=False)
    runs: tuple[Run, ...] = field(repr=False)


def snapshot(path: str | Path, limit: int | None, tell: Progress) -> Snapshot:
    """The repository at `path`, its newest `limit` usable commits or all.

    Raises:
        HistoryError: The repository cannot be read as a log of use.
    """
    history = read_history(
        path, limit=limit, progress=lambda done: tell("reading the history", done, None)
    )
    moment = history.usable[split_at(len(history.usable)) - 1]
    commit = history.tree_at(moment)
    files = dict(text_files(history.repository, commit))
    return Snapshot(history, commit, files, tuple(history.runs_at(moment, files)))


def from_git(path: str | Path, limit: int | None, tell: Progress) -> Source:
    """A git history: one commit is one run, its message the query, its files what was used.

    Raises:
        HistoryError: The repository cannot be read as a log of use.
    """
    found = snapshot(path, limit, tell)
    pieces = [
        (source, piece) for source, text in found.files.items() for piece in chunks(source, text)
    ]
    corpus = _embedded(pieces, tell)
    vectors = embed([run.query for run in found.runs])
    return Source(found.history.repository.name, found.runs, corpus, vectors)


def from_runs(path: Path, documents: Path | None, tell: Progress) -> Source:
    """A JSON Lines file of runs.

    What is searched: `documents` (JSON Lines of {"id", "text"}); else the vectors in the `.npz`
    file of the same name beside it (`files`, `chunk_file`, `chunk_vectors`, `query_vectors`); else
    what each run says was shown.

    Raises:
        LogError: One of its kinds.
    """
    runs = read_runs(path)
    name = path.name.partition(".")[0]
    beside = path.with_name(f"{name}.npz")
    if documents is not None:
        corpus = _embedded(read_documents(documents), tell)
        return _in_time(Source(name, runs, corpus, embed([run.query for run in runs])))
    if beside.is_file():
        return _in_time(_with_vectors(name, runs, beside))
    if any(run.shown for run in runs):
        return _in_time(Source(name, runs, None, np.zeros((len(runs), 0))))
    raise NothingToSearchError(path)


def as_log(
    source: Source, others: Sequence[Source] = (), *, base: Base = "vector", unit: Unit, k: int
) -> Log:
    """The source with what its retriever answers to every query, its own and foreign ones.

    Foreign are queries of the last fifth of the other sources; without any others, where there are
    texts, everyday questions that are not about software.

    Args:
        source: Runs and what they search.
        others: Sources about something else.
        base: Which retriever.
        unit: Whether a place is a chunk or a file.
        k: How many places.

    Raises:
        NoTextsError: BM25 is asked for and only vectors are known.
    """
    if source.corpus is None:
        runs = tuple(run for run in source.runs if run.shown)
        nodes = frozenset(node for run in runs for node in (*run.used, *run.shown))
        return Log(source.name, runs, nodes, k, {})
    if base != "vector" and not source.corpus.texts:
        raise NoTextsError(source.name)
    queries, vectors = [run.query for run in source.runs], [source.vectors]
    foreign: list[str] = []
    for other in others:
        rows = _borrowed(other) if other.vectors.shape[1] == source.vectors.shape[1] else []
        foreign += [other.runs[row].query for row in rows]
        vectors.append(other.vectors[rows].reshape(-1, source.vectors.shape[1]))
    if not others and source.corpus.texts:
        foreign += EVERYDAY
        vectors.append(embed(EVERYDAY))
    lists = ranked(
        *(source.corpus, queries + foreign, np.concatenate(vectors)), base=base, unit=unit, k=k
    )
    return Log(
        source.name,
        source.runs,
        frozenset(source.corpus.sources),
        k,
        dict(zip(queries + foreign, lists, strict=True)),
        tuple(dict.fromkeys(foreign)),
    )


def _borrowed(other: Source) -> list[int]:
    """Rows of queries of the last fifth, evenly spaced."""
    start = split_at(len(other.runs))
    rows = range(start, len(other.runs))
    fit = [row for row in rows if len(other.runs[row].query.split()) >= FEWEST_WORDS]
    return fit[:: max(1, -(-len(fit) // MOST_FOREIGN))]


def _embedded(pieces: Sequence[tuple[NodeId, str]], tell: Progress) -> Corpus:
    tell("embedding the chunks", 0, len(pieces))
    vectors = embed([text for _, text in pieces])
    tell("embedding the chunks", len(pieces), len(pieces))
    return Corpus(tuple(node for node, _ in pieces), vectors, tuple(text for _, text in pieces))


def _with_vectors(name: str, runs: tuple[Run, ...], path: Path) -> Source:
    try:
        with np.load(path, allow_pickle=False) as arrays:
            files = [str(one) for one in arrays["files"]]
            rows = arrays["chunk_file"].tolist()
            chunk_vectors = arrays["chunk_vectors"].astype(np.float64)
            query_vectors = arrays["query_vectors"].astype(np.float64)
            sources = tuple(files[row] for row in rows)
    except (OSError, ValueError, KeyError, IndexError, BadZipFile) as error:
        raise UnreadableLogError(path, f"it holds no vectors of the log ({error})") from error
    if len(query_vectors) != len(runs) or len(chunk_vectors) != len(sources):
        raise UnreadableLogError(path, "there must be a vector for every run and every chunk")
    return Source(name, runs, Corpus(sources, chunk_vectors), query_vectors)


def _in_time(source: Source) -> Source:
    """Oldest first; equal times keep their order."""
    order = np.argsort([run.t for run in source.runs], kind="stable")
    runs = tuple(source.runs[row] for row in order)
    return replace(source, runs=runs, vectors=source.vectors[order])
