"""Writes the tables of docs/benchmarks.md from the JSON files beside this script.

    python benchmarks/quality/render.py

A table stands between `<!-- begin NAME -->` and `<!-- end NAME -->`; everything else is left alone.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from sets import MAIN, SETS

HERE = Path(__file__).parent
CONTROLS = ("paper", "popularity", "random")
DOCS = HERE.parents[1] / "docs" / "benchmarks.md"


def main() -> None:
    """Rewrite the document."""
    DOCS.write_text(rendered(DOCS.read_text(encoding="utf-8")), encoding="utf-8")


def rendered(text: str) -> str:
    """The document with every table made anew."""
    for name, table in TABLES.items():
        begin, end = f"<!-- begin {name} -->\n", f"<!-- end {name} -->"
        before, _, rest = text.partition(begin)
        _, found, after = rest.partition(end)
        if found:
            text = before + begin + "\n".join(table()) + "\n" + end + after
    return text


def _repositories(encoder: str) -> Iterator[str]:
    told = _read(encoder)[MAIN]
    logs = {log["name"]: log for log in told["logs"]}
    yield from _head(
        *("repository", "asked", "plain", "with synapses", "relative", "95 % interval", "MRR"),
        *("nDCG", "win / lose %", "harm %", "seed paper", "popularity", "random", "off topic %"),
    )
    for group, names in SETS.items():
        known = [name for name in names if name in logs]
        if known:
            macro = told["macro"][group]
            sure = f"better {macro['better']}, worse {macro['worse']} of {macro['logs']}"
            gain = f"**{_percent(macro['relative'])}**"
            between = _between(macro["interval"], _percent)
            yield _line(f"**{group}**", "", "", "", gain, between, "", "", sure, *[""] * 5)
        yield from (_repository(logs[name]) for name in known)


def _repository(log: Mapping[str, Any]) -> str:
    systems = log["systems"]
    one, recall = systems["synapses"], systems["synapses"]["metrics"]["recall"]
    return _line(
        log["name"],
        *_figures(one),
        f"{one['metrics']['ndcg']['difference']:+.3f}",
        f"{100 * recall['won']:.1f} / {100 * recall['lost']:.1f}",
        f"{100 * one['harmed']:.1f}",
        *(_percent(systems[name]["metrics"]["recall"]["relative"]) for name in CONTROLS),
        f"{100 * (1 - log['foreign']['quiet']):.1f}",
    )


def _figures(one: Mapping[str, Any]) -> tuple[str, ...]:
    recall = one["metrics"]["recall"]
    return (
        f"{one['asked']:,}",
        f"{recall['plain']:.3f}",
        f"{recall['wrapped']:.3f}",
        _percent(recall["relative"]),
        _between(recall["interval"], lambda value: f"{value:+.3f}"),
        f"{one['metrics']['reciprocal_rank']['difference']:+.3f}",
    )


def _conditions(encoder: str) -> Iterator[str]:
    yield from _head("condition", *SETS, "all", "MRR", "lose %", "off topic %")
    for name, condition in _read(encoder).items():
        systems = [log["systems"]["synapses"] for log in condition["logs"]]
        yield _line(
            name,
            *(_group(condition["macro"].get(group)) for group in SETS),
            _percent(_mean([one["metrics"]["recall"]["relative"] for one in systems])),
            f"{_mean([one['metrics']['reciprocal_rank']['difference'] for one in systems]):+.3f}",
            f"{100 * _mean([one['metrics']['recall']['lost'] for one in systems]):.1f}",
            f"{100 * _mean([1 - log['foreign']['quiet'] for log in condition['logs']]):.1f}",
        )


def _group(macro: Mapping[str, Any] | None) -> str:
    if macro is None:
        return ""
    sure = f"{macro['better']} / {macro['worse']} of {macro['logs']}"
    return f"{_percent(macro['relative'])} ({sure})"


def _parts(encoder: str) -> Iterator[str]:
    logs = _read(encoder)[MAIN]["logs"]
    yield from _head("part", "repositories", "asked", "with synapses", *CONTROLS)
    for name in dict.fromkeys(name for log in logs for name in (*log["slices"], *log["fifths"])):
        parts = [{**log["slices"], **log["fifths"]}.get(name) for log in logs]
        yield _part(f"{name} of the log" if "%" in name else name, [one for one in parts if one])
    steps = {step["from"]: step["to"] for log in logs for step in log["curve"]}
    for low, high in sorted(steps.items()):
        found = [step["systems"] for log in logs for step in log["curve"] if step["from"] == low]
        yield _part(f"{low}-{high} runs learned" if high else f"{low} and more runs learned", found)


def _part(name: str, parts: list[Mapping[str, Any]]) -> str:
    told = [part for part in parts if part["synapses"]["recall"]["relative"] is not None]
    gains = (
        _percent(_mean([part[system]["recall"]["relative"] for part in told]))
        for system in ("synapses", *CONTROLS)
    )
    asked = sum(part["synapses"]["asked"] for part in told)
    return _line(name, str(len(told)), f"{asked:,}", *gains)


def _questions() -> Iterator[str]:
    yield from _head(
        *("questions", "asked", "plain", "with synapses", "relative", "95 % interval", "MRR"),
        "win / lose %",
    )
    for name, one in _read("questions").items():
        recall = one["metrics"]["recall"]
        share = f"{100 * recall['won']:.1f} / {100 * recall['lost']:.1f}"
        yield _line(name, *_figures(one), share)


def _issues() -> Iterator[str]:
    yield from _head("base", "issues", "Acc@1", "Acc@5", "Acc@10", "95 % interval of Acc@1")
    for name, one in _read("issues").items():
        depths = [one[f"Acc@{depth}"] for depth in (1, 5, 10)]
        both = (f"{part['plain']:.3f} -> {part['wrapped']:.3f}" for part in depths)
        between = _between(depths[0]["interval"], lambda value: f"{value:+.3f}")
        yield _line(name, str(one["asked"]), *both, between)


def _head(*names: str) -> Iterator[str]:
    yield _line(*names)
    yield "|---" * len(names) + "|"


def _line(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |"


def _between(interval: Mapping[str, float] | None, told: Callable[[float], str]) -> str:
    return "-" if interval is None else f"{told(interval['low'])} .. {told(interval['high'])}"


def _read(name: str) -> dict[str, Any]:
    text = (HERE / "results" / f"{name}.json").read_text(encoding="utf-8")
    return dict(json.loads(text)["conditions"])


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:+.1f} %"


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else 0.0


TABLES: dict[str, Callable[[], Iterator[str]]] = {
    "repositories-minilm": lambda: _repositories("minilm"),
    "repositories-wordllama": lambda: _repositories("wordllama"),
    "conditions-minilm": lambda: _conditions("minilm"),
    "conditions-wordllama": lambda: _conditions("wordllama"),
    "parts-minilm": lambda: _parts("minilm"),
    "questions": _questions,
    "issues": _issues,
}


if __name__ == "__main__":
    main()
