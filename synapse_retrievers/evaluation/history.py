"""A git repository as a log of use: one commit is one run that asked with its message."""

from collections.abc import Callable, Generator, Iterable
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from synapse_retrievers.evaluation.changes import Change, changes, names_at
from synapse_retrievers.evaluation.log import Run
from synapse_retrievers.evaluation.messages import is_bot, is_version_bump, question
from synapse_retrievers.evaluation.repository import (
    MOST_FILES,
    NoUsableHistoryError,
    Repository,
    UnreadableHistoryError,
)

_BATCH = 500


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit of a history; `t` is when it was committed, `is_usable` whether it is a run."""

    sha: str
    t: float
    query: str
    change: Change
    is_usable: bool


@dataclass(frozen=True, slots=True)
class History:
    """The commits of a repository, oldest first, the unusable ones among them for their renames."""

    repository: Repository
    commits: tuple[Commit, ...]

    @property
    def usable(self) -> tuple[int, ...]:
        """Where in `commits` the runs stand; never empty."""
        return tuple(index for index, commit in enumerate(self.commits) if commit.is_usable)

    def tree_at(self, moment: int) -> str:
        """The commit whose files stood on the main line when `commits[moment]` was made."""
        commit = self.commits[moment]
        before = f"--before={commit.t:.0f}"
        found = self.repository.git("rev-list", "-1", "--first-parent", before, "HEAD")
        return found.decode("ascii").strip() or commit.sha

    def runs_at(self, moment: int, there: Iterable[str]) -> list[Run]:
        """The usable commits as runs, their files under the names they had at a moment.

        Args:
            moment: Index into `commits`.
            there: The paths that existed then (of `tree_at`).

        Returns:
            One run a usable commit, in order; files that did not exist then keep their names.
        """
        names = names_at(moment, [commit.change for commit in self.commits], there=there)
        usable = ((self.commits[index], names[index]) for index in self.usable)
        return [Run(commit.t, commit.query, used) for commit, used in usable]


def read_history(
    path: str | Path,
    *,
    limit: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> History:
    """The history of the repository at `path` up to its HEAD, by commit time.

    Args:
        path: The repository or a folder in it.
        limit: Only the newest so many usable commits; None: all.
        progress: Told how many commits were read so far.

    Raises:
        HistoryError: One of its kinds, see the top of the module.
    """
    repository = Repository.open(path)
    try:
        repository.git("rev-parse", "--verify", "HEAD^{commit}")
    except UnreadableHistoryError as error:  # a branch that has no commit yet
        raise NoUsableHistoryError(repository.path, 0) from error
    found: list[Commit] = []
    left = limit
    with closing(_newest_first(repository)) as commits:
        for commit in commits:
            found.append(commit)
            if progress and len(found) % _BATCH == 0:
                progress(len(found))
            left = left - commit.is_usable if left is not None else None
            if left == 0:
                break
    if not any(commit.is_usable for commit in found):
        raise NoUsableHistoryError(repository.path, len(found))
    # Git's order knows parents, not time; the sort is stable, so equal seconds keep it.
    found.reverse()
    found.sort(key=lambda commit: commit.t)
    return History(repository, tuple(found))


def _newest_first(repository: Repository) -> Generator[Commit, None, None]:
    form = "--format=%H%n%ct%n%an <%ae>%n%B"
    log = ("log", "-z", "--no-merges", "--no-notes", "--no-color", "--encoding=UTF-8", form, "HEAD")
    with closing(repository.records(*log)) as records:
        while batch := [record.split(b"\n", 3) for record in islice(records, _BATCH)]:
            found = _changes(repository, [head[0] for head in batch])
            for sha, t, author, message in batch:
                commit = sha.decode("ascii")
                yield _commit(commit, float(t), author, message, found.get(commit, Change()))


def _changes(repository: Repository, shas: Iterable[bytes]) -> dict[str, Change]:
    return changes(
        repository.git(
            *("diff-tree", "--stdin", "-r", "--root", "-z", "--raw", "--numstat"),
            *("-M", "-l400", "--no-rename-empty", "--no-ext-diff", "--no-textconv"),
            feed=b"".join(sha + b"\n" for sha in shas),
        )
    )


def _commit(sha: str, t: float, author: bytes, message: bytes, change: Change) -> Commit:
    text = message.decode("utf-8", "replace")
    query = question(text)
    is_usable = bool(
        query
        and change.text
        and len(change.touched) <= MOST_FILES
        and not is_bot(author.decode("utf-8", "replace"))
        and not is_version_bump(text.partition("\n")[0])
    )
    return Commit(sha, t, query, change, is_usable)
