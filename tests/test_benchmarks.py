"""The published tables are made of the published figures."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_the_tables_of_the_document_are_those_of_the_figures():
    code = (
        "from render import DOCS, rendered\n"
        "text = DOCS.read_text(encoding='utf-8')\n"
        "assert rendered(text) == text, 'run benchmarks/quality/render.py'\n"
        "assert text.count('<!-- begin') == text.count('<!-- end') == 7"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT / "benchmarks" / "quality",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
