"""A run that code without a framework declares itself."""

from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from typing import Literal, get_args

from synapse_retrievers.checks import checked_ids, checked_strength
from synapse_retrievers.errors import FeedbackError
from synapse_retrievers.events.evidence import Evidence, strength_of
from synapse_retrievers.events.run import Run
from synapse_retrievers.params import LearningParams
from synapse_retrievers.types import NodeId, Use

Said = Literal[Evidence, "touched"]
"""Kinds of evidence that code may report; "touched" counts as "edited"."""

ACTIVE: "ContextVar[ActiveRun | None]" = ContextVar("synapse_run", default=None)
"""The innermost declared run; retrievers that are called inside belong to it."""


class ActiveRun:
    """What `Synapse.run` hands out; usable until, and after, its block ends."""

    def __init__(
        self,
        run: Run,
        query: str | None,
        learn: Callable[[Run, Mapping[NodeId, Use]], int],
        params: LearningParams,
    ) -> None:
        self._run = run
        self._query = query
        self._learn = learn
        self._params = params

    @property
    def id(self) -> str:
        """By which `Synapse.feedback(run_id=...)` finds it for an hour."""
        return self._run.key

    @property
    def run(self) -> Run:
        """What is known of it."""
        return self._run

    def retrieved(self, ids: Iterable[NodeId], query: str | None = None) -> None:
        """Note what came back for a query of the run; teaches nothing.

        Args:
            ids: Node ids in any order; duplicates count once.
            query: Default: the run's own query.

        Raises:
            NodeIdError: An id is no id.
            FeedbackError: Neither the call nor the run names a query.
        """
        asked = query if query is not None else self._query
        if not isinstance(asked, str):
            raise FeedbackError("query", asked, "the query's text, here or to synapse.run(query)")
        self._run.asked(asked, checked_ids(ids))

    def used(
        self, ids: Iterable[NodeId], evidence: Said = "touched", *, strength: float | None = None
    ) -> int:
        """Teach that the run used these nodes; committed when it returns.

        Args:
            ids: Node ids in any order, also ones that no query of the run returned.
            evidence: Why they count: "touched", "edited", "read", "cited", "used", "hinted" or
                "feedback".
            strength: In (0, 2]; default: what the kind of evidence is worth.

        Returns:
            How many pairs were taught; 0 if all of them were known of this run.

        Raises:
            NodeIdError: An id is no id.
            FeedbackError: An unknown kind of evidence, or a strength outside (0, 2].
            StoreError: Nothing was written; the call may be repeated.
        """
        kinds = [*get_args(Evidence), "touched"]
        if evidence not in kinds:
            raise FeedbackError("evidence", evidence, "one of " + ", ".join(kinds))
        if strength is None:
            strength = strength_of("edited" if evidence == "touched" else evidence, self._params)
        use = Use(checked_strength(strength))
        return self._learn(self._run, dict.fromkeys(checked_ids(ids), use))
