"""The main job on a real repository: index it, teach its history, then ask the rest of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from synapse_retrievers.errors import MissingExtraError
from synapse_retrievers.recall.explain import Trace

try:
    from synapse_retrievers.demo.index import Index
    from synapse_retrievers.demo.learner import Framework, open_learner
    from synapse_retrievers.demo.places import open_places
    from synapse_retrievers.evaluation.replay import Replay, Row, replay
    from synapse_retrievers.evaluation.sources import Progress, snapshot
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] == "synapse_retrievers":
        raise
    raise MissingExtraError("the demo", "demo") from error

FEW_COMMITS = 50
"""Below so many usable commits the figures mean next to nothing."""

EXAMPLES = 3


@dataclass(frozen=True, slots=True)
class DemoResult:
    """What the demo found.

    Attributes:
        repository: What its folder is called.
        commit: The commit whose files were indexed.
        commits: Commits that were read.
        usable: Those of them that are runs.
        files: Files in the index.
        chunks: Chunks in the index.
        replay: The asked queries and what came of them.
        store: Where the learned is kept; None: thrown away.
        store_bytes: Its size on disk.
        failures: Calls of the memory that failed and changed nothing; 0 when all is well.
    """

    repository: str
    commit: str
    commits: int
    usable: int
    files: int
    chunks: int
    replay: Replay[Trace | None]
    store: Path | None
    store_bytes: int
    failures: int

    @property
    def is_little(self) -> bool:
        """Whether there is too little history for the figures to mean much."""
        return self.usable < FEW_COMMITS

    @property
    def plain_seconds(self) -> float | None:
        """Median time of a plain query; None without queries."""
        return _median([row.answer.plain_seconds for row in self.replay.rows])

    @property
    def added_seconds(self) -> float | None:
        """Median of what the wrapped call of a query took longer than the plain one."""
        answers = [row.answer for row in self.replay.rows]
        return _median([answer.wrapped_seconds - answer.plain_seconds for answer in answers])

    @property
    def examples(self) -> tuple[Row[Trace | None], ...]:
        """The queries that gained most, best first, each with another node that came in."""
        return _examples(self.replay.rows)


def run_demo(  # noqa: PLR0913 - one argument a setting
    path: str | Path,
    *,
    limit: int | None = None,
    k: int = 8,
    store: Path | None = None,
    folder: Path | None = None,
    framework: Framework = "langchain",
    progress: Progress | None = None,
) -> DemoResult:
    """Index a repository as it stood, teach its past, ask its future, plain and wrapped.

    Args:
        path: The repository or a folder in it.
        limit: Only the newest so many usable commits; None: all.
        k: How many chunks a query returns.
        store: Keeps what was learned; None: it is thrown away.
        folder: Keeps the Chroma index; None: it is held in memory.
        framework: Whose retrievers are asked, on the same index and with the same memory.
        progress: Told how far it is.

    Raises:
        HistoryError: The repository cannot be read as a log of use.
        FolderError: `store` or `folder` cannot be written.
        TaughtStoreError: `store` has been taught before.
        MissingExtraError: The framework is not installed.
    """
    tell = progress or _silence
    with open_places(store, folder) as store_path:
        found = snapshot(path, limit, tell)
        history, files, runs = found.history, found.files, found.runs
        index = Index.build(history.repository.name, found.commit, files, folder)
        index.fill(lambda done, total: tell("indexing the files", done, total))
        index.embeddings.remember([run.query for run in runs])
        with open_learner(index, store_path, k, framework) as both:
            replayed = replay(
                *(runs, both),
                nodes=frozenset(files),
                k=k,
                progress=lambda done, total: tell("replaying the commits", done, total),
            )
            stats = both.finish()
        if folder is None:
            index.drop()
    return DemoResult(
        repository=history.repository.name,
        commit=found.commit,
        commits=len(history.commits),
        usable=len(history.usable),
        files=len(files),
        chunks=len(index.pieces),
        replay=replayed,
        store=store,
        store_bytes=stats.bytes,
        failures=stats.failures + stats.lost,
    )


def _silence(_stage: str, _done: int, _total: int | None) -> None:
    """Tell nobody."""


def _median(values: Sequence[float]) -> float | None:
    return float(np.median(values)) if values else None


def _examples(rows: Sequence[Row[Trace | None]]) -> tuple[Row[Trace | None], ...]:
    def gain(row: Row[Trace | None]) -> tuple[float, float]:
        return row.recall[1] - row.recall[0], row.reciprocal_rank[1] - row.reciprocal_rank[0]

    better = [row for row in rows if gain(row)[0] > 0 or (gain(row)[0] == 0 and gain(row)[1] > 0)]
    chosen: list[Row[Trace | None]] = []
    told: set[frozenset[str]] = set()
    # The sort is stable: among equals the older query is told.
    for row in sorted(better, key=gain, reverse=True):
        news = frozenset(row.run.used) & (set(row.answer.wrapped) - set(row.answer.plain))
        if news not in told and len(chosen) < EXAMPLES:
            chosen.append(row)
            told.add(news)
    return tuple(chosen)
