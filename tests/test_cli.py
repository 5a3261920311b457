"""The real command line over real stores: reports, JSON, one line for each error."""

import json
import os
import re
import sqlite3
import subprocess
import sys

import pytest

from synapse_retrievers import Synapse

pytest.importorskip("typer")
pytest.importorskip("rich")

from typer.testing import CliRunner

from synapse_retrievers.commands import app

DAY = 86_400.0


def synapse(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def store(tmp_path):
    path = tmp_path / "synapse.db"
    taught = Synapse(path)
    taught.reinforce(["config.py", "window.py"], query="draw the [bold]config[/] window")
    taught.reinforce(["config.py", "parser.py"], query="parse the config file")
    taught.close()
    return path


def test_stats_tell_what_a_store_holds(store):
    found = synapse("stats", store)
    assert found.exit_code == 0
    assert found.stderr == ""
    assert "personal" in found.stdout
    (row,) = [line for line in found.stdout.splitlines() if "personal" in line]
    assert row.split()[1:4] == ["3", "2", "2"]


def test_stats_of_an_empty_store_say_so(tmp_path):
    Synapse(tmp_path / "new.db").close()
    with sqlite3.connect(tmp_path / "new.db"):
        pass
    found = synapse("stats", tmp_path / "new.db")
    assert found.exit_code == 0
    assert "nothing learned yet" in found.stdout


def test_explain_names_what_is_reached_and_the_past_use_behind_it(store):
    found = synapse("explain", store, "parse a config")
    assert found.exit_code == 0
    lines = found.stdout.splitlines()
    assert "config.py" in lines[1]
    assert 'used for "parse the config file"' in lines[2]
    # What a user wrote is shown as it is, never read as markup.
    assert "draw the [bold]config[/] window" in found.stdout


def test_explain_says_when_nothing_is_reached(store):
    assert "reaches nothing" in synapse("explain", store, "zebra").stdout
    other = synapse("explain", store, "parse a config", "--namespace", "tenant")
    assert "reaches nothing in tenant" in other.stdout


@pytest.mark.parametrize("arguments", [("stats",), ("explain", "parse a config")])
def test_json_is_one_object_and_nothing_else(store, arguments):
    command, *rest = arguments
    found = synapse(command, store, *rest, "--json")
    assert found.exit_code == 0
    assert found.stderr == ""
    assert isinstance(json.loads(found.stdout), dict)
    assert found.stdout.count("\n") == 1


def test_the_json_of_explain_holds_the_whole_trace(store):
    found = json.loads(synapse("explain", store, "parse a config", "--json").stdout)
    assert found["query"] == "parse a config"
    assert found["reached"][0]["node"] == "config.py"
    assert found["reached"][0]["carriers"][0]["source"] == "parse the config file"


def wrong_stores(folder):
    (folder / "garbage.db").write_bytes(b"no database at all" * 100)
    taught = Synapse(folder / "newer.db")
    taught.reinforce(["a", "b"])
    taught.close()
    with sqlite3.connect(folder / "newer.db") as database:
        database.execute("PRAGMA user_version = 99")
    database.close()
    return {
        "missing.db": "does not exist",
        ".": "is no file",
        "garbage.db": "cannot be read",
        "newer.db": "schema version 99",
    }


def test_each_wrong_store_is_one_clear_line_and_exit_code_2(tmp_path):
    for name, said in wrong_stores(tmp_path).items():
        for command in (("stats",), ("explain", "a query")):
            found = synapse(command[0], tmp_path / name, *command[1:])
            assert found.exit_code == 2, name
            assert found.stdout == ""
            assert found.stderr.startswith("synapse: ")
            assert found.stderr.count("\n") == 1
            assert said in found.stderr
    assert not (tmp_path / "missing.db").exists()


def test_a_namespace_that_is_none_is_one_clear_line(store):
    found = synapse("explain", store, "a query", "--namespace", "two words")
    assert found.exit_code == 2
    assert "is no namespace" in found.stderr


def test_every_command_shows_its_options_and_an_example():
    overview = synapse("--help")
    assert overview.exit_code == 0
    for command in ("demo", "stats", "explain"):
        assert command in overview.stdout
        found = synapse(command, "--help")
        assert found.exit_code == 0
        assert f"Example: synapse {command}" in " ".join(found.stdout.split())


def test_an_unknown_option_and_a_number_out_of_range_are_usage_errors():
    assert synapse("stats", "x.db", "--nonsense").exit_code == 2
    assert synapse("demo", "--limit", "0").exit_code == 2


def run_main(*arguments, before=""):
    code = f"import sys\n{before}\nfrom synapse_retrievers.cli import main\nmain()"
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_entry_point_runs_in_a_process_of_its_own(store, tmp_path):
    found = run_main("stats", store, "--json")
    assert (found.returncode, found.stderr) == (0, "")
    assert json.loads(found.stdout)["namespaces"]["personal"]["episodes"] == 2
    failed = run_main("stats", tmp_path / "missing.db")
    assert (failed.returncode, failed.stdout) == (2, "")
    assert "Traceback" not in failed.stderr


@pytest.mark.parametrize("library", ["typer", "rich"])
def test_without_its_libraries_it_says_how_to_get_them(library):
    found = run_main("stats", "x.db", before=f"sys.modules[{library!r}] = None")
    assert (found.returncode, found.stdout) == (2, "")
    assert found.stderr.count("\n") == 1
    assert "pip install 'synapse-retrievers[cli]'" in found.stderr


@pytest.mark.parametrize("library", ["chromadb", "langchain_chroma", "wordllama"])
def test_without_the_frameworks_the_demo_says_how_to_get_them(library):
    found = run_main("demo", before=f"sys.modules[{library!r}] = None")
    assert (found.returncode, found.stdout) == (2, "")
    assert found.stderr.count("\n") == 1
    assert "pip install 'synapse-retrievers[demo]'" in found.stderr


@pytest.fixture(scope="module")
def history(tmp_path_factory):
    pytest.importorskip("pytrec_eval")
    from synapse_retrievers.evaluation.datasets import generate_repository

    return generate_repository(tmp_path_factory.mktemp("eval") / "made", commits=80, topics=8)


def test_eval_tells_whether_it_is_worth_it(history, tmp_path):
    page = tmp_path / "page.html"
    found = synapse("eval", "--git", history, "--html", page)
    assert found.exit_code == 0
    assert found.stderr == ""
    for told in ("made: 80 runs", "with synapses", "seed paper", "popularity", "novel queries"):
        assert told in found.stdout
    assert re.search(r"about something else +something came in for 0.0% of 40", found.stdout)
    assert "too little to tell: 16 questions" in found.stdout
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_eval_as_json_holds_every_figure(history):
    found = synapse("eval", "--git", history, "--git", history, "--json", "--learn-from", "shown")
    values = json.loads(found.stdout)
    one, other = values["logs"]
    assert one["systems"]["synapses"] == other["systems"]["synapses"]
    recall = one["systems"]["synapses"]["metrics"]["recall"]
    assert recall["difference"] == pytest.approx(recall["wrapped"] - recall["plain"])
    assert one["mode"] == "shown"
    assert values["macro"]["logs"] == 2
    assert one["foreign"]["asked"] > 0


@pytest.mark.parametrize("base", ["vector", "bm25", "hybrid"])
def test_eval_wraps_any_base_in_files_and_chunks(history, base):
    for unit in ("chunks", "files"):
        arguments = ("--git", history, "--base", base, "--unit", unit, "-k", 5, "--json")
        found = synapse("eval", *arguments)
        assert found.stderr == ""
        assert json.loads(found.stdout)["logs"][0]["k"] == 5


def test_no_library_writes_between_the_lines_of_a_report(history, tmp_path):
    code = "from synapse_retrievers.cli import main; main()"
    arguments = ("eval", "--git", history, "--base", "hybrid", "--html", tmp_path / "page.html")
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "MPLCONFIGDIR": str(tmp_path)},
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_eval_reads_a_log_of_an_application(tmp_path):
    pytest.importorskip("pytrec_eval")
    runs = [
        {"t": n, "query": f"how do I rotate key {n}", "used": ["keys"], "shown": ["a", "b"]}
        for n in range(40)
    ]
    path = tmp_path / "runs.jsonl"
    path.write_text("\n".join(map(json.dumps, runs)), encoding="utf-8")
    values = json.loads(synapse("eval", "--runs", path, "--json").stdout)
    recall = values["logs"][0]["systems"]["synapses"]["metrics"]["recall"]
    assert (recall["plain"], recall["wrapped"]) == (0.0, 1.0)


