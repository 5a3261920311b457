"""The loop: recall what use has taught, and learn from use."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from uuid import uuid4

from synapse_retrievers.active_run import ACTIVE, ActiveRun
from synapse_retrievers.checks import (
    checked_ids,
    checked_moment,
    checked_namespace,
    checked_query,
    checked_strength,
)
from synapse_retrievers.errors import FeedbackError, UnknownRunError
from synapse_retrievers.events.run import Run
from synapse_retrievers.keeping import Neighbor
from synapse_retrievers.learning.lesson import Lesson, Query, strongest
from synapse_retrievers.learning.terms import term_weights
from synapse_retrievers.observer import LEDGER, settle
from synapse_retrievers.recalling import Recalling
from synapse_retrievers.teaching import REPLAY, run_key, teach, weaken_all
from synapse_retrievers.types import Namespace, NodeId, Use
from synapse_retrievers.writing import Job


class Synapse(Recalling):
    """One memory: what was used together, and for which queries.

    Safe for threads; one object serves any number of retrievers. Copies are the same object.
    """

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
        settle()  # what a run's answer has proved comes before what is said of it
        nodes, counts = checked_ids(used), checked_strength(strength)
        runs = self._runs(run_id, query, nodes, namespace)
        # One tenant's node must not be taught in another's memory because both shared a run.
        said = {run: nodes if len(runs) == 1 else run.known(nodes) for run in runs}
        if not helpful:
            penalty = self.learning.unhelpful_penalty * counts
            # Of a run it is said once; what is said of a query is said by whoever asks it.
            is_once = run_id is not None
            return sum(
                self._weaken(run, said[run] if nodes else None, penalty, is_once=is_once)
                for run in runs
            )
        return sum(
            self._learn_now(run, dict.fromkeys(said[run] if nodes else run.used, Use(counts)))
            for run in runs
        )

    def neighbors(self, id: NodeId, namespace: Namespace | None = None) -> list[Neighbor]:  # noqa: A002
        """The nodes one edge away, highest weight first; namespace as in `recall`."""
        prior = self.recall_params.edge_prior
        return self._neighbors(id, self._named(namespace), prior)

    def learn(self, run: Run, evidence: Mapping[NodeId, Use]) -> int:
        """Teach what is new of a run; a store that fails gets it later. For listeners."""
        return self.guarded(lambda: self._learn(run, evidence, self._eventually), 0)

    def disappoint(self, run: Run, nodes: Sequence[NodeId]) -> int:
        """Weaken what brought these in: they were shown and not used. For listeners."""
        penalty = self.learning.unused_penalty
        return self.guarded(lambda: self._weaken(run, nodes, penalty, self._eventually), 0)

    def _learn_now(self, run: Run, evidence: Mapping[NodeId, Use]) -> int:
        return self._learn(run, evidence, self._writing.now)

    def _learn(self, run: Run, evidence: Mapping[NodeId, Use], write: Callable[[Job], int]) -> int:
        if not (self.is_on and self.learns) or not evidence:
            return 0
        with run.lock:
            if run.is_replay:
                return 0
            known = frozenset(run.used)
            used = strongest(run.with_evidence(evidence), self.learning.max_nodes, known)
            if used == run.used:
                return 0
            lesson = Lesson(
                run.namespace,
                used,
                frozenset(used) - known,
                tuple((self._query(query), found) for query, found in run.credits(used).items()),
                run_key(run.key) if run.key and not known else None,
            )
            now = checked_moment(self._clock())
            pairs = write(partial(teach, lesson=lesson, now=now, params=self.learning))
            run.is_replay = pairs is REPLAY
            run.used = used
        self._tell(lesson)
        return pairs

    def _weaken(
        self,
        run: Run,
        nodes: Sequence[NodeId] | None,
        penalty: float,
        write: Callable[[Job], int] | None = None,
        *,
        is_once: bool = True,
    ) -> int:
        """From the one carrier of each node, or from its entries in the run's episodes.

        Once: of a node a run takes a penalty once, however often it is told; a larger one takes
        what is missing. `nodes` None: all that were brought in.
        """
        if not (self.is_on and self.learns):
            return 0
        now = checked_moment(self._clock())
        with run.lock:
            taken = run.penalties if is_once else {}
            owed = {
                node: penalty - taken.get(node, 0.0)
                for node in (run.carriers if nodes is None else nodes)
                if penalty > taken.get(node, 0.0)
            }
            if not owed:
                return 0
            keys = [self.query_key(query) for query in run.queries]
            carriers = {node: run.carriers.get(node) for node in owed}
            job = partial(
                weaken_all,
                namespace=run.namespace,
                owed=owed,
                carriers=carriers,
                queries=keys,
                now=now,
                params=self.learning,
            )
            count = (write or self._writing.now)(job)
            run.penalties |= dict.fromkeys(owed, penalty)
        return count

    def _runs(
        self,
        run_id: object,
        query: str | None,
        nodes: Sequence[NodeId],
        namespace: Namespace | None,
    ) -> list[Run]:
        if run_id is not None:
            known = LEDGER.find(str(run_id), self, time.monotonic())
            known = [run for run in known if namespace is None or run.namespace == namespace]
            if known:
                return known
            if query is None or not nodes:
                raise UnknownRunError(run_id)
        if query is None:
            raise FeedbackError("run_id", run_id, "run_id= or query=")
        asked, active = checked_query(query), self._named(namespace)
        run = LEDGER.newest(asked, self, active, time.monotonic())
        if run is None:
            run = LEDGER.run(f"feedback-{uuid4()}", self, active, time.monotonic())
            run.asked(asked, ())
        return [run]

    def _named(self, namespace: Namespace | None) -> Namespace:
        return checked_namespace(self.namespace if namespace is None else namespace)

    def _query(self, query: str) -> Query:
        return Query(self.query_key(query), term_weights(self._words(query)))
