"""Where logs come from, and what is wrong with some of them."""

import gzip
import json

import numpy as np
import pytest

from synapse_retrievers.evaluation.datasets import generate_repository
from synapse_retrievers.evaluation.foreign import EVERYDAY
from synapse_retrievers.evaluation.log import (
    NoTextsError,
    NothingToSearchError,
    Run,
    UnreadableLogError,
    read_runs,
)
from synapse_retrievers.evaluation.sources import MOST_FOREIGN, as_log, from_git, from_runs

RUNS = [
    {"t": 20, "query": "load the keys of the user", "used": ["keys.py"]},
    {"t": 10.5, "query": "draw the main window", "used": ["window.py"], "shown": ["a", "b", "a"]},
]
DOCUMENTS = [
    {"id": "keys.py", "text": "load keys"},
    {"id": "window.py", "text": "draw a window"},
]


def quietly(*_step):
    """Tell nobody."""


def written(path, rows, opened=open):
    with opened(path, "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    return path


def with_vectors(folder, name="log", runs=RUNS, **changed):
    arrays = {
        "files": np.array(["keys.py", "window.py"]),
        "chunk_file": np.array([0, 1, 1]),
        "chunk_vectors": np.eye(3, dtype=np.float16),
        "query_vectors": np.eye(3, dtype=np.float16)[: len(runs)],
    }
    np.savez(folder / f"{name}.npz", **(arrays | changed))
    return written(folder / f"{name}.jsonl", runs)


def test_a_log_is_read_as_it_stands_and_sorted_by_time(tmp_path):
    path = written(tmp_path / "log.jsonl.gz", RUNS, gzip.open)
    assert read_runs(path)[1] == Run(10.5, "draw the main window", ("window.py",), ("a", "b", "a"))
    source = from_runs(path, written(tmp_path / "docs.jsonl", DOCUMENTS), quietly)
    assert [run.t for run in source.runs] == [10.5, 20.0]
    assert source.corpus.sources == ("keys.py", "window.py")
    log = as_log(source, unit="chunks", k=1)
    assert log.plain(source.runs[1]).nodes == ("keys.py",)
    assert log.foreign == EVERYDAY


def test_given_vectors_go_with_their_runs_whatever_the_order_in_the_file(tmp_path):
    source = from_runs(with_vectors(tmp_path), None, quietly)
    assert source.name == "log"
    assert [run.used for run in source.runs] == [("window.py",), ("keys.py",)]
    log = as_log(source, unit="chunks", k=1)
    assert [log.plain(run).nodes for run in source.runs] == [("window.py",), ("keys.py",)]
    assert log.foreign == (), "without texts nothing can be embedded"
    with pytest.raises(NoTextsError, match="BM25"):
        as_log(source, base="bm25", unit="chunks", k=1)


def test_other_logs_lend_questions_of_their_last_fifth(tmp_path):
    many = [
        {"t": n, "query": f"a question with number {n}", "used": ["keys.py"]} for n in range(2_000)
    ]
    vectors = np.tile(np.eye(3)[:1], (2_000, 1))
    lender = from_runs(with_vectors(tmp_path, "many", many, query_vectors=vectors), None, quietly)
    source = from_runs(with_vectors(tmp_path), None, quietly)
    log = as_log(source, [lender], unit="chunks", k=1)
    assert len(log.foreign) == MOST_FOREIGN
    assert log.foreign[0] == "a question with number 1600"
    assert all(log.results[query].nodes for query in log.foreign)


def test_what_was_shown_is_the_plain_result_where_there_is_nothing_else(tmp_path):
    source = from_runs(written(tmp_path / "log.jsonl", RUNS), None, quietly)
    log = as_log(source, unit="chunks", k=2)
    assert [run.query for run in log.runs] == ["draw the main window"]
    assert log.plain(log.runs[0]).nodes == ("a", "b")
    assert log.nodes == {"a", "b", "window.py"}
    path = written(tmp_path / "bare.jsonl", RUNS[:1])
    with pytest.raises(NothingToSearchError, match=r"--documents.*bare\.npz"):
        from_runs(path, None, quietly)


def test_a_git_history_is_a_log(tmp_path):
    source = from_git(generate_repository(tmp_path / "made", commits=30), None, quietly)
    assert (source.name, len(source.runs)) == ("made", 30)
    assert source.vectors.shape == (30, 256)
    log = as_log(source, unit="files", k=5)
    assert all(len(set(log.plain(run).nodes)) == 5 for run in log.runs)


@pytest.mark.parametrize(
    "line",
    [
        "nonsense",
        "[]",
        "{}",
        '{"t": 1, "query": 5, "used": []}',
        '{"t": "soon", "query": "q", "used": []}',
        '{"t": NaN, "query": "q", "used": []}',
        '{"t": 1, "query": "q", "used": "keys.py"}',
        '{"t": 1, "query": "q", "used": [1]}',
        '{"t": 1, "query": "q", "used": [""]}',
        "[" * 100_000,
    ],
)
def test_a_line_that_is_no_run_is_named(tmp_path, line):
    path = tmp_path / "log.jsonl"
    path.write_text(json.dumps(RUNS[0]) + "\n\n" + line + "\n", encoding="utf-8")
    with pytest.raises(UnreadableLogError, match="line 3"):
        read_runs(path)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("empty.jsonl", b""),
        ("latin.jsonl", '{"t": 1, "query": "ä"}'.encode("latin-1")),
        ("cut.jsonl.gz", gzip.compress(b"{}" * 100)[:-10]),
        ("plain.jsonl.gz", b"{}"),
    ],
)
def test_a_file_that_is_no_log_is_refused_in_one_sentence(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UnreadableLogError, match=name):
        read_runs(tmp_path / name)


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(UnreadableLogError, match="No such file"):
        read_runs(tmp_path / "log.jsonl")


def test_vectors_that_do_not_belong_to_the_log_are_refused(tmp_path):
    for changed in (
        {"query_vectors": np.eye(3)},
        {"chunk_vectors": np.eye(3)[:2]},
        {"chunk_file": np.array([0, 1, 7])},
        {"files": np.array([object()])},
    ):
        with pytest.raises(UnreadableLogError, match=r"log\.npz"):
            from_runs(with_vectors(tmp_path, **changed), None, quietly)
    (tmp_path / "log.npz").write_bytes(b"no archive")
    with pytest.raises(UnreadableLogError, match=r"log\.npz"):
        from_runs(tmp_path / "log.jsonl", None, quietly)