def test_eval_of_a_log_that_asks_nothing_says_so_without_numbers(tmp_path):
    pytest.importorskip("pytrec_eval")
    run = {"t": 1, "query": "one two three four", "used": [], "shown": ["a"]}
    path, page = tmp_path / "runs.jsonl", tmp_path / "page.html"
    path.write_text(json.dumps(run), encoding="utf-8")
    found = synapse("eval", "--runs", path, "--html", page)
    assert found.exit_code == 0
    assert "too little to tell: 0 questions" in found.stdout
    assert "nan" not in found.stdout + page.read_text(encoding="utf-8")
    told = json.loads(synapse("eval", "--runs", path, "--json").stdout)
    assert told["logs"][0]["systems"]["synapses"]["metrics"]["recall"]["plain"] is None


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "give --git REPO or --runs FILE"),
        (("--runs", "missing.jsonl"), "missing.jsonl: No such file"),
        (("--git", "nowhere"), "nowhere does not exist"),
    ],
)
def test_eval_says_in_one_line_what_is_wrong(arguments, told):
    pytest.importorskip("pytrec_eval")
    found = synapse("eval", *arguments)
    assert found.exit_code == 2
    assert told in found.stderr
    assert len(found.stderr.splitlines()) == 1


def test_eval_names_a_page_that_cannot_be_written(history, tmp_path):
    found = synapse("eval", "--git", history, "--html", tmp_path)
    assert found.exit_code == 2
    assert "--html" in found.stderr


def test_without_its_libraries_eval_says_how_to_get_them():
    code = (
        "import sys; sys.modules['pytrec_eval'] = None\n"
        "from synapse_retrievers.commands import app; app(['eval', '--git', '.'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "pip install 'synapse-retrievers[eval]'" in done.stderr
