"""What an evaluation found, for people (rich) and for machines (plain values)."""

import math
from collections.abc import Mapping, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from synapse_retrievers.evaluation.evaluate import Evaluation, Measured, over_all
from synapse_retrievers.report import metric_json, plain

_LITTLE = 50
"""Below so many asked queries an interval says next to nothing."""

_NAMES = {
    "synapses": "with synapses",
    "paper": "seed paper",
    "popularity": "popularity",
    "random": "random",
}


def eval_report(found: Sequence[Evaluation]) -> Group:
    """Figures a log, what they hold on, and whether it is worth it."""
    parts: list[RenderableType] = []
    for one in found:
        parts += [_head(one), _systems(one), Text(""), _parts(one), Text(""), _facts(one), Text("")]
    if len(found) > 1:
        parts.append(_over_all(found))
    parts += [_verdict(one) for one in found]
    return Group(*parts)


def eval_json(found: Sequence[Evaluation]) -> dict[str, object]:
    """The same as values that JSON can hold."""
    return {"logs": [_json(one) for one in found], "macro": plain(over_all(found))}


def measured_json(part: Measured) -> dict[str, object]:
    """The figures of some asked queries as values that JSON can hold."""
    return {
        "asked": part.asked,
        "harmed": part.harmed,
        "entered": part.entered,
        "metrics": {name: metric_json(metric) for name, metric in part.metrics.items()},
    }


def _head(one: Evaluation) -> Text:
    asked = one.systems["synapses"].asked
    return Text(
        f"{one.name}: {one.runs:,} runs, {one.taught:,} of them taught (learned from: {one.mode}); "
        f"{asked:,} questions of the last fifth asked before they were taught, {one.k} places each",
        style="bold",
    )


def _systems(one: Evaluation) -> Table:
    table = Table("", box=None, pad_edge=False)
    for column in ("recall", "relative", "95 % interval", "win/lose %", "MRR", "nDCG"):
        table.add_column(column, justify="right")
    table.add_column("harm", justify="right")
    first = one.systems["synapses"]
    ranks = (_number(first.metrics[name].plain) for name in ("reciprocal_rank", "ndcg"))
    table.add_row("plain", _number(first.recall.plain), "", "", "", *ranks, "")
    for name, measured in one.systems.items():
        table.add_row(_NAMES[name], *_cells(measured), f"{measured.harmed:.1%}")
    return table


def _cells(measured: Measured) -> list[str]:
    recall, interval = measured.recall, measured.recall.interval
    return [
        _number(recall.wrapped),
        _relative(measured),
        "-" if interval is None else f"{interval.low:+.2f}..{interval.high:+.2f}",
        f"{100 * recall.won:.1f}/{100 * recall.lost:.1f}",
        _number(measured.metrics["reciprocal_rank"].difference, "+.3f"),
        _number(measured.metrics["ndcg"].difference, "+.3f"),
    ]


def _parts(one: Evaluation) -> Table:
    table = Table("on", box=None, pad_edge=False)
    others = [name for name in one.systems if name != "synapses"]
    for column in ("asked", "plain", "recall", "relative", *others):
        table.add_column(column, justify="right")
    steps = {
        f"{step.low}{'+' if step.high is None else f'-{step.high}'} runs learned": step.systems
        for step in one.curve
    }
    fifths = {f"{name} of the log": part for name, part in one.fifths.items()}
    for name, parts in {**one.slices, **fifths, **steps}.items():
        part = parts["synapses"]
        beside = (_relative(parts[other]) for other in others)
        figures = (f"{part.asked:,}", _number(part.recall.plain), *_cells(part)[:2])
        table.add_row(name, *figures, *beside)
    return table


def _number(value: float, how: str = ".3f") -> str:
    return "-" if math.isnan(value) else format(value, how)


def _relative(measured: Measured) -> str:
    relative = measured.recall.relative
    return "-" if relative is None else f"{relative:+.1%}"


def _facts(one: Evaluation) -> Table:
    table = Table.grid(padding=(0, 3))
    if one.quiet is not None:
        told = f"something came in for {1 - one.quiet:.1%} of {one.foreign} questions"
        table.add_row("about something else", told)
    if one.milliseconds is not None:
        table.add_row("median time of a recall", f"{one.milliseconds:.2f} ms")
    if one.failures:
        table.add_row("failures", f"{one.failures} calls of the memory failed: figures are too low")
    return table


def _over_all(found: Sequence[Evaluation]) -> Text:
    told = over_all(found)
    interval = told.interval
    between = "" if interval is None else f" ({interval.low:+.1%} .. {interval.high:+.1%})"
    return Text(
        f"{told.logs} logs, each counted once: {told.relative:+.1%}{between}; surely better on "
        f"{told.better}, surely worse on {told.worse}\n",
        style="bold",
    )


def _verdict(one: Evaluation) -> Text:
    first = one.systems["synapses"]
    interval = first.recall.interval
    if interval is None or first.asked < _LITTLE:
        told = f"too little to tell: {first.asked} questions could be asked"
    elif interval.low > 0:
        told = f"worth it here: {first.recall.relative or 0:+.1%} more of what is used is found"
    elif interval.high < 0:
        told = "not worth it here: less of what is used is found"
    else:
        told = "no difference that is sure"
    return Text(f"{one.name}: {told}.")


def _json(one: Evaluation) -> dict[str, object]:
    return {
        "name": one.name,
        "k": one.k,
        "mode": one.mode,
        "runs": one.runs,
        "taught": one.taught,
        "systems": _measured(one.systems),
        "slices": {name: _measured(parts) for name, parts in one.slices.items()},
        "fifths": {name: _measured(parts) for name, parts in one.fifths.items()},
        "curve": [
            {"from": step.low, "to": step.high, "systems": _measured(step.systems)}
            for step in one.curve
        ],
        "foreign": {"asked": one.foreign, "quiet": one.quiet},
        "milliseconds": one.milliseconds,
        "failures": one.failures,
    }


def _measured(parts: Mapping[str, Measured]) -> dict[str, object]:
    return {name: measured_json(part) for name, part in parts.items()}
