"""The text files of a repository as they stood at a commit, and their chunks."""

from collections.abc import Iterator, Sequence

from synapse_retrievers.evaluation.changes import decoded
from synapse_retrievers.evaluation.repository import Repository, UnreadableHistoryError

CHUNK_CHARACTERS = 1_000
MOST_CHUNKS = 40
"""Of one file: a changelog of twenty years must not fill the index."""
MOST_BYTES = 1_000_000
"""Larger files are generated or data."""

_BATCH = 500
_SNIFFED = 8_000
"""Bytes in which git, too, looks for a NUL before it calls a file binary."""


def text_files(repository: Repository, commit: str) -> Iterator[tuple[str, str]]:
    """Path and text of each ordinary text file in ascending order of paths, nothing checked out.

    Symbolic links, submodules, binary files, files with nothing but white space and files above
    `MOST_BYTES` are left out.

    Raises:
        UnreadableHistoryError: A file's content is missing, as in a partial clone.
    """
    listed = repository.git("ls-tree", "-r", "-z", "--full-tree", "--long", commit)
    wanted = sorted(_wanted(repository, listed))
    for at in range(0, len(wanted), _BATCH):
        batch = wanted[at : at + _BATCH]
        output = repository.git("cat-file", "--batch", feed=b"".join(b + b"\n" for _, b in batch))
        contents = _contents(output, len(batch))
        for (path, _), content in zip(batch, contents, strict=True):
            text = content.decode("utf-8-sig", "replace")
            if b"\0" not in content[:_SNIFFED] and text.strip():
                yield path, text


def chunks(path: str, text: str) -> list[str]:
    r"""The text in pieces of at most `CHUNK_CHARACTERS`, the path in front of each.

    A piece ends at the end of a line where one lies in its second half.

    >>> chunks("a.txt", "one\ntwo\n")
    ['a.txt\none\ntwo\n']
    """
    pieces: list[str] = []
    at = 0
    while at < len(text) and len(pieces) < MOST_CHUNKS:
        end = at + CHUNK_CHARACTERS
        if end < len(text):
            line_end = text.rfind("\n", at + CHUNK_CHARACTERS // 2, end) + 1
            end = line_end or end
        pieces.append(f"{path}\n{text[at:end]}")
        at = end
    return pieces


def _wanted(repository: Repository, listed: bytes) -> Iterator[tuple[str, bytes]]:
    for entry in listed.split(b"\0")[:-1]:
        head, path = entry.split(b"\t", 1)
        mode, _, blob, size = head.split()
        if not mode.startswith(b"100"):
            continue
        if size == b"BAD":
            raise UnreadableHistoryError(
                repository.path, "file contents are missing, as in a partial clone"
            )
        if 0 < int(size) <= MOST_BYTES:
            yield decoded(path), blob


def _contents(output: bytes, count: int) -> Sequence[bytes]:
    """The contents in `git cat-file --batch` output: a head line with the size, then as much."""
    contents: list[bytes] = []
    at = 0
    for _ in range(count):
        start = output.index(b"\n", at) + 1
        end = start + int(output[at:start].split()[2])
        contents.append(output[start:end])
        at = end + 1
    return contents
