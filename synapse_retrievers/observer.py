"""What a framework reports becomes evidence, and the evidence teaches whose run it was."""

import os
from collections.abc import Mapping, Sequence
from typing import Protocol, cast

from synapse_retrievers.events.citations import citations, cited_ids, numbering
from synapse_retrievers.events.event import Answered, Prompted, ToolTouched
from synapse_retrievers.events.evidence import Evidence, evidence_of, strength_of
from synapse_retrievers.events.ledger import Given, Ledger
from synapse_retrievers.events.run import Run
from synapse_retrievers.events.touch import touched
from synapse_retrievers.events.tree import Tree
from synapse_retrievers.events.usage import usage
from synapse_retrievers.guard import Guard
from synapse_retrievers.params import LearningParams
from synapse_retrievers.soon import Soon
from synapse_retrievers.types import NodeId, Use


class Teacher(Protocol):
    """Whoever owns a run's memory (`Synapse`)."""

    learning: LearningParams

    def learn(self, run: Run, evidence: Mapping[NodeId, Use]) -> int:
        """Teach what is new; never raises for a store that fails."""
        ...

    def disappoint(self, run: Run, nodes: Sequence[NodeId]) -> int:
        """Weaken what carried these in; never raises for a store that fails."""
        ...


LEDGER = Ledger()
"""The one ledger of the process: retrievers write into it, listeners match against it."""

TREE = Tree()
"""Which run of the process belongs to which root call."""

_GUARD = Guard("the observer")
_SOON = Soon()

LISTENING: set[str] = set()
"""Frameworks that are listened to; it outlives a reload of an integration."""

os.register_at_fork(after_in_child=LEDGER.clear)
os.register_at_fork(after_in_child=_SOON.forget)


def observe(event: Prompted | Answered | ToolTouched, ledger: Ledger = LEDGER) -> None:
    """Match one event with the ledger and teach what it proves."""
    match event:
        case Prompted():
            ledger.prompted(event)
        case Answered():
            _answered(event, ledger)
        case ToolTouched():
            _touched(event, ledger)


def observe_soon(event: Prompted | Answered | ToolTouched) -> None:
    """As `observe`, in order, but never on the thread of a running event loop.

    What was handed over is done before the next recall of the process, and before `flush` returns.
    """
    if _SOON.is_on_loop():
        _SOON.submit(lambda: _GUARD.run(lambda: observe(event), None))
    else:
        _SOON.settle()
        observe(event)


def settle(seconds: float | None = None) -> None:
    """Wait until everything that was handed over is done, `seconds` at most."""
    _SOON.settle(seconds)


def _answered(event: Answered, ledger: Ledger) -> None:
    prompt, given = ledger.answered(event)
    if not given or not (event.text.strip() or event.quotes):
        return
    texts = [one.event.results[place].text for one in given for place in one.places]
    queries = "\n".join(dict.fromkeys(one.event.query for one in given))
    scores = usage(event.text, queries, texts)
    cited = _cited(event, prompt, given, texts)
    signs = iter(zip(scores, cited, strict=True))
    evidence: dict[Run, dict[NodeId, Use]] = {}
    for one in given:
        for place in one.places:
            _strengthen(evidence.setdefault(one.run, {}), one, place, *next(signs))
    # All that one answer proves of a run is one lesson: its pairs are shared out among all of it.
    for run, found in evidence.items():
        if found:
            cast(Teacher, run.owner).learn(run, found)
        _disappoint(run, [one for one in given if one.run is run])


def _cited(
    event: Answered, prompt: str, given: Sequence[Given], texts: Sequence[str]
) -> list[bool]:
    results = [one.event.results[place] for one in given for place in one.places]
    numbered = citations(event.text, numbering(prompt, texts))
    named = cited_ids(event.text, [id_ for one in results for id_ in (one.node, one.chunk) if id_])
    quotes = [quote for quote in (" ".join(quote.split()) for quote in event.quotes) if quote]
    return [
        place in numbered
        or one.node in named
        or one.chunk in named
        or any(quote in " ".join(one.text.split()) for quote in quotes)
        for place, one in enumerate(results)
    ]


def _strengthen(
    evidence: dict[NodeId, Use], one: Given, place: int, score: float, is_cited: bool
) -> None:
    """Add what the answer proves of one place, the strongest sign of each node."""
    result, learning = one.event.results[place], cast(Teacher, one.run.owner).learning
    kind: Evidence | None = "cited" if is_cited else evidence_of(score, learning)
    if kind is None or result.node is None:
        return
    strength = strength_of(kind, learning)
    known = evidence.get(result.node)
    if known is None or strength > known.strength:
        evidence[result.node] = Use(strength, result.chunk)


def _disappoint(run: Run, given: Sequence[Given]) -> None:
    """A node that we brought in, that was given, and that was not used although others were."""
    shown = {one.event.results[place].node for one in given for place in one.places}
    with run.lock:
        if not run.used:
            return
        unused = [
            node
            for node in run.carriers
            if node in shown and node not in run.used and node not in run.penalties
        ]
    if unused:
        cast(Teacher, run.owner).disappoint(run, unused)


def _touched(event: ToolTouched, ledger: Ledger) -> None:
    # A bare file name is judged among all that the root retrieved, not within one retrieval.
    places = {
        f"{number}/{place}": (run, result)
        for number, (run, retrieved) in enumerate(ledger.results_of(event.root_id))
        for place, result in enumerate(retrieved.results)
        if result.source and result.node is not None
    }
    sources = {key: result.source or "" for key, (_, result) in places.items()}
    evidence: dict[Run, dict[NodeId, Use]] = {}
    for key, kind in touched(event.tool, event.inputs, sources).items():
        run, result = places[key]
        strength = strength_of(kind, cast(Teacher, run.owner).learning)
        evidence.setdefault(run, {}).setdefault(result.node or "", Use(strength, result.chunk))
    for run, found in evidence.items():
        cast(Teacher, run.owner).learn(run, found)
