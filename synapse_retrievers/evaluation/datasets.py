"""Small git repositories made from a seed, to try and to test on; the same seed, the same ids."""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from synapse_retrievers.evaluation.repository import Repository

DAY = 86_400
START = 1_704_067_200
"""The first commit's time, Unix seconds: 2024-01-01."""

_SYLLABLES = ("ba", "ce", "di", "fo", "gu", "ka", "le", "mi", "no", "pu", "ra", "se", "ti", "vo")


@dataclass(frozen=True, slots=True)
class PlannedCommit:
    """One commit to be made.

    Attributes:
        message: As it is, trailers and all.
        files: Path -> new content, or None: deleted.
        t: Unix seconds.
        author: `name <address>`.
        mode: Of the files that have content, "100644" for ordinary ones.
    """

    message: str
    files: Mapping[str, bytes | None] = field(default_factory=dict)
    t: int = START
    author: str = "Ada <ada@example.org>"
    mode: str = "100644"


def write_repository(folder: Path, commits: Sequence[PlannedCommit]) -> Path:
    """Make a bare repository with the commits on `main`, one after the other.

    Args:
        folder: Where; made if it is not there.
        commits: Oldest first; may be empty.

    Returns:
        The folder.
    """
    folder.mkdir(parents=True, exist_ok=True)
    repository = Repository.at(folder)
    repository.git("init", "--quiet", "--bare", "--initial-branch=main", ".")
    stream = b"".join(line for commit in commits for line in _commands(commit))
    repository.git("fast-import", "--quiet", feed=stream)
    return folder


def generate_repository(folder: Path, *, commits: int = 60, topics: int = 6, seed: int = 0) -> Path:
    """Make a repository whose past tells what belongs together and whose texts do not.

    Each topic has words that only its messages say, and three files with words of their own: a
    vector search over the files cannot know which of them a message is about, its history can.

    Args:
        folder: Where.
        commits: How many, one a day.
        topics: How many there are.
        seed: The same seed gives the same repository.
    """
    draw = random.Random(seed)  # noqa: S311 - it shall be predictable
    said = [[_word(draw) for _ in range(8)] for _ in range(topics)]
    paths = [[f"src/{_word(draw)}_{topic}.py" for _ in range(3)] for topic in range(topics)]
    planned = []
    for day in range(commits):
        topic = day % topics if day < topics else draw.randrange(topics)
        words = draw.sample(said[topic], 4)
        touched = paths[topic] if day < topics else draw.sample(paths[topic], 2)
        files = {path: _text(draw) for path in touched}
        message = f"Let {' '.join(words)} be {_word(draw)}"
        planned.append(PlannedCommit(message, files, START + day * DAY))
    return write_repository(folder, planned)


def _word(draw: random.Random) -> str:
    return "".join(draw.choice(_SYLLABLES) for _ in range(3))


def _text(draw: random.Random) -> bytes:
    lines = (" ".join(_word(draw) for _ in range(8)) for _ in range(10))
    return ("\n".join(lines) + "\n").encode()


def _commands(commit: PlannedCommit) -> Iterator[bytes]:
    """The commit in the language of `git fast-import`."""
    yield b"commit refs/heads/main\n"
    for role in ("author", "committer"):
        yield f"{role} {commit.author} {commit.t} +0000\n".encode()
    yield _sized(commit.message.encode())
    for path, content in commit.files.items():
        name = _quoted(path)
        if content is None:
            yield f"D {name}\n".encode()
        elif commit.mode == "160000":  # a submodule: the content is the id of its commit
            yield f"M 160000 {content.decode()} {name}\n".encode()
        else:
            yield f"M {commit.mode} inline {name}\n".encode() + _sized(content)


def _sized(content: bytes) -> bytes:
    return b"data %d\n%b\n" % (len(content), content)


def _quoted(path: str) -> str:
    escaped = path.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
