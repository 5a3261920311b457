"""A git repository, only ever read, and what may be wrong with it.

HistoryError (SynapseError)
├── GitMissingError            there is no git on the PATH
├── NoRepositoryError          the path does not exist or holds no repository
├── ShallowCloneError          the history was cut off when it was cloned
├── NoUsableHistoryError       not one commit is left after the rules
└── UnreadableHistoryError     git itself failed; its own line is in the message
"""

import os
import subprocess
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Self

from synapse_retrievers.errors import SynapseError

MOST_FILES = 15
"""A commit that touches more is a sweep (a rename, a reformat) and says nothing about its words."""

_KEPT = (
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_EXEC_PATH",
    "GIT_CEILING_DIRECTORIES",
)
"""What stays of git's variables; the others, set inside a hook, would point it elsewhere."""


class HistoryError(SynapseError):
    """A repository cannot be read as a log of use."""


class GitMissingError(HistoryError):
    """There is no git on the PATH."""

    def __init__(self) -> None:
        super().__init__("git was not found: install it and see that it is on the PATH")


class NoRepositoryError(HistoryError):
    """The path does not exist or holds no repository."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path} {reason}: name the folder of a git repository")


class ShallowCloneError(HistoryError):
    """The history was cut off when it was cloned."""

    def __init__(self, path: Path) -> None:
        super().__init__(
            f"{path} is a shallow clone without its history: run `git fetch --unshallow` there"
        )


class NoUsableHistoryError(HistoryError):
    """Not one commit is left after the rules."""

    def __init__(self, path: Path, commits: int) -> None:
        super().__init__(
            f"{path} has no usable history ({commits} commits; merges, bots, version bumps and "
            f"changes of more than {MOST_FILES} files do not count): name another repository"
        )


class UnreadableHistoryError(HistoryError):
    """Git itself failed."""

    def __init__(self, path: Path, said: str) -> None:
        super().__init__(f"git cannot read {path} ({said}): set that right and call again")


@dataclass(frozen=True, slots=True)
class Repository:
    """A git repository that is only ever read, through git itself, without a checkout."""

    path: Path
    _environment: dict[str, str] = field(repr=False)

    @classmethod
    def at(cls, folder: Path) -> Self:
        """The repository in a folder, unchecked."""
        return cls(folder.resolve(), _environment())

    @classmethod
    def open(cls, path: str | Path) -> Self:
        """The repository that `path` lies in.

        Raises:
            GitMissingError: There is no git.
            NoRepositoryError: The path is no folder, or no repository.
            ShallowCloneError: Its history is not all there.
            UnreadableHistoryError: Git refuses it, for instance because somebody else owns it.
        """
        folder = Path(path).expanduser()
        try:
            if not folder.is_dir():
                reason = "is no folder" if folder.exists() else "does not exist"
                raise NoRepositoryError(folder, reason)
        except OSError as error:
            raise NoRepositoryError(folder, f"cannot be opened ({error.strerror})") from error
        repository = cls.at(folder)
        if repository.answer("rev-parse", "--is-shallow-repository") == "true":
            raise ShallowCloneError(repository.path)
        return repository

    @property
    def name(self) -> str:
        """What the folder of the repository is called."""
        top = Path(self.answer("rev-parse", "--absolute-git-dir"))
        if top.name == ".git":
            return top.parent.name
        bare = self.answer("rev-parse", "--is-bare-repository") == "true"
        # A linked work tree has its git directory inside another repository's.
        return top.name if bare else Path(self.answer("rev-parse", "--show-toplevel")).name

    def git(self, *arguments: str, feed: bytes = b"") -> bytes:
        """What `git ARGUMENTS` writes when it is fed `feed`.

        Raises:
            GitMissingError: There is no git.
            NoRepositoryError: The folder is no repository.
            UnreadableHistoryError: Git failed.
        """
        try:
            done = subprocess.run(  # noqa: S603 - arguments are ours
                self._command(arguments),
                input=feed,
                capture_output=True,
                check=False,
                env=self._environment,
            )
        except FileNotFoundError as error:
            raise GitMissingError from error
        if done.returncode:
            said = done.stderr.decode("utf-8", "replace").strip().splitlines() or [
                "no reason given"
            ]
            if "not a git repository" in said[0]:
                raise NoRepositoryError(self.path, "is no git repository")
            raise UnreadableHistoryError(self.path, said[0].removeprefix("fatal: "))
        return done.stdout

    def records(self, *arguments: str) -> Generator[bytes, None, None]:
        """What `git ARGUMENTS` writes, split at NUL, as it comes; closed early, git ends too.

        Raises:
            UnreadableHistoryError: Git failed after what it had written.
        """
        with subprocess.Popen(  # noqa: S603 - arguments are ours
            self._command(arguments),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=self._environment,
        ) as process:
            yield from _nul_separated(process.stdout)
        if process.returncode > 0:
            raise UnreadableHistoryError(self.path, f"git {arguments[0]} failed")

    def answer(self, *arguments: str) -> str:
        """The one line that `git ARGUMENTS` writes."""
        return os.fsdecode(self.git(*arguments)).strip()

    def _command(self, arguments: Iterable[str]) -> list[str]:
        # What a user may have set must not change what is read.
        settings = ("core.quotePath=off", "log.showSignature=false", "core.fsmonitor=false")
        flags = [part for setting in settings for part in ("-c", setting)]
        return ["git", "--no-replace-objects", "-C", str(self.path), *flags, *arguments]


def _environment() -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    kept |= {key: os.environ[key] for key in _KEPT if key in os.environ}
    return kept | {"LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0", "GIT_NO_LAZY_FETCH": "1"}


def _nul_separated(stream: IO[bytes] | None) -> Iterator[bytes]:
    rest = b""
    while stream and (block := stream.read(1 << 16)):
        *whole, rest = (rest + block).split(b"\0")
        yield from whole
    if rest:
        yield rest
