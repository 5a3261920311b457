"""What was found, for people (rich) and for machines (plain values); nothing is computed here."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from synapse_retrievers.evaluation.comparison import Comparison
from synapse_retrievers.recall.explain import Carrier, Move, Trace

if TYPE_CHECKING:
    from synapse_retrievers.demo import DemoResult
    from synapse_retrievers.evaluation.replay import Row
    from synapse_retrievers.stats import Stats


def demo_report(result: "DemoResult") -> Group:
    """Figures, examples and how to go on."""
    parts: list[RenderableType] = [_head(result)]
    if result.replay.rows:
        parts += [_figures(result), _facts(result)]
    parts += [Text(line, style="yellow") for line in _warnings(result)]
    if result.replay.rows:
        parts += _examples(result)
    return Group(*parts, *_onward(result))


def demo_json(result: "DemoResult") -> dict[str, object]:
    """The same as values that JSON can hold."""
    replayed = result.replay
    plain_ms, added_ms = _milliseconds(result.plain_seconds), _milliseconds(result.added_seconds)
    return {
        "repository": result.repository,
        "commit": result.commit,
        "commits": result.commits,
        "usable": result.usable,
        "is_little": result.is_little,
        "taught_before": replayed.taught_before,
        "taught": replayed.taught,
        "asked": len(replayed.rows),
        "files": result.files,
        "chunks": result.chunks,
        "k": replayed.k,
        "metrics": {name: metric_json(found) for name, found in _metrics(result)},
        "won": replayed.recall.won,
        "lost": replayed.recall.lost,
        "same_count": replayed.same_count,
        "plain_ms": plain_ms,
        "added_ms": added_ms,
        "store": str(result.store) if result.store else None,
        "store_bytes": result.store_bytes,
        "failures": result.failures,
        "examples": [_example_json(row) for row in result.examples],
    }


def stats_report(stats: "Stats") -> Group:
    """What a store holds, one row a namespace."""
    table = Table("namespace", box=None)
    for column in ("nodes", "edges", "episodes"):
        table.add_column(column, justify="right")
    table.add_column("a node is")
    table.add_column("collection")
    for name, space in sorted(stats.namespaces.items()):
        counts = (f"{count:,}" for count in (space.nodes, space.edges, space.episodes))
        table.add_row(Text(name), *counts, space.node_kind or "-", Text(space.collection or "-"))
    head = f"{stats.url}: schema {stats.schema}, {_size(stats.bytes)}"
    return Group(Text(head), table if stats.namespaces else Text("nothing learned yet"))


def trace_report(trace: Trace) -> Group:
    """What a query reaches, most energy first, and by which past use."""
    if not trace.reached:
        why = trace.reason or "no past query resembles it"
        return Group(Text(f"{trace.query!r} reaches nothing in {trace.namespace} ({why})"))
    lines = [Text(f"{trace.query!r} in {trace.namespace} reaches", style="bold")]
    for node in trace.reached:
        lines.append(Text(f"{node.energy:6.3f}  {node.node}"))
        lines += [Text(f"          {_carrier(carrier)}", style="dim") for carrier in node.carriers]
    return Group(*lines)


def plain(value: object) -> object:
    """Dataclasses and mappings as JSON's values; what is no finite number is None."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def _metrics(result: "DemoResult") -> tuple[tuple[str, Comparison], ...]:
    found = result.replay
    return ("recall", found.recall), ("mrr", found.reciprocal_rank), ("ndcg", found.ndcg)


def _head(result: "DemoResult") -> Text:
    replayed = result.replay
    return Text(
        f"{result.repository}: {result.usable:,} usable of {result.commits:,} commits, "
        f"{replayed.taught_before:,} of them taught, then {len(replayed.rows):,} messages asked "
        f"before each was taught too.\nSearched are the {result.files:,} text files as they stood "
        f"at {result.commit[:10]}, in {result.chunks:,} chunks; used is what the commit touched. "
        "Recall counts used files among the chunks, MRR and nDCG rank the files in their order.\n"
    )


def _figures(result: "DemoResult") -> Table:
    k = result.replay.k
    table = Table("", box=None, pad_edge=False)
    for column in ("plain", "with synapses", "difference", "relative", "95 % interval"):
        table.add_column(column, justify="right")
    labels = {"recall": f"recall@{k}", "mrr": f"MRR@{k}", "ndcg": f"nDCG@{k}"}
    for name, found in _metrics(result):
        interval = found.interval
        table.add_row(
            labels[name],
            f"{found.plain:.3f}",
            f"{found.wrapped:.3f}",
            f"{found.difference:+.3f}",
            "-" if found.relative is None else f"{found.relative:+.1%}",
            "-" if interval is None else f"{interval.low:+.3f} .. {interval.high:+.3f}",
        )
    return table


