"""What every integration does with a result list: recall, fetch what may come in, note the run."""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import signature
from typing import Any, Self
from uuid import uuid4

from synapse_retrievers.active_run import ACTIVE, ActiveRun
from synapse_retrievers.checks import checked_namespace, checked_query
from synapse_retrievers.errors import NamespaceClaimedError, StoreError
from synapse_retrievers.events.event import Result, Retrieved
from synapse_retrievers.last_trace import LastTrace
from synapse_retrievers.observer import LEDGER, TREE
from synapse_retrievers.recall.displace import Place
from synapse_retrievers.recall.explain import Trace
from synapse_retrievers.recall.plan import Plan, Recalled
from synapse_retrievers.synapse import Synapse
from synapse_retrievers.types import Hit, Namespace, NodeId


@dataclass(frozen=True, slots=True)
class Found:
    """What fetching gave.

    Attributes:
        results: Node -> what it is, for those that may come in.
        objects: Node -> the framework's own object for it.
        refused: Node -> why it may not.
        gone: Nodes that the wrapped store does not have any more.
    """

    results: Mapping[NodeId, Result] = field(default_factory=dict)
    objects: Mapping[NodeId, object] = field(default_factory=dict)
    refused: Mapping[NodeId, str] = field(default_factory=dict)
    gone: Sequence[NodeId] = ()


Finding = Callable[[Plan], Found]
"""Fetches the wanted nodes of a plan, with the call's own restrictions."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a wrapped retriever and what it returned.

    Attributes:
        query: As asked.
        results: What the wrapped retriever returned, best first.
        scores: One a result, higher is better; None: it has none.
        namespace: Named by the call; None: the memory's own.
        run_id: The retriever's own run; None: the framework names none.
        closed: Why nothing may be displaced in, if so.
        run_key: Names the run for feedback; None: its root's id.
    """

    query: str
    results: Sequence[Result]
    scores: Sequence[float | None] | None = None
    namespace: Namespace | None = None
    run_id: str | None = None
    closed: str | None = None
    run_key: str | None = None


