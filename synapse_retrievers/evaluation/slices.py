"""Parts of the asked queries on which the gain may be another one; pure sums."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from synapse_retrievers.evaluation.log import Run
from synapse_retrievers.evaluation.replay import Row
from synapse_retrievers.tokens import tokens

Rows: TypeAlias = Sequence[Row[Any]]

NOVEL_BELOW = 0.2
"""A query is novel when it shares less than this of its words with every earlier one."""

HUB_SHARE = 0.05
"""A node that more of the runs used is a hub: the changelog, the manifest, the readme."""

CURVE = (0, 10, 25, 50, 100, 200, 400, 800, 1_600)
"""Numbers of learned runs at which the learning curve has its steps."""


def novel(rows: Rows, likeness: Sequence[float]) -> list[Row[Any]]:
    """Queries that resemble no earlier one, in words, below `NOVEL_BELOW`."""
    return [row for row in rows if likeness[row.place] < NOVEL_BELOW]


def without_hubs(rows: Rows, runs: Sequence[Run]) -> list[Row[Any]]:
    """The rows as if hubs had not been used; rows without any other used node are left out."""
    count = Counter(node for run in runs for node in set(run.used))
    hubs = frozenset(node for node, uses in count.items() if uses > HUB_SHARE * len(runs))
    apart = (replace(row, ignored=hubs) for row in rows)
    return [row for row in apart if row.wanted]


def with_several(rows: Rows) -> list[Row[Any]]:
    """Queries for which two or more nodes are to be found."""
    return [row for row in rows if len(row.wanted) > 1]


def by_learned(rows: Rows) -> list[tuple[int, int | None, list[Row[Any]]]]:
    """The rows by how many runs had been learned: [from, to), None: no end; without empty steps."""
    steps = zip(CURVE, (*CURVE[1:], None), strict=True)
    parts = (
        (
            low,
            high,
            [row for row in rows if low <= row.taught and (high is None or row.taught < high)],
        )
        for low, high in steps
    )
    return [part for part in parts if part[2]]


def by_fifth(rows: Rows, runs: int) -> list[list[Row[Any]]]:
    """The rows by the fifth of the log that they stand in; five lists."""
    fifths: list[list[Row[Any]]] = [[] for _ in range(5)]
    for row in rows:
        fifths[min(4, row.place * 5 // max(1, runs))].append(row)
    return fifths


def likeness(runs: Sequence[Run]) -> list[float]:
    """Of each run's query the largest Jaccard similarity to an earlier one."""
    holders: dict[str, list[int]] = defaultdict(list)
    sizes: list[int] = []
    found = []
    for place, run in enumerate(runs):
        words = set(tokens(run.query))
        shared = Counter(other for word in words for other in holders[word])
        shares = (n / (len(words) + sizes[other] - n) for other, n in shared.items())
        found.append(max(shares, default=0.0))
        sizes.append(len(words))
        for word in words:
            holders[word].append(place)
    return found
