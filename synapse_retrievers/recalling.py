"""The read half of the loop: as many hits as were given, in the order that use has taught."""

import hmac
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias, TypeVar

from synapse_retrievers.checks import (
    checked_hits,
    checked_ids,
    checked_moment,
    checked_namespace,
    checked_query,
)
from synapse_retrievers.errors import ParamError, StoreError
from synapse_retrievers.keeping import Keeping
from synapse_retrievers.learning.lesson import Lesson
from synapse_retrievers.observer import settle
from synapse_retrievers.params import LearningParams, RecallParams
from synapse_retrievers.planning import Question, plan
from synapse_retrievers.recall.explain import Trace
from synapse_retrievers.recall.plan import Plan, Recalled, cold
from synapse_retrievers.stores.base import Store
from synapse_retrievers.tokens import tokens
from synapse_retrievers.types import Hit, Namespace, NodeId

Fetch: TypeAlias = Callable[[Sequence[NodeId]], Mapping[NodeId, object]]
"""Absent nodes by id -> what was found; a node that is missing cannot come in."""

_Option = TypeVar("_Option")

OFF = "SYNAPSE_RETRIEVERS_DISABLED"
"""The environment's kill switch: 1, true, yes or on, in any case."""


class Recalling(Keeping):
    """A memory that is asked; `Synapse` adds what teaches it."""

    def __init__(  # noqa: PLR0913 - every option of the product
        self,
        where: str | os.PathLike[str] | Store | None = None,
        *,
        namespace: Namespace | None = "personal",
        recall: RecallParams | None = None,
        learning: LearningParams | None = None,
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
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
            monotonic: Seconds from any start, for the time limit.
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
        self._monotonic = monotonic
        self._secret: bytes | None = None
        if must_open:
            self.open()
        else:
            self.guarded(self.open, None)

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
        nodes, started = checked_ids(used), self._monotonic()
        limit = self.recall_params.time_limit
        settle(limit)
        try:
            now = checked_moment(self._clock())
            question = Question(asked, self._words(asked), listed, nodes, active, now)
            planned = plan(
                self.store,
                question,
                self.recall_params,
                self.learning,
                lambda: self._monotonic() - started > limit,
            )
        except (StoreError, TimeoutError, ParamError) as error:
            self._guard.note(error)
            return cold(asked, listed, active, str(error))
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
        if planned.returned and planned.trace.namespace is not None:
            self.mark_gone(planned.returned, planned.trace.namespace, is_back=True)
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

    def query_key(self, query: str) -> str:
        """What an episode of this query is known by: its text, or a keyed hash of it."""
        return query if self.learning.store_queries else f"hmac:{self._digest(query)}"

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
