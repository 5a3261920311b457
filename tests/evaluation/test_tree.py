"""The files as they stood at a commit, and their chunks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synapse_retrievers.evaluation.datasets import START, PlannedCommit, write_repository
from synapse_retrievers.evaluation.history import read_history
from synapse_retrievers.evaluation.repository import UnreadableHistoryError
from synapse_retrievers.evaluation.tree import (
    CHUNK_CHARACTERS,
    MOST_BYTES,
    MOST_CHUNKS,
    chunks,
    text_files,
)


def files_at(folder, moment=-1):
    history = read_history(folder)
    moment = moment % len(history.commits)
    return dict(text_files(history.repository, history.tree_at(moment)))


def test_text_files_are_read_as_they_stood_then(tmp_path):
    folder = write_repository(
        tmp_path / "r",
        [
            PlannedCommit("Add two", {"b.py": b"b1\n", "a.py": b"a1\n"}, START),
            PlannedCommit("Change one", {"a.py": b"a2\n", "c.py": b"c\n"}, START + 60),
        ],
    )
    assert files_at(folder, 0) == {"a.py": "a1\n", "b.py": "b1\n"}
    assert list(files_at(folder).items()) == [("a.py", "a2\n"), ("b.py", "b1\n"), ("c.py", "c\n")]


def test_only_ordinary_text_of_sensible_size_is_read(tmp_path):
    odd = "new\nline, 'quote' and 漢字.md"
    contents = {
        "empty.py": b"",
        "blank.py": b" \n\n",
        "binary.dat": b"text\0text",
        "utf16.txt": "text".encode("utf-16"),
        "large.txt": b"x" * (MOST_BYTES + 1),
        "latin.txt": "Käse".encode("latin-1"),
        "bom.txt": b"\xef\xbb\xbftext",
        odd: b"odd\n",
    }
    folder = write_repository(
        tmp_path / "r",
        [
            PlannedCommit("Add all", contents, START),
            PlannedCommit("Add a link", {"link": b"odd"}, START + 1, mode="120000"),
            PlannedCommit("Add a submodule", {"sub": b"1" * 40}, START + 2, mode="160000"),
            PlannedCommit("Add a script", {"run.sh": b"ls\n"}, START + 3, mode="100755"),
        ],
    )
    assert files_at(folder) == {
        "bom.txt": "text",
        "latin.txt": "K\ufffdse",
        odd: "odd\n",
        "run.sh": "ls\n",
    }


def test_many_files_are_read_in_order(tmp_path):
    contents = {f"{n:04d}.txt": b"%d\n" % n * (n % 7 + 1) for n in range(1_203)}
    commits = [
        PlannedCommit("Add one", {"x.txt": b"x\n"}, START),
        PlannedCommit("Add all", contents, START + 1),
    ]
    folder = write_repository(tmp_path / "r", commits)
    expected = {path: content.decode() for path, content in contents.items()}
    assert files_at(folder, 0) == {"x.txt": "x\n"}
    history = read_history(folder)
    found = dict(text_files(history.repository, "HEAD"))
    assert found == expected | {"x.txt": "x\n"}


def test_a_partial_clone_is_refused(tmp_path):
    folder = write_repository(
        tmp_path / "r", [PlannedCommit("Add a file", {"a.py": b"1\n"}, START)]
    )
    repository = read_history(folder).repository
    blob = repository.answer("rev-parse", "HEAD:a.py")
    (folder / "objects" / blob[:2] / blob[2:]).unlink()
    with pytest.raises(UnreadableHistoryError, match="partial clone"):
        list(text_files(repository, "HEAD"))


@given(text=st.text(st.sampled_from("ab\n "), max_size=5_000))
def test_chunks_hold_the_whole_text_in_order_under_the_path(text):
    pieces = chunks("p/q.py", text)
    assert all(piece.startswith("p/q.py\n") for piece in pieces)
    bodies = [piece.removeprefix("p/q.py\n") for piece in pieces]
    assert "".join(bodies) == text
    assert all(0 < len(body) <= CHUNK_CHARACTERS for body in bodies)


def test_chunks_end_at_line_ends_and_a_file_has_only_so_many():
    lines = "x" * 299 + "\n"
    assert [len(piece) for piece in chunks("f", lines * 6)] == [902, 902]
    assert len(chunks("f", "y" * (CHUNK_CHARACTERS * MOST_CHUNKS * 2))) == MOST_CHUNKS
    assert chunks("f", "") == []