def _facts(result: "DemoResult") -> Table:
    replayed = result.replay
    plain_ms, added_ms = _milliseconds(result.plain_seconds), _milliseconds(result.added_seconds)
    kept = "not kept" if result.store is None else f"kept in {result.store}"
    table = Table.grid(padding=(0, 3))
    table.add_row("")
    table.add_row(
        "win / lose",
        f"{replayed.recall.won:.1%} / {replayed.recall.lost:.1%} of the queries found more / fewer"
        f" of the used files among the {replayed.k} chunks",
    )
    table.add_row("results always k", f"{replayed.same_count:,} of {len(replayed.rows):,}")
    table.add_row("median time", f"{plain_ms} ms a plain query, {added_ms} ms added")
    table.add_row("store", Text(f"{_size(result.store_bytes)}, {kept}"))
    return table


def _warnings(result: "DemoResult") -> Iterator[str]:
    if not result.replay.rows:
        yield (
            f"Nothing could be asked: of {result.usable} usable commits the last fifth holds no new"
            " message of four words about a file that is in the index. The rest was taught."
        )
    if result.failures:
        yield (
            f"{result.failures} calls of the memory failed and were passed over: the figures are"
            " too low. Run with a store on a faster disk, or report it."
        )
    if result.is_little:
        yield (
            f"{result.usable} usable commits are very few: figures from so little history mean"
            " next to nothing. Try a repository with some hundreds of commits."
        )


def _examples(result: "DemoResult") -> Iterator[Text]:
    if not result.examples:
        yield Text("\nNo query's answer changed for the better.")
        return
    count = len(result.examples)
    yield Text(f"\n{count} {'query' if count == 1 else 'queries'} that gained most", style="bold")
    for row in result.examples:
        yield Text(f"\n{_title(row.run.query)}", style="bold")
        yield Text(f"  asked on {_day(row.run.t)}, touched {', '.join(row.run.used)}")
        yield Text(f"  recall {row.recall[0]:.2f} -> {row.recall[1]:.2f}")
        yield from (Text(f"  {line}") for line in _told(row.answer.trace))


def _told(trace: Trace | None) -> Iterator[str]:
    """What came in and for whom, then what rose; what merely made room is not told."""
    moves = trace.moves if trace else ()
    for move in moves:
        if move.kind == "displaced_in":
            yield f"+ {move.node} came in at place {_place(move.after)} for {move.displaced}"
            yield from _because(move)
    for move in moves:
        if move.kind == "raised":
            yield f"^ {move.node} rose from place {_place(move.before)} to {_place(move.after)}"
            yield from _because(move)


def _because(move: Move) -> Iterator[str]:
    for carrier in move.carriers[:1]:
        yield f"    {_carrier(carrier)}"


def _carrier(carrier: Carrier) -> str:
    if carrier.kind == "episode":
        told = f'used for "{_title(carrier.source)}", similarity {carrier.weight:.2f}'
    else:
        told = f"used together with {carrier.source}, weight {carrier.weight:.2f}"
    return f"{told}, {carrier.age_days:,.0f} days ago"


def _onward(result: "DemoResult") -> Iterator[Text]:
    store = str(result.store) if result.store else "synapse.db"
    yield Text("\nPut it around the retriever that you have:", style="bold")
    yield Text(f'  retriever = SynapseRetriever.wrap(retriever, {store!r}, node="source")')


def _example_json(row: "Row[Trace | None]") -> dict[str, object]:
    return {
        "query": row.run.query,
        "t": row.run.t,
        "used": list(row.run.used),
        "plain": list(row.answer.plain),
        "wrapped": list(row.answer.wrapped),
        "recall": list(row.recall),
        "moves": plain(row.answer.trace.moves if row.answer.trace else ()),
    }


def metric_json(found: Comparison) -> dict[str, object]:
    """A comparison with what follows from it, as values that JSON can hold."""
    values = plain(found)
    known = dict(values) if isinstance(values, dict) else {}
    difference = plain(found.difference)
    return known | {"difference": difference, "relative": found.relative}


def _title(query: str) -> str:
    line = query.partition("\n")[0]
    return line if len(line) <= 90 else line[:89] + "…"  # noqa: PLR2004 - one line of a terminal


def _place(place: int | None) -> str:
    return "-" if place is None else str(place + 1)


def _day(t: float) -> str:
    return datetime.fromtimestamp(t, UTC).date().isoformat()


def _milliseconds(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds * 1_000, 2)


def _size(count: int) -> str:
    return f"{count / 1_000_000:.1f} MB" if count >= 1_000_000 else f"{count / 1_000:.0f} kB"  # noqa: PLR2004
