"""SWE-bench Lite, issue -> file: the commits before the base commit are the use.

    python benchmarks/quality/issues.py INSTANCES.jsonl CLONES OUT.json

INSTANCES holds one instance a line: instance_id, repo, base_commit, problem_statement, patch.
CLONES holds full clones by name; instances whose repository or commit is not there are passed over
and counted. Searched are the Python files at the base commit, in chunks, by wordllama's vectors,
BM25 and both; the memory is the 3,000 usable commits before the first base commit of the repository
and all up to each instance's own, by the paths of their time. Acc@k: every file of the gold patch
is among the first k files. Tables: render.py.
"""

import argparse
import json
import re
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from repositories import write

from synapse_retrievers import Hit, Synapse
from synapse_retrievers.evaluation.comparison import compare
from synapse_retrievers.evaluation.embedding import embed
from synapse_retrievers.evaluation.history import read_history
from synapse_retrievers.evaluation.log import Ranked, Run
from synapse_retrievers.evaluation.ranking import Corpus, ranked
from synapse_retrievers.evaluation.repository import Repository, UnreadableHistoryError
from synapse_retrievers.evaluation.tree import chunks, text_files
from synapse_retrievers.report import metric_json

KEPT = 3_000
K = 10
BASES = ("vector", "bm25", "hybrid")
DEPTHS = (1, 5, 10)


@dataclass(frozen=True)
class Issue:
    """One instance."""

    commit: str
    t: float
    query: str
    gold: frozenset[str]


def main() -> None:
    """Read the arguments, replay, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("instances", type=Path)
    parser.add_argument("clones", type=Path)
    parser.add_argument("out", type=Path)
    given = parser.parse_args()
    wanted = defaultdict(list)
    for line in given.instances.read_text(encoding="utf-8").splitlines():
        one = json.loads(line)
        wanted[one["repo"].partition("/")[2]].append(one)
    found: dict[str, list[Any]] = {base: [] for base in BASES}
    counts: dict[str, int] = {}
    for name, instances in wanted.items():
        issues = sorted(_there(given.clones / name, instances), key=lambda issue: issue.t)
        try:
            asked = _asked(given.clones / name, issues) if issues else {}
        except UnreadableHistoryError as error:
            sys.stderr.write(f"{name}: {error}\n")
            asked = {}
        counts[name] = len(issues) if asked else 0
        for base, rows in asked.items():
            found[base] += rows
        sys.stderr.write(f"{name}: {counts[name]} of {len(instances)}\n")
    told = {base: _told(rows) for base, rows in found.items()}
    write(given.out, {"conditions": told, "issues": counts})


def _there(path: Path, instances: Sequence[Any]) -> Iterator[Issue]:
    if not path.exists():
        return
    repository = Repository.at(path)
    for one in instances:
        try:
            t = float(repository.answer("show", "-s", "--format=%ct", one["base_commit"]))
        except UnreadableHistoryError:
            continue
        gold = frozenset(re.findall(r"^diff --git a/(\S+) b/", one["patch"], re.MULTILINE))
        yield Issue(one["base_commit"], t, one["problem_statement"], gold)


def _asked(path: Path, issues: Sequence[Issue]) -> dict[str, list[tuple[Any, Any]]]:
    """Base -> one (plain, wrapped) pair of Acc@k an issue."""
    history = read_history(path)
    runs = [
        Run(commit.t, commit.query, tuple(commit.change.text))
        for commit in (history.commits[place] for place in history.usable)
    ]
    first = next((n for n, run in enumerate(runs) if run.t >= issues[0].t), len(runs))
    runs = runs[max(0, first - KEPT) :]
    known: dict[str, Any] = {}
    rows: dict[str, list[tuple[Any, Any]]] = {base: [] for base in BASES}
    now = [0.0]
    with tempfile.TemporaryDirectory() as folder:
        memory = Synapse(Path(folder) / "synapse.db", clock=lambda: now[0])
        taught = 0
        for issue in issues:
            while taught < len(runs) and runs[taught].t < issue.t:
                now[0] = runs[taught].t
                memory.reinforce(runs[taught].used, runs[taught].query)
                taught += 1
            now[0] = issue.t
            corpus = _corpus(history.repository, issue.commit, known)
            there = frozenset(corpus.sources)
            for base in BASES:
                (plain,) = ranked(
                    *(corpus, [issue.query], embed([issue.query])), base=base, unit="files", k=K
                )
                wrapped = _wrapped(memory, plain, issue, there)
                rows[base].append((_accuracy(plain.nodes, issue), _accuracy(wrapped, issue)))
        memory.close()
    return rows


def _wrapped(memory: Synapse, plain: Ranked, issue: Issue, there: frozenset[str]) -> list[str]:
    recalled = memory.recall(
        issue.query,
        [Hit(node) for node in plain.nodes],
        lambda wanted: {node: node for node in wanted if node in there},
    )
    return [hit.id or "" for hit in recalled.hits]


def _accuracy(nodes: Sequence[str], issue: Issue) -> list[float]:
    return [float(issue.gold <= set(nodes[:depth])) for depth in DEPTHS]


def _corpus(repository: Repository, commit: str, known: dict[str, Any]) -> Corpus:
    """The Python files at the commit; chunks that were embedded before are not embedded again."""
    pieces = [
        (path, piece)
        for path, text in text_files(repository, commit)
        if path.endswith(".py")
        for piece in chunks(path, text)
    ]
    new = [piece for _, piece in pieces if piece not in known]
    known.update(zip(new, embed(new).astype(np.float32), strict=True))
    vectors = np.array([known[piece] for _, piece in pieces], np.float64)
    return Corpus(tuple(path for path, _ in pieces), vectors, tuple(piece for _, piece in pieces))


def _told(rows: Sequence[tuple[Any, Any]]) -> dict[str, object]:
    pairs = np.array(rows, np.float64).reshape(-1, 2, len(DEPTHS))
    told: dict[str, object] = {"asked": len(rows)}
    for place, depth in enumerate(DEPTHS):
        found = compare(pairs[:, 0, place].tolist(), pairs[:, 1, place].tolist())
        told[f"Acc@{depth}"] = metric_json(found)
    return told


if __name__ == "__main__":
    main()
