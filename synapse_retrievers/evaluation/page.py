"""One page about evaluations: the gain of every log, the learning curve, the tables."""

import io
from collections.abc import Iterable, Sequence
from html import escape
from string import Template

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from synapse_retrievers.evaluation.comparison import Comparison
from synapse_retrievers.evaluation.evaluate import Evaluation, Measured, over_all

_BLUE, _GREY = "#1f6feb", "#8b949e"
_PAGE = Template("""<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Does learning from use pay?</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem;
       color: #1f2328; background: #fff }
table { border-collapse: collapse; margin: 1rem 0 }
th, td { padding: .2rem .8rem; text-align: right; border-bottom: 1px solid #d0d7de }
th:first-child, td:first-child { text-align: left }
svg { max-width: 100%; height: auto }
</style>
<h1>Does learning from use pay?</h1>
<p>$summary</p>
<h2>Every log</h2>
<p>Difference in recall with synapses around the retriever, 95 % interval (paired bootstrap over the
questions of the last fifth; each was asked before it was taught).</p>
$forest
<h2>Learning curve</h2>
<p>Recall plain and with synapses by the number of runs that had been learned.</p>
$curve
<h2>Figures</h2>
$tables
</html>
""")


def page(found: Sequence[Evaluation]) -> str:
    """A page that needs nothing else: pictures are drawn into it.

    Args:
        found: At least one evaluation.
    """
    return _PAGE.substitute(
        summary=escape(_summary(found)),
        forest=_drawn(_forest(found)),
        curve="".join(_drawn(_curve(one)) for one in found if one.curve),
        tables="".join(map(_table, found)),
    )


def _summary(found: Sequence[Evaluation]) -> str:
    told = over_all(found)
    if not told.logs:
        return "Nothing could be asked."
    interval = told.interval
    between = "" if interval is None else f" ({interval.low:+.1%} to {interval.high:+.1%})"
    return (
        f"Each log counted once, {found[0].k} places find {told.relative:+.1%}{between} of what is "
        f"used. Surely better on {told.better} of {told.logs} logs, surely worse on {told.worse}."
    )


def _forest(found: Sequence[Evaluation]) -> Figure:
    figure = Figure(figsize=(8, 1.2 + 0.4 * len(found)), layout="constrained")
    axes = figure.add_subplot()
    for row, one in enumerate(reversed(found)):
        recall = one.systems["synapses"].recall
        _whisker(axes, row, recall)
    names = [f"{one.name} ({one.systems['synapses'].asked})" for one in reversed(found)]
    axes.set_yticks(range(len(found)), names)
    axes.set_ylim(-0.6, len(found) - 0.4)
    axes.axvline(0, color=_GREY, linewidth=1)
    axes.set_xlabel("difference in recall (asked questions in brackets)")
    axes.spines[["top", "right", "left"]].set_visible(False)
    return figure


def _whisker(axes: Axes, row: int, recall: Comparison) -> None:
    axes.plot([recall.difference], [row], "o", color=_BLUE)
    if recall.interval is not None:
        axes.plot([recall.interval.low, recall.interval.high], [row, row], color=_BLUE)


def _curve(one: Evaluation) -> Figure:
    figure = Figure(figsize=(8, 3.2), layout="constrained")
    axes = figure.add_subplot()
    names = [f"{step.low}-{step.high}" if step.high else f"{step.low}+" for step in one.curve]
    places = range(len(names))
    for label, color, values in (
        ("plain", _GREY, [step.systems["synapses"].recall.plain for step in one.curve]),
        ("with synapses", _BLUE, [step.systems["synapses"].recall.wrapped for step in one.curve]),
    ):
        axes.plot(places, values, "o-", color=color, label=label)
    axes.set_xticks(places, names)
    axes.set_xlabel("runs learned")
    axes.set_ylabel("recall")
    axes.set_ylim(0, 1)
    axes.set_title(one.name)
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def _drawn(figure: Figure) -> str:
    drawn = io.StringIO()
    figure.savefig(drawn, format="svg", metadata={"Date": None})
    return drawn.getvalue()[drawn.getvalue().index("<svg") :]


def _table(one: Evaluation) -> str:
    head = ("", "asked", "plain", "recall", "relative", "MRR", "nDCG", "win / lose", "harm")
    apart = {**one.slices, **one.fifths}
    parts = {**one.systems} | {
        f"{name}: {system}": part for name, cut in apart.items() for system, part in cut.items()
    }
    rows = "".join(_row((name, *_cells(part))) for name, part in parts.items())
    told = f"{one.name}, learned from: {one.mode}"
    return f"<h3>{escape(told)}</h3><table>{_row(head, 'th')}{rows}</table>"


def _cells(part: Measured) -> list[str]:
    if not part.asked:
        return ["0", *["-"] * 7]
    recall = part.recall
    return [
        f"{part.asked:,}",
        f"{recall.plain:.3f}",
        f"{recall.wrapped:.3f}",
        "-" if recall.relative is None else f"{recall.relative:+.1%}",
        f"{part.metrics['reciprocal_rank'].difference:+.3f}",
        f"{part.metrics['ndcg'].difference:+.3f}",
        f"{recall.won:.1%} / {recall.lost:.1%}",
        f"{part.harmed:.1%}",
    ]


def _row(cells: Iterable[str], tag: str = "td") -> str:
    return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"
