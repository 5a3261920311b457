"""Which files a commit touched, and what they were called at another time; pure text work."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

_FILES = ("100644", "100755")
"""The modes of ordinary files: no symbolic links, no submodules."""


@dataclass(frozen=True, slots=True)
class Change:
    """What one commit did to the files.

    Attributes:
        touched: Paths as they were called after the commit (before it, where it deleted them).
        text: Those of them that are ordinary files and hold text.
        renamed: (old path, new path) where git sees the same file under a new name.
    """

    touched: tuple[str, ...] = ()
    text: tuple[str, ...] = ()
    renamed: tuple[tuple[str, str], ...] = ()


def decoded(path: bytes) -> str:
    r"""The path as text that UTF-8 can hold, the same text every time.

    >>> decoded(b"caf\xc3\xa9.md"), decoded(b"\xff.md")
    ('café.md', '\\xff.md')
    """
    return path.decode("utf-8", "backslashreplace")


def changes(output: bytes) -> dict[str, Change]:
    """What `git diff-tree --stdin -z --raw --numstat` says, by commit id.

    A token is told by its place, never by its look: a path may look like anything.
    """
    tokens = iter(output.split(b"\0"))
    commits: dict[str, _Draft] = {}
    draft = _Draft()
    for token in tokens:
        if token.startswith(b":"):
            draft.add_file(token.decode("ascii").split(" "), tokens)
        elif b"\t" in token:
            draft.add_counts(token.split(b"\t", 2), tokens)
        elif token:
            draft = commits.setdefault(token.decode("ascii"), _Draft())
    return {commit: draft.change() for commit, draft in commits.items()}


@dataclass(slots=True)
class _Draft:
    """The change of one commit while its tokens are read."""

    files: list[tuple[str, bool]] = field(default_factory=list)
    binary: set[str] = field(default_factory=set)
    renamed: list[tuple[str, str]] = field(default_factory=list)

    def add_file(self, head: Sequence[str], tokens: Iterator[bytes]) -> None:
        """Read `:old-mode new-mode old-blob new-blob status`, then one or two paths."""
        was, mode, _, _, status = head
        old, new = _paths(tokens, count=2 if status[0] in "RC" else 1)
        is_file = (was.removeprefix(":") if status[0] == "D" else mode) in _FILES
        self.files.append((new, is_file))
        if status[0] == "R":
            self.renamed.append((old, new))

    def add_counts(self, head: Sequence[bytes], tokens: Iterator[bytes]) -> None:
        """Read `added TAB deleted TAB path`; a rename has its two paths behind."""
        added, _, path = head
        new = decoded(path) if path else _paths(tokens, count=2)[1]
        if added == b"-":
            self.binary.add(new)

    def change(self) -> Change:
        """What was read."""
        return Change(
            touched=tuple(path for path, _ in self.files),
            text=tuple(path for path, is_file in self.files if is_file and path not in self.binary),
            renamed=tuple(self.renamed),
        )


def _paths(tokens: Iterator[bytes], *, count: int) -> tuple[str, str]:
    first = decoded(next(tokens))
    return first, decoded(next(tokens)) if count > 1 else first


def names_at(
    moment: int, history: Sequence[Change], *, there: Iterable[str]
) -> list[tuple[str, ...]]:
    """The text files of each change under the names they had after one of the changes.

    Walks away from that moment in both directions and follows every rename on the way. A branch
    that still used an old name after the rename is understood too: a path that is not there at
    the moment takes the name that any rename of it led to.

    Args:
        moment: Index into `history` of the last change that had happened; -1 for none.
        history: Oldest first.
        there: The paths that exist at the moment.

    Returns:
        One tuple a change, distinct names in the order of `Change.text`; a file that had no name
        then keeps its own.
    """
    known = frozenset(there)
    names: list[tuple[str, ...]] = [()] * len(history)
    ever: dict[str, str] = {}
    for indices, side in (
        (range(moment, -1, -1), 0),
        (range(moment + 1, len(history)), 1),
    ):
        called: dict[str, str] = {}
        for index in indices:
            change = history[index]
            if side == 1:
                _follow(called, ((new, old) for old, new in change.renamed))
            names[index] = tuple(called.get(path, path) for path in change.text)
            if side == 0:
                _follow(called, change.renamed)
            ever.update(called)
    return [_resolved(paths, known, ever) for paths in names]


def _follow(called: dict[str, str], renamed: Iterable[tuple[str, str]]) -> None:
    """From here on each first path of `renamed` means what the second meant."""
    steps = [(path, called.get(other, other), other) for path, other in renamed]
    for _, _, other in steps:
        called.pop(other, None)
    called.update({path: name for path, name, _ in steps})


def _resolved(
    paths: Sequence[str], known: frozenset[str], ever: Mapping[str, str]
) -> tuple[str, ...]:
    return tuple(dict.fromkeys(path if path in known else ever.get(path, path) for path in paths))
