"""What the README shows works as it stands there."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
SETUP = (
    "python3 -m venv .venv && .venv/bin/pip install -r requirements-dev.txt"
    " && .venv/bin/synapse demo"
)
TESTS = ".venv/bin/pytest"


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.DOTALL | re.MULTILINE)


OFFLINE = """
import socket
def refuse(*address):
    raise OSError(f"the README needs the network: {address}")
socket.socket.connect = refuse
"""


def test_the_code_runs_offline_from_the_first_block_to_the_last(tmp_path):
    pytest.importorskip("langchain_chroma")
    pytest.importorskip("langchain_synapse_retrievers")
    # A process of its own: Chroma's in-memory clients of one process must have equal settings.
    code = "\n".join([OFFLINE, *blocks("python"), "retriever.synapse.close()"])
    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert (tmp_path / "synapse.db").exists()


def test_it_is_short_and_without_badges():
    assert len(README.splitlines()) <= 150
    assert "![" not in README


def test_two_commands_do_all_the_set_up_and_ci_uses_them():
    assert blocks("sh")[0].splitlines() == [SETUP, TESTS]
    ci = (ROOT / ".ci/run").read_text(encoding="utf-8")
    assert "setup=$(readme_command 1)" in ci
    assert 'bash -c "$setup"' in ci
    assert "tests=$(readme_command 2)" in ci
    assert 'bash -c "$tests"' in ci


def test_every_link_into_the_repository_leads_somewhere():
    targets = re.findall(r"\]\((?!https?:)([^)#]+)\)", README)
    assert [target for target in targets if not (ROOT / target).exists()] == []


def test_every_command_and_option_shown_exists():
    pytest.importorskip("typer")
    testing = pytest.importorskip("typer.testing")
    from synapse_retrievers.commands import app

    lines = [line for block in blocks("sh") for line in block.splitlines()]
    shown = [part for line in lines for part in line.split("&&") if "bin/synapse" in part]
    for words in map(shlex.split, shown):
        result = testing.CliRunner().invoke(app, [words[1], "--help"], env={"COLUMNS": "200"})
        assert result.exit_code == 0, result.output
        assert [w for w in words if w.startswith("--") and w not in result.output] == []
