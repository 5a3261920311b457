"""The main job, through the real command line, on real repositories made from a seed."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("typer")
pytest.importorskip("rich")
pytest.importorskip("chromadb")
pytest.importorskip("wordllama")
pytest.importorskip("langchain_chroma")
pytest.importorskip("langchain_synapse_retrievers")

from typer.testing import CliRunner

from synapse_retrievers import Synapse
from synapse_retrievers.commands import app
from synapse_retrievers.demo import run_demo
from synapse_retrievers.demo.index import Index, WordLlamaEmbeddings
from synapse_retrievers.evaluation.datasets import (
    START,
    PlannedCommit,
    generate_repository,
    write_repository,
)
from synapse_retrievers.evaluation.evaluate import evaluate
from synapse_retrievers.evaluation.sources import as_log, from_git


def demo(*arguments):
    return CliRunner().invoke(app, ["demo", *map(str, arguments)])


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    return generate_repository(tmp_path_factory.mktemp("demo") / "garden", commits=120)


@pytest.fixture(scope="module")
def result(repository):
    return run_demo(repository)


def test_learning_from_use_finds_more_in_the_same_count(result):
    found = result.replay
    assert (result.repository, result.commits, result.usable) == ("garden", 120, 120)
    assert found.recall.interval is not None
    assert found.recall.interval.low > 0
    assert found.reciprocal_rank.difference > 0
    assert found.ndcg.difference > 0
    assert found.recall.lost <= 0.04
    assert found.same_count == len(found.rows) == 24
    assert {len(row.answer.wrapped) for row in found.rows} == {8}
    assert result.failures == 0
    assert not result.is_little


def test_every_example_is_a_query_that_gained_and_its_trace_says_why(result):
    assert len(result.examples) == 3
    for row in result.examples:
        assert row.recall[1] > row.recall[0]
        trace = row.answer.trace
        assert trace is not None
        assert trace.query == row.run.query
        came_in = [move for move in trace.moves if move.kind == "displaced_in"]
        assert came_in
        assert all(move.carriers and move.displaced for move in came_in)


def test_the_same_history_gives_the_same_answers(repository, result):
    again = run_demo(repository)
    assert [row.answer.wrapped for row in again.replay.rows] == [
        row.answer.wrapped for row in result.replay.rows
    ]
    assert again.replay.recall == result.replay.recall


def test_an_evaluation_without_a_framework_finds_the_same(repository, result):
    source = from_git(repository, None, lambda *_step: None)
    found = evaluate(as_log(source, unit="chunks", k=8), from_start=False, controls=False)
    told = found.systems["synapses"]
    assert told.recall == result.replay.recall
    assert told.metrics["reciprocal_rank"] == result.replay.reciprocal_rank
    assert told.metrics["ndcg"] == result.replay.ndcg


def test_times_are_measured(result):
    assert result.plain_seconds > 0
    assert result.added_seconds is not None
    assert result.store_bytes > 0


def test_the_report_shows_figures_examples_and_how_to_go_on(repository):
    found = demo(repository)
    assert found.exit_code == 0
    assert found.stderr == ""  # no terminal, no bars
    text = " ".join(found.stdout.split())
    for told in (
        "garden: 120 usable of 120 commits",
        "recall@8",
        "MRR@8",
        "nDCG@8",
        "95 % interval",
        "win / lose",
        "results always k 24 of 24",
        "ms a plain query",
        "3 queries that gained most",
        "came in at place",
        "similarity",
        "days ago",
        "SynapseRetriever.wrap(retriever, 'synapse.db', node=\"source\")",
    ):
        assert told in text, told


def test_json_is_one_object_with_the_same_figures(repository, result):
    found = demo(repository, "--json")
    assert (found.exit_code, found.stderr, found.stdout.count("\n")) == (0, "", 1)
    values = json.loads(found.stdout)
    assert values["metrics"]["recall"]["difference"] == result.replay.recall.difference
    assert values["metrics"]["recall"]["interval"]["low"] > 0
    assert (values["asked"], values["same_count"], values["k"]) == (24, 24, 8)
    assert len(values["examples"]) == 3
    assert values["examples"][0]["moves"]


def test_the_store_is_kept_and_can_be_read_but_not_measured_twice(repository, tmp_path):
    store = tmp_path / "new" / "garden.db"
    assert demo(repository, "--store", store).exit_code == 0
    kept = Synapse(store)
    assert kept.stats().namespaces["personal"].episodes > 100
    assert kept.stats().namespaces["personal"].node_kind == "source"
    kept.close()
    query = run_demo(repository, limit=20).replay.rows[0].run.query
    read = CliRunner().invoke(app, ["explain", str(store), query])
    assert "used for" in read.stdout
    again = demo(repository, "--store", store)
    assert again.exit_code == 2
    assert "taught already" in again.stderr


def test_the_index_is_kept_and_used_again(repository, tmp_path, monkeypatch):
    folder = tmp_path / "index"
    first = demo(repository, "--folder", folder, "--json")
    assert first.exit_code == 0

    def refuse(*_):
        raise AssertionError

    monkeypatch.setattr(WordLlamaEmbeddings, "embed_documents", _queries_only(refuse))
    second = demo(repository, "--folder", folder, "--json")
    assert second.exit_code == 0, second.exception
    one, two = json.loads(first.stdout), json.loads(second.stdout)
    assert one["metrics"] == two["metrics"]


def _queries_only(refuse):
    embed = WordLlamaEmbeddings.embed_documents

    def embed_documents(self, texts):
        return refuse() if any(text.startswith("src/") for text in texts) else embed(self, texts)

    return embed_documents


def test_an_index_that_was_cut_off_is_made_anew(tmp_path):
    files = {f"{n}.py": f"text {n}" for n in range(5)}
    build = lambda: Index.build("r", "c" * 40, files, tmp_path / "index")  # noqa: E731
    cut = build()
    cut.vectorstore.add_texts(["old"], metadatas=[{"source": "old.py"}], ids=["old"])
    whole = build()
    whole.fill(lambda *_: None)
    assert sorted(whole.vectorstore.get()["ids"]) == [f"{n:07d}" for n in range(5)]


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 12])
def test_little_history_runs_all_the_same_and_says_how_little_it_means(tmp_path, count):
    folder = generate_repository(tmp_path / "little", commits=count)
    found = demo(folder)
    assert found.exit_code == 0, found.exception
    text = " ".join(found.stdout.split())
    assert f"{count} usable commits are very few" in text
    assert "SynapseRetriever.wrap" in text
    values = json.loads(demo(folder, "--json").stdout)
    assert values["is_little"]
    if count == 1:
        assert "Nothing could be asked" in text
        assert values["metrics"]["recall"]["plain"] is None


def test_when_nothing_gained_it_says_so(tmp_path):
    commits = [
        PlannedCommit(f"Say the word number {n} again", {"only.txt": b"%d\n" % n}, START + n)
        for n in range(10)
    ]
    found = demo(write_repository(tmp_path / "one", commits))
    assert found.exit_code == 0
    assert "No query's answer changed for the better" in found.stdout


def test_each_thing_that_may_be_wrong_is_one_clear_line_and_exit_code_2(tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    good = generate_repository(tmp_path / "good", commits=6)
    (tmp_path / "plain").mkdir()
    (tmp_path / "file").write_text("x")
    shallow = tmp_path / "shallow"
    clone = ["git", "clone", "-q", "--depth", "1", good.as_uri(), str(shallow)]
    subprocess.run(clone, check=True, capture_output=True)
    empty = write_repository(tmp_path / "empty", [])
    for said, arguments in {
        "does not exist": [tmp_path / "nowhere"],
        "is no git repository": [tmp_path / "plain"],
        "is no folder": [tmp_path / "file"],
        "shallow clone": [shallow],
        "no usable history": [empty],
        "--store": [good, "--store", tmp_path / "file" / "synapse.db"],
        "--folder": [good, "--folder", tmp_path / "file" / "index"],
    }.items():
        _assert_one_line(demo(*arguments), said)
    monkeypatch.setenv("PATH", str(tmp_path))
    _assert_one_line(demo(good), "git was not found")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_folder_is_one_clear_line(repository, tmp_path):
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o500)
    _assert_one_line(demo(repository, "--store", locked / "synapse.db"), "cannot be written")
    _assert_one_line(demo(repository, "--folder", locked / "index"), "cannot be written")


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a place where nobody may write")
def test_a_place_where_nobody_may_write_is_one_clear_line(repository):
    _assert_one_line(demo(repository, "--store", "/proc/synapse.db"), "cannot be written")


def _assert_one_line(found, said):
    assert found.exit_code == 2, (said, found.stdout, found.exception)
    assert found.stdout == ""
    assert found.stderr.startswith("synapse: ")
    assert found.stderr.count("\n") == 1, found.stderr
    assert said in found.stderr


def test_it_runs_where_one_stands_in_a_process_of_its_own(repository, tmp_path):
    work = tmp_path / "work"
    clone = ["git", "clone", "-q", str(repository), str(work)]
    subprocess.run(clone, check=True)
    code = "from synapse_retrievers.cli import main; main()"
    command = [sys.executable, "-W", "error", "-c", code, "demo", "--limit", "60", "--json"]
    found = subprocess.run(command, cwd=work, capture_output=True, text=True, check=False)
    assert (found.returncode, found.stderr) == (0, "")
    values = json.loads(found.stdout)
    assert (values["repository"], values["usable"]) == ("work", 60)
    status = ["git", "-C", str(work), "status", "--porcelain"]
    assert subprocess.run(status, capture_output=True, text=True, check=True).stdout == ""
