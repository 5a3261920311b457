"""The loop: recall what use has taught, and learn from use."""

import hmac
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TypeAlias, TypeVar
from uuid import uuid4

from synapse_retrievers.active_run import ACTIVE, ActiveRun
from synapse_retrievers.checks import (
    checked_hits,
    checked_ids,
    checked_moment,
    checked_namespace,
    checked_query,
    checked_strength,
)
from synapse_retrievers.errors import FeedbackError, ParamError, StoreError, UnknownRunError
from synapse_retrievers.events.run import Run
from synapse_retrievers.keeping import Keeping, Neighbor
from synapse_retrievers.learning.lesson import Lesson, Query, strongest
from synapse_retrievers.learning.terms import term_weights
from synapse_retrievers.observer import LEDGER, settle
from synapse_retrievers.params import LearningParams, RecallParams
from synapse_retrievers.planning import Question, plan
from synapse_retrievers.recall.explain import Carrier, Trace
from synapse_retrievers.recall.plan import Plan, Recalled, cold
from synapse_retrievers.stores.base import Store
from synapse_retrievers.teaching import run_key, teach, weaken_carrier, weaken_episode
from synapse_retrievers.tokens import tokens
from synapse_retrievers.types import Hit, Namespace, NodeId, Use
from synapse_retrievers.writing import Job

Fetch: TypeAlias = Callable[[Sequence[NodeId]], Mapping[NodeId, object]]
"""Absent nodes by id -> what was found; a node that is missing cannot come in."""

_Option = TypeVar("_Option")

OFF = "SYNAPSE_RETRIEVERS_DISABLED"
"""The environment's kill switch: 1, true, yes or on, in any case."""


