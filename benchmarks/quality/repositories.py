"""Replays the histories of public repositories under every condition; writes one JSON file.

    python benchmarks/quality/repositories.py CLONES OUT.json            # wordllama, from git
    python benchmarks/quality/repositories.py REPLAY OUT.json --vectors  # given vectors

CLONES holds full clones by name (flask, click, ...), REPLAY pairs of NAME.jsonl.gz and NAME.npz.
What is not there is passed over and said. Tables: render.py.
"""

import argparse
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from sets import MAIN, SETS

from synapse_retrievers.eval_report import eval_json
from synapse_retrievers.evaluation.evaluate import Evaluation, evaluate, over_all
from synapse_retrievers.evaluation.sources import Source, as_log, from_git, from_runs
from synapse_retrievers.report import plain

NEWEST = 3_000
"""Usable commits of a repository, at most."""

CONDITIONS: Mapping[str, Mapping[str, Any]] = {
    MAIN: {},
    "learned from what was used among what was shown": {"mode": "shown"},
    "the same, every other run adds two random nodes": {"mode": "noisy"},
    "learned from random nodes": {"mode": "garbage"},
    "learned from nothing": {"mode": "none"},
    "one used file is known": {"mode": "midrun"},
    "chunks, k = 5": {"k": 5},
    "files, k = 8": {"unit": "files"},
    "BM25": {"base": "bm25"},
    "vector + BM25": {"base": "hybrid"},
}
CUTS = ("slices", "fifths")
NEEDS_TEXTS = {"BM25", "vector + BM25"}


def main() -> None:
    """Read the arguments, replay, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--vectors", action="store_true", help="read given vectors, not git")
    parser.add_argument("--only", nargs="*", help="names of sets")
    given = parser.parse_args()
    sources = dict(_sources(given.folder, vectors=given.vectors, only=given.only or list(SETS)))
    conditions = [name for name in CONDITIONS if not (given.vectors and name in NEEDS_TEXTS)]
    told = {}
    for name in conditions:
        told[name] = _condition(name, sources)
        write(given.out, {"conditions": told})


def _sources(folder: Path, *, vectors: bool, only: Sequence[str]) -> Iterator[tuple[str, Source]]:
    for name in (name for group in only for name in SETS[group]):
        path = folder / (f"{name}.jsonl.gz" if vectors else name)
        if not path.exists():
            _say(f"{name}: not in {folder}")
            continue
        read = from_runs(path, None, _quietly) if vectors else from_git(path, NEWEST, _quietly)
        yield name, replace(read, name=name)
        _say(f"{name}: read")


def _condition(name: str, sources: Mapping[str, Source]) -> dict[str, object]:
    found: dict[str, Evaluation] = {}
    how = dict(CONDITIONS[name])
    search = {key: how.pop(key) for key in ("base", "k", "unit") if key in how}
    for log, source in sources.items():
        others = [other for other in sources.values() if other is not source]
        asked = as_log(source, others, **({"k": 8, "unit": "chunks"} | search))
        is_main = name == MAIN
        found[log] = evaluate(asked, from_start=is_main, controls=is_main, **how)
        recall = found[log].systems["synapses"].recall
        _say(f"{name}: {log} {recall.plain:.3f} -> {recall.wrapped:.3f}")
    groups = {
        group: plain(over_all([found[log] for log in names if log in found]))
        for group, names in SETS.items()
        if any(log in found for log in names)
    }
    logs: Any = eval_json(list(found.values()))["logs"]
    brief = main_figures if name == MAIN else figures
    return {"macro": groups, "logs": [brief(log) for log in logs]}


def figures(log: dict[str, Any]) -> dict[str, Any]:
    """What a table of conditions tells of one log."""
    return {key: log[key] for key in ("name", "k", "mode", "systems", "foreign")}


def main_figures(log: dict[str, Any]) -> dict[str, Any]:
    """The same with recall in every part of the log."""
    cuts = {cut: {name: _recall(told) for name, told in log[cut].items()} for cut in CUTS}
    curve = [step | {"systems": _recall(step["systems"])} for step in log["curve"]]
    return figures(log) | cuts | {"curve": curve}


def _recall(told: dict[str, Any]) -> dict[str, Any]:
    return {
        system: {"asked": part["asked"], "recall": part["metrics"]["recall"]}
        for system, part in told.items()
    }


def write(path: Path, value: object) -> None:
    """As JSON, one line a log, in six digits."""
    text = json.dumps(rounded(value), indent=1, allow_nan=False)
    path.write_text(re.sub(r"\n {4,}", " ", text) + "\n", encoding="utf-8")


def rounded(value: Any) -> Any:
    """The same with six digits behind the point."""
    if isinstance(value, dict):
        return {key: rounded(one) for key, one in value.items()}
    if isinstance(value, list):
        return [rounded(one) for one in value]
    return round(value, 6) if isinstance(value, float) else value


def _say(line: str) -> None:
    sys.stderr.write(line + "\n")


def _quietly(*_step: object) -> None:
    """Tell nobody."""


if __name__ == "__main__":
    main()
