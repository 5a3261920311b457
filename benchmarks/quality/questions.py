"""Conversations and multi-hop questions: must not lose; writes one JSON file.

    python benchmarks/quality/questions.py OUT.json --locomo FOLDER --hotpotqa FILE --musique FILE

FOLDER holds LoCoMo's conversations (snap-research/locomo, the files of data/locomo10.zip). The
samples hold each question with its passages: HotpotQA as IRCoT samples it (500 questions), MuSiQue
in its own format (200). Vectors are wordllama's. Tables: render.py.
"""

import argparse
import json
import random
import re
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from repositories import write

from synapse_retrievers.eval_report import measured_json
from synapse_retrievers.evaluation.embedding import embed
from synapse_retrievers.evaluation.evaluate import measure
from synapse_retrievers.evaluation.learners import Mode, Settings, open_learner
from synapse_retrievers.evaluation.log import Log, Run
from synapse_retrievers.evaluation.ranking import Corpus
from synapse_retrievers.evaluation.replay import Row, replay
from synapse_retrievers.evaluation.sources import Source, as_log

DAY = 86_400.0
START = 1_700_000_000.0
K = 8
ADVERSARIAL = 5


def main() -> None:
    """Read the arguments, replay, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--locomo", type=Path)
    parser.add_argument("--hotpotqa", type=Path)
    parser.add_argument("--musique", type=Path)
    given = parser.parse_args()
    told: dict[str, object] = {}
    talks = [conversation(path) for path in sorted(given.locomo.glob("*.json"))]
    told["LoCoMo, learned from half of the questions"] = _of(half_learned(talks))
    told["LoCoMo, one-off questions, used among shown"] = _of(one_off(talks, "shown"))
    told["LoCoMo, one-off questions, all used known"] = _of(one_off(talks, "all"))
    files = {"HotpotQA": given.hotpotqa, "MuSiQue": given.musique}
    sets = {name: multihop(name, path) for name, path in files.items()}
    for name, one in sets.items():
        traffic = [other for other in (*sets.values(), *talks) if other is not one]
        told[f"{name}, no use"] = _of(one_off([one], "none"))
        told[f"{name}, one-off questions, all used known"] = _of(one_off([one], "all"))
        told[f"{name}, after unrelated traffic"] = _of(after(one, traffic))
    write(given.out, {"conditions": told})


def conversation(path: Path) -> Source:
    """Turns as nodes, questions with their evidence as runs."""
    talk = json.loads(path.read_text(encoding="utf-8"))
    turns = {
        turn["dia_id"]: f"{turn['speaker']}: {turn['text']}"
        for key, session in talk.items()
        if re.fullmatch(r"session_\d+", key)
        for turn in session
    }
    # Category 5 repeats questions of the others with the other speaker's name: no new question.
    asked = [
        (str(one["question"]), one.get("evidence") or [])
        for one in talk["qa"]
        if one["category"] != ADVERSARIAL
    ]
    return _source(f"LoCoMo {path.stem}", turns, asked)


def multihop(name: str, path: Path) -> Source:
    """Passages as nodes, questions with the passages that support them as runs.

    Read are lists or lines of {"question", "paragraphs": [{"title", "paragraph_text",
    "is_supporting"}]}, as MuSiQue publishes them; IRCoT's names for the same are understood.
    """
    asked, passages = [], {}
    for one in _read(path):
        parts = one.get("paragraphs") or one["contexts"]
        texts = [f"{part['title']}\n{part['paragraph_text']}" for part in parts]
        passages |= {text: text for text in texts}
        support = [text for text, part in zip(texts, parts, strict=True) if part["is_supporting"]]
        asked.append((one.get("question") or one["question_text"], support))
    return _source(name, passages, asked)


def half_learned(talks: Iterable[Source]) -> list[Row[Any]]:
    """Half of the questions are taught, the other half asked and never taught."""
    rows: list[Row[Any]] = []
    for talk in talks:
        log = as_log(talk, unit="files", k=K)
        middle = len(log.runs) // 2
        rows += _rows(log, "all", middle, taught=frozenset(run.query for run in log.runs[:middle]))
    return rows


def one_off(sources: Iterable[Source], mode: Mode) -> list[Row[Any]]:
    """Every question is asked once and then taught: none comes again."""
    return [row for one in sources for row in _rows(as_log(one, unit="files", k=K), mode, 0)]


def after(one: Source, traffic: Sequence[Source]) -> list[Row[Any]]:
    """All sources in one index; the traffic's questions are taught, the one's asked untaught."""
    parts = [*traffic, one]
    corpora = [part.corpus for part in parts if part.corpus is not None]
    texts = tuple(text for corpus in corpora for text in corpus.texts)
    nodes = tuple(
        f"{part.name} {node}"
        for part, corpus in zip(parts, corpora, strict=True)
        for node in corpus.sources
    )
    before = [_renamed(part, run) for part in traffic for run in part.runs]
    asked = [_renamed(one, run) for run in one.runs]
    runs = tuple(replace(run, t=START + place * DAY) for place, run in enumerate([*before, *asked]))
    both = Source(
        one.name, runs, Corpus(nodes, embed(texts), texts), embed([r.query for r in runs])
    )
    log = as_log(both, unit="files", k=K)
    return _rows(log, "all", len(before), taught=frozenset(run.query for run in before))


class _Taught:
    """A learner that is taught some runs only."""

    def __init__(self, learner: Any, taught: frozenset[str] | None) -> None:
        self._learner, self._taught = learner, taught

    def ask(self, run: Run) -> Any:
        return self._learner.ask(run)

    def teach(self, run: Run) -> None:
        if self._taught is None or run.query in self._taught:
            self._learner.teach(run)


def _rows(
    log: Log, mode: Mode, asked_from: int, taught: frozenset[str] | None = None
) -> list[Row[Any]]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "synapse.db"
        with open_learner(log, path, Settings(), mode=mode) as learner:
            found = replay(
                *(log.runs, _Taught(learner, taught)),
                nodes=log.nodes,
                k=K,
                taught_before=asked_from,
            )
    return list(found.rows)


def _source(name: str, texts: dict[str, str], asked: list[tuple[str, list[str]]]) -> Source:
    """The questions in an order of their own, one a day."""
    fit = [(query, [node for node in used if node in texts]) for query, used in asked]
    fit = [(query, used) for query, used in fit if used]
    random.Random(name).shuffle(fit)  # noqa: S311 - it shall be the same every time
    runs = tuple(
        Run(START + place * DAY, query, tuple(dict.fromkeys(used)))
        for place, (query, used) in enumerate(fit)
    )
    corpus = Corpus(tuple(texts), embed(list(texts.values())), tuple(texts.values()))
    return Source(name, runs, corpus, embed([run.query for run in runs]))


def _renamed(source: Source, run: Run) -> Run:
    return replace(run, used=tuple(f"{source.name} {node}" for node in run.used))


def _read(path: Path) -> list[Any]:
    text = path.read_text(encoding="utf-8")
    if text.lstrip().startswith("["):
        return list(json.loads(text))
    return [json.loads(line) for line in text.splitlines() if line.strip()]


def _of(rows: list[Row[Any]]) -> dict[str, object]:
    return measured_json(measure(rows))


if __name__ == "__main__":
    main()