class Synapse(Keeping):
    """One memory: what was used together, and for which queries.

    Safe for threads; one object serves any number of retrievers. Copies are the same object.
    """

    def __init__(  # noqa: PLR0913 - every option of the product
        self,
        where: str | os.PathLike[str] | Store | None = None,
        *,
        namespace: Namespace | None = "personal",
        recall: RecallParams | None = None,
        learning: LearningParams | None = None,
        clock: Callable[[], float] = time.time,
        on_event: Callable[[Trace | Lesson], object] | None = None,
        enabled: bool = True,
        inject: bool = True,
        learn: bool = True,
        must_open: bool = True,
    ) -> None:
        """Open a memory.

        Args:
            where: A path, a URL (`sqlite:///x.db`, `memory:`, `memory:name`) or a store; None:
                the environment's SYNAPSE_RETRIEVERS_STORE, else `synapse.db` here.
            namespace: The active one for calls that name none; None: such calls change nothing
                and teach nothing.
            recall: How energy is found and what it may change.
            learning: How use changes what is stored.
            clock: The present in Unix seconds.
            on_event: Called with the trace of every recall and with every lesson; what it raises
                is passed over.
            enabled: False: nothing is changed and nothing is learned.
            inject: False: learn and trace, but change no result (shadow mode).
            learn: False: recall, but learn nothing (frozen).
            must_open: False: a store that cannot be opened now is a warning; every call tries
                again.

        Raises:
            NamespaceError: The namespace is not a single token.
            ParamError: An option has a wrong type.
            StoreError: The store cannot be opened.
        """
        super().__init__(where, clock)
        self.namespace = None if namespace is None else checked_namespace(namespace)
        self.recall_params = _typed("recall", recall or RecallParams(), RecallParams)
        self.learning = _typed("learning", learning or LearningParams(), LearningParams)
        self.enabled = _typed("enabled", enabled, bool)
        self.inject = _typed("inject", inject, bool)
        self.learns = _typed("learn", learn, bool)
        self._on_event = on_event
        self._secret: bytes | None = None
        if must_open:
            self.store  # noqa: B018 - opens it
        else:
            self.guarded(lambda: self.store, None)

    @property
    def is_on(self) -> bool:
        """Whether neither `enabled=False` nor the environment switches everything off."""
        return self.enabled and os.environ.get(OFF, "").strip().lower() not in {
            "1",
            "true",
            "yes",
            "on",
        }

    def recall(
        self,
        query: str,
        hits: Sequence[Hit | NodeId | tuple[NodeId, float] | None],
        fetch: Fetch | None = None,
        used: Iterable[NodeId] = (),
        namespace: Namespace | None = None,
    ) -> Recalled:
        """As many hits as were given, in the order that use has taught.

        Args:
            query: As asked.
            hits: What the wrapped retriever returned, best first; ids alone and (id, score) pairs
                are taken too, None for a hit without an id.
            fetch: Finds absent nodes; without it nothing comes in.
            used: Nodes that the running run has used already.
            namespace: Default: the memory's own.

        Returns:
            Places, hits and the trace; unchanged where nothing is learned, where the store fails
            and where the time limit passes.

        Raises:
            NodeIdError: An id is no id.
            NamespaceError: The namespace is not a single token.
        """
        planned = self.plan(query, hits, used=used, namespace=namespace)
        asked = [node.id for node in planned.wanted]
        fetched: Mapping[NodeId, object] = {}
        if asked and fetch is not None:
            fetched = self.guarded(lambda: dict(fetch(asked)), {})
        entered = {node: fetched[node] for node in asked if fetched.get(node) is not None}
        return self.settle(planned, entered)

    def plan(
        self,
        query: str,
        hits: Sequence[Hit | NodeId | tuple[NodeId, float] | None],
        *,
        used: Iterable[NodeId] = (),
        namespace: Namespace | None = None,
    ) -> Plan:
        """The first half of `recall`, for callers that fetch by themselves; then `settle`."""
        listed = checked_hits(hits)
        asked = checked_query(query)
        active = self.namespace if namespace is None else checked_namespace(namespace)
        if active is None:
            return cold(asked, listed, None, "no namespace")
        if not self.is_on:
            return cold(asked, listed, active, "switched off")
        settle()
        nodes, now = checked_ids(used), checked_moment(self._clock())
        started = time.monotonic()
        limit = self.recall_params.time_limit
        try:
            question = Question(asked, self._words(asked), listed, nodes, active, now)
            planned = plan(
                self.store,
                question,
                self.recall_params,
                self.learning,
                lambda: time.monotonic() - started > limit,
            )
        except (StoreError, TimeoutError) as error:
            self._guard.note(error)
            return cold(asked, listed, active, str(error))
        if planned.returned:
            self.mark_gone(planned.returned, active, is_back=True)
        return planned

    def settle(
        self,
        planned: Plan,
        fetched: Mapping[NodeId, object],
        *,
        reason: str | None = None,
        refused: Mapping[NodeId, str] | None = None,
    ) -> Recalled:
        """The second half of `recall`: the places, once it is known what can come in."""
        recalled = planned.settle(
            fetched, reason=reason, refused=refused, is_shadow=not self.inject
        )
        self._tell(recalled.trace)
        return recalled

    def explain(
        self,
        query: str,
        hits: Sequence[Hit | NodeId | tuple[NodeId, float] | None] = (),
        namespace: Namespace | None = None,
    ) -> Trace:
        """What is learned about a query: which nodes it reaches, and what carries it there."""
        return self.plan(query, hits, namespace=namespace).settle().trace

    @contextmanager
    def run(
        self, query: str | None = None, namespace: Namespace | None = None
    ) -> Iterator[ActiveRun]:
        """A run of code without a framework: retrievers called inside belong to it.

        Args:
            query: What it is about; None: the queries that retrievers are asked inside.
            namespace: Default: the memory's own.

        Raises:
            NamespaceError: Neither names one.
        """
        active = checked_namespace(self.namespace if namespace is None else namespace)
        run = LEDGER.run(f"run-{uuid4()}", self, active, time.monotonic())
        if query is not None:
            run.asked(checked_query(query), ())
        token = ACTIVE.set(ActiveRun(run, query, self._learn_now, self.learning))
        try:
            yield ACTIVE.get()  # type: ignore[misc]  # set just above
        finally:
            ACTIVE.reset(token)

    def reinforce(
        self,
        ids: Iterable[NodeId],
        query: str | None = None,
        strength: float = 1.0,
        run_key: str | None = None,
        namespace: Namespace | None = None,
    ) -> int:
        """Teach that these nodes were used together; committed when it returns.

        Args:
            ids: Node ids; duplicates count once.
            query: What they were used for; None: no episode.
            strength: In (0, 2].
            run_key: A key that was taught within 30 days teaches nothing again.
            namespace: Default: the memory's own.

        Returns:
            How many pairs were taught.

        Raises:
            NodeIdError: An id is no id.
            FeedbackError: The strength is outside (0, 2].
            StoreError: Nothing was written; the call may be repeated.
        """
        active = checked_namespace(self.namespace if namespace is None else namespace)
        run = Run(run_key or "", active, self, 0.0)
        if query is not None:
            run.asked(checked_query(query), ())
        use = Use(checked_strength(strength))
        return self._learn_now(run, dict.fromkeys(checked_ids(ids), use))

    def feedback(
        self,
        run_id: object = None,
        *,
        query: str | None = None,
        used: Iterable[NodeId] = (),
        helpful: bool = True,
        strength: float = 1.0,
        namespace: Namespace | None = None,
    ) -> int:
        """Teach what a user says of a run; committed when it returns.

        Args:
            run_id: The root run's id, known for an hour in this process.
            query: Names the run by what was asked, or stands for a run that is not known.
            used: The nodes it is about; none: those that the run is known to have used, or, if
                it did not help, those that were brought in.
            helpful: False weakens what brought the nodes in.
            strength: In (0, 2].
            namespace: Default: that of the run, or the memory's own.

        Returns:
            How many pairs were taught, or, if it did not help, how many carriers were weakened.

        Raises:
            FeedbackError: A value has no meaning, or neither a run nor a query is named.
            NodeIdError: An id is no id.
            UnknownRunError: The run is not known, and nothing else names it.
            StoreError: Nothing was written; the call may be repeated.
        """
        if not isinstance(helpful, bool):
            raise FeedbackError("helpful", helpful, "True or False")
        nodes, counts = checked_ids(used), checked_strength(strength)
        runs = self._runs(run_id, query, nodes, namespace)
        if not helpful:
            penalty = self.learning.unhelpful_penalty * counts
            return sum(self._weaken(run, nodes or [*run.carriers], penalty) for run in runs)
        return sum(
            self._learn_now(run, dict.fromkeys(nodes or [*run.used], Use(counts))) for run in runs
        )

    def neighbors(self, id: NodeId, namespace: Namespace | None = None) -> list[Neighbor]:  # noqa: A002
        """The nodes one edge away, highest weight first; by default in the memory's own namespace."""
        return super().neighbors(id, self._named(namespace))

    def mark_gone(
        self, ids: Sequence[NodeId], namespace: Namespace, *, is_back: bool = False
    ) -> None:
        """Note that the wrapped store does not find these any more, or again."""
        at = None if is_back else checked_moment(self._clock())

        def job(store: Store) -> int:
            store.mark_gone(namespace, ids, at)
            return len(ids)

        self._eventually(job)

    def learn(self, run: Run, evidence: Mapping[NodeId, Use]) -> int:
        """Teach what is new of a run; a store that fails gets it later. For listeners."""
        return self._learn(run, evidence, self._eventually)

    def disappoint(self, run: Run, nodes: Sequence[NodeId]) -> int:
        """Weaken what brought these in: they were shown and not used. For listeners."""
        if not (self.is_on and self.learns):
            return 0
        with run.lock:
            fresh = [node for node in nodes if node not in run.penalized]
            run.penalized |= frozenset(fresh)
        penalty = self.learning.unused_penalty
        return self._weaken(run, fresh, penalty, self._eventually) if penalty else 0

    def query_key(self, query: str) -> str:
        """What an episode of this query is known by: its text, or a keyed hash of it."""
        return query if self.learning.store_queries else f"hmac:{self._digest(query)}"

    def _learn_now(self, run: Run, evidence: Mapping[NodeId, Use]) -> int:
        return self._learn(run, evidence, self._writing.now)

    def _learn(self, run: Run, evidence: Mapping[NodeId, Use], write: Callable[[Job], int]) -> int:
        if not (self.is_on and self.learns) or not evidence:
            return 0
        with run.lock:
            known = frozenset(run.used)
            used = strongest(run.with_evidence(evidence), self.learning.max_nodes, known)
            if used == run.used:
                return 0
            lesson = Lesson(
                run.namespace,
                used,
                frozenset(used) - known,
                tuple((self._query(query), found) for query, found in run.credits(used).items()),
                run_key(run.key, used) if run.key else None,
            )
            now = checked_moment(self._clock())
            pairs = write(partial(teach, lesson=lesson, now=now, params=self.learning))
            run.used = used
        self._tell(lesson)
        return pairs

    def _weaken(
        self,
        run: Run,
        nodes: Sequence[NodeId],
        penalty: float,
        write: Callable[[Job], int] | None = None,
    ) -> int:
        """From the one carrier of each node, or from its entries in the run's episodes."""
        now = checked_moment(self._clock())
        keys = [self.query_key(query) for query in run.queries]

        def job(store: Store) -> int:
            count = 0
            with store.batch():
                for node in nodes:
                    carrier = run.carriers.get(node)
                    if isinstance(carrier, Carrier):
                        count += weaken_carrier(
                            store,
                            run.namespace,
                            node,
                            carrier,
                            penalty,
                            now=now,
                            params=self.learning,
                        )
                    else:
                        for key in keys:
                            count += weaken_episode(store, run.namespace, key, (node,), penalty)
            return count

        if not nodes or not (self.is_on and self.learns):
            return 0
        return (write or self._writing.now)(job)

    def _runs(
        self,
        run_id: object,
        query: str | None,
        nodes: Sequence[NodeId],
        namespace: Namespace | None,
    ) -> list[Run]:
        if run_id is not None:
            known = LEDGER.find(str(run_id), self)
            known = [run for run in known if namespace is None or run.namespace == namespace]
            if known:
                return known
            if query is None or not nodes:
                raise UnknownRunError(run_id)
        if query is None:
            raise FeedbackError("run_id", run_id, "run_id= or query=")
        asked, active = checked_query(query), self._named(namespace)
        run = LEDGER.newest(asked, self, active)
        if run is None:
            run = LEDGER.run(f"feedback-{uuid4()}", self, active, time.monotonic())
            run.asked(asked, ())
        return [run]

    def _eventually(self, job: Job) -> int:
        """Run the job now; if the store fails, let it wait."""
        try:
            return self._writing.now(job)
        except StoreError as error:
            self._guard.note(error)
            self._writing.later(job)
            return 0

    def _named(self, namespace: Namespace | None) -> Namespace:
        return checked_namespace(self.namespace if namespace is None else namespace)

    def _query(self, query: str) -> Query:
        return Query(self.query_key(query), term_weights(self._words(query)))

    def _words(self, query: str) -> list[str]:
        found = tokens(query)
        return found if self.learning.store_queries else [self._digest(word)[:16] for word in found]

    def _digest(self, text: str) -> str:
        if self._secret is None:
            self._secret = self.store.secret()
        return hmac.new(self._secret, text.encode(), "sha256").hexdigest()[:32]

    def _tell(self, happened: Trace | Lesson) -> None:
        if self._on_event is not None:
            on_event = self._on_event
            self.guarded(lambda: on_event(happened), None)


def _typed(name: str, value: object, expected: type[_Option]) -> _Option:
    if not isinstance(value, expected):
        raise ParamError(name, value, f"of type {expected.__name__}")
    return value