class Seam:
    """A retriever's memory, which nodes of which collection it joins, and its last trace."""

    def __init__(self, synapse: Synapse, node_kind: str, collection: str) -> None:
        self.synapse = synapse
        self.last_trace = LastTrace()
        self._node_kind = node_kind
        self._collection = collection
        self._served: dict[Namespace, int] = {}

    @classmethod
    def opened(cls, synapse: Synapse, node_kind: str, collection: str) -> Self:
        """A new one, its memory's own namespace recorded; a store that fails is a warning.

        Raises:
            NamespaceClaimedError: The namespace joins other nodes already.
        """
        seam = cls(synapse, node_kind, collection)
        if synapse.namespace is not None and synapse.is_on:
            seam._serve_if_possible(synapse.namespace)
        return seam

    def __copy__(self) -> Self:
        """The same: a copy of a retriever never forks its memory."""
        return self

    def __deepcopy__(self, memo: object) -> Self:
        """The same: a copy of a retriever never forks its memory."""
        return self

    def serve(self, namespace: Namespace) -> None:
        """Record in the store which nodes the namespace joins, once.

        Raises:
            NamespaceClaimedError: It joins others already.
            StoreError: The store failed.
        """
        # After `forget(namespace=...)` it is to be recorded anew.
        if self._served.get(namespace) != self.synapse.forgotten:
            forgotten = self.synapse.forgotten
            self.synapse.serve(namespace, self._node_kind, self._collection)
            self._served[namespace] = forgotten

    def _serve_if_possible(self, namespace: Namespace) -> None:
        """As `serve`; a store that fails is passed over: what is learned can wait for it."""
        try:
            self.serve(namespace)
        except NamespaceClaimedError:
            raise
        except StoreError as error:
            self.synapse.passed_over(error)

    def recall(self, call: Call, find: Finding | None) -> Recalled | None:
        """The new places of the call's results; None: return them as they are.

        Never raises: whatever fails, the user's call goes on.
        """
        return self.synapse.guarded(lambda: self._recall(call, find), None)

    def explain(self, call: Call, find: Finding | None) -> Trace:
        """What would be moved and why; nothing is noted."""
        active = self._active(call)
        planned = self.synapse.plan(call.query, _hits(call), namespace=active)
        found = self._found(planned, call, find, None)
        return planned.settle(
            found.objects, reason=_closed(planned, call, find), refused=found.refused
        ).trace

    def _recall(self, call: Call, find: Finding | None) -> Recalled:
        synapse = self.synapse
        active = self._active(call)
        unidentified = sum(one.node is None for one in call.results)
        if unidentified:
            synapse.unidentified(unidentified)
        if active is not None and synapse.is_on:
            self._serve_if_possible(active)
        key, used = self._run(call, active)
        planned = synapse.plan(call.query, _hits(call), used=used, namespace=active)
        found = self._found(planned, call, find, active)
        recalled = synapse.settle(
            planned,
            found.objects,
            reason=_closed(planned, call, find),
            refused=found.refused,
        )
        self._note(call, recalled, found, active, key)
        return recalled

    def _declared(self) -> ActiveRun | None:
        """The `synapse.run()` of this memory that the call stands in."""
        declared = ACTIVE.get()
        if declared is None or getattr(declared.run.owner, "memory", None) is not (
            self.synapse.memory
        ):
            return None
        return declared

    def _active(self, call: Call) -> Namespace | None:
        """The namespace that the call, the run around it, or else the memory names."""
        if call.namespace is not None:
            return checked_namespace(call.namespace)
        declared = self._declared()
        return self.synapse.namespace if declared is None else declared.run.namespace

    def _run(self, call: Call, active: Namespace | None) -> tuple[str | None, Sequence[NodeId]]:
        """The key of the run that the call belongs to, and what that run has used so far."""
        declared = self._declared()
        if declared is not None:
            key: str | None = declared.id
        elif call.run_key is not None:
            key = str(call.run_key)
        else:
            key = TREE.root_of(call.run_id) if call.run_id is not None else None
        if key is None or active is None:
            return key, ()
        return key, LEDGER.used_in(key, self.synapse, active)

    def _found(
        self, planned: Plan, call: Call, find: Finding | None, active: Namespace | None
    ) -> Found:
        if not planned.wanted or find is None or call.closed is not None:
            return Found()
        failed = Found(refused={node.id: "fetching failed" for node in planned.wanted})
        found = self.synapse.guarded(lambda: find(planned), failed)
        if found.gone and active is not None:
            self.synapse.mark_gone(found.gone, active)
        return found

    def _note(
        self,
        call: Call,
        recalled: Recalled,
        found: Found,
        active: Namespace | None,
        key: str | None,
    ) -> None:
        """Let the ledger know what the call returns, so that its use can be noticed."""
        self.last_trace.set(recalled.trace)
        if key is None or active is None or not (self.synapse.is_on and self.synapse.learns):
            return
        results = [_result(place, call.results, found.results) for place in recalled.places]
        carriers = {
            move.node: move.carriers[0]
            for move in recalled.trace.displaced_in
            if move.node in recalled.fetched and move.carriers and move.node is not None
        }
        # A call without a run of its own: a run may hold several of them.
        run_id = call.run_id or f"{key}/{uuid4()}"
        TREE.retrieved(run_id)
        LEDGER.retrieved(
            Retrieved(
                run_id,
                TREE.root_of(call.run_id) if call.run_id is not None else key,
                self.synapse,
                active,
                checked_query(call.query),
                tuple(results),
                carriers,
                time.monotonic(),
            ),
            key,
        )


def _result(place: Place, results: Sequence[Result], entered: Mapping[NodeId, Result]) -> Result:
    if place.hit is not None:
        return results[place.hit]
    return entered[place.entered] if place.entered is not None else Result(None)


def _hits(call: Call) -> list[Hit]:
    scores = call.scores or [None] * len(call.results)
    return [Hit(one.node, score) for one, score in zip(call.results, scores, strict=True)]


def _closed(planned: Plan, call: Call, find: Finding | None) -> str | None:
    """Why nothing could come in although something would have."""
    if not planned.wanted or (find is not None and call.closed is None):
        return None
    return call.closed or "this retriever has no way to fetch by id"


def memory(store: str | os.PathLike[str] | Synapse | None, options: Mapping[str, Any]) -> Synapse:
    """The memory that a retriever was given, or a new one; one that cannot be opened is a warning.

    Raises:
        TypeError: Options beside a `Synapse`, or one that it does not know.
    """
    if isinstance(store, Synapse):
        if options:
            raise TypeError(f"give {', '.join(options)} to the Synapse itself")
        return store
    unknown = options.keys() - signature(Synapse).parameters.keys()
    if unknown:
        known = ", ".join(list(signature(Synapse).parameters)[1:])
        raise TypeError(f"there is no option {', '.join(sorted(unknown))}: there are {known}")
    return Synapse(store, **({"must_open": False} | dict(options)))


def node_kind(kind: object) -> str:
    """What a store records of how nodes are known: the name, or "callable" for a function.

    Raises:
        ValueError: It is none.
    """
    if callable(kind):
        return "callable"
    if isinstance(kind, str) and kind.removeprefix("metadata:") not in {"", kind}:
        return kind
    if isinstance(kind, str) and kind in {"id", "source"}:
        return kind
    raise ValueError(
        f'node={kind!r:.100} is not known: give "id", "source", "metadata:<key>" or a function '
        "that names what is learned about"
    )
