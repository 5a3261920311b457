"""What a retriever suite needs of a framework: the harness of one of its retrievers."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from synapse_retrievers.recall.explain import Trace
from synapse_retrievers.synapse import Synapse
from synapse_retrievers.testing.corpus import CORPUS, QUERY, Entry
from synapse_retrievers.testing.reins import Clock, Wrapped
from synapse_retrievers.types import NodeId


class Harness(ABC):
    """A retriever of ours around a wrapped one, in the framework's own terms.

    Attributes:
        wrapped: The reins of the wrapped retriever.
        ways: How a query can be asked; "sync" and "async" at least.
        runs: How a whole run can be had; "sync" and "async" at least.
    """

    wrapped: Wrapped
    ways: Sequence[str] = ("sync", "async")
    runs: Sequence[str] = ("sync", "async")

    @property
    @abstractmethod
    def synapse(self) -> Synapse:
        """The memory."""

    @abstractmethod
    def ask(
        self,
        query: str,
        *,
        way: str = "sync",
        namespace: str | None = None,
        restriction: str | None = None,
    ) -> list[Any]:
        """The framework's own result objects.

        Args:
            query: As asked.
            way: One of `ways`.
            namespace: Named by the call, in the framework's own way.
            restriction: "tenant a", "threshold" or "unknown", in the framework's own form;
                "unknown" lets everything through and is one that nobody could re-check.
        """

    @abstractmethod
    def run_chain(
        self,
        query: str,
        answer: str,
        *,
        way: str = "sync",
        namespace: str | None = None,
        listeners: int = 0,
    ) -> str:
        """A whole run: what is retrieved stands in the prompt of a model that says `answer`.

        Args:
            query: What the user asks, and the retriever is asked.
            answer: What the model says.
            way: One of `runs`.
            namespace: Named by the run, in the framework's own way.
            listeners: How many of our listeners are handed over besides the automatic one.

        Returns:
            What the user gets.
        """

    @abstractmethod
    def result(self, entry: Entry) -> Any:
        """A fresh result object for an entry."""

    @abstractmethod
    def id_of(self, result: Any) -> NodeId | None:
        """The node of a result."""

    @abstractmethod
    def stored(self, id: NodeId) -> Any:  # noqa: A002 - as everywhere
        """The node of an entry as the framework's vector store gives it, to compare with."""

    @abstractmethod
    def delete(self, ids: Sequence[NodeId]) -> None:
        """Take entries out of the vector store."""

    @abstractmethod
    def add(self, entries: Sequence[Entry]) -> None:
        """Put entries into the vector store."""

    @abstractmethod
    def last_trace(self) -> Trace | None:
        """The retriever's `last_trace`."""

    @abstractmethod
    def explain(self, query: str) -> Trace:
        """The retriever's `explain`."""

    @abstractmethod
    def nested(self) -> "Harness":
        """A retriever of ours, on the same memory, around this harness's retriever."""

    def node_of(self, result: Any) -> Any:
        """The object that must stay the same when a hit moves; default: the result itself."""
        return result

    def ids(self, results: Sequence[Any]) -> list[NodeId | None]:
        """The nodes of the results."""
        return [self.id_of(one) for one in results]


class RetrieverSuite:
    """What the promises stand on: an adapter joins by `build`."""

    @property
    def cannot(self) -> Mapping[str, str]:
        """Ability -> why this adapter lacks it; its tests are expected to fail.

        Abilities: "same list" (a cold result is the wrapped list itself, not a list of its
        objects), "filter" (entering nodes are re-checked), "threshold restriction",
        "unknown restriction", "fetch", "delete" (a missing node can be told from one kept out),
        "nested".
        """
        return {}

    def build(
        self,
        where: Any,
        *,
        corpus: Sequence[Entry] = CORPUS,
        k: int = 6,
        **options: Any,
    ) -> Harness:
        """A retriever over the corpus by `embed`, k results, around it ours with these options.

        Args:
            where: A path, a URL, a store or a `Synapse`.
            corpus: What the vector store holds, in this order.
            k: As many results as the wrapped retriever gives.
            **options: Of the adapter's `wrap`.
        """
        raise NotImplementedError

    def needs(self, ability: str) -> None:
        """End the test as expected to fail if the adapter lacks the ability."""
        if ability in self.cannot:
            pytest.xfail(self.cannot[ability])

    @pytest.fixture(params=["sync", "async"])
    def way(self, request: pytest.FixtureRequest) -> str:
        """How the retriever is asked."""
        way: str = request.param
        return way

    @pytest.fixture
    def clock(self) -> Clock:
        """Stands at `NOW`."""
        return Clock()


def absent_of(harness: Harness, query: str = QUERY) -> list[Entry]:
    """The entries that the wrapped retriever does not return for the query."""
    was_enabled, harness.synapse.enabled = harness.synapse.enabled, False
    found = harness.ids(harness.ask(query))
    harness.synapse.enabled = was_enabled
    return [entry for entry in CORPUS if entry.id not in found]


def present_of(harness: Harness, query: str = QUERY) -> list[Entry]:
    """The entries that the wrapped retriever returns for the query, best first."""
    absent = absent_of(harness, query)
    by_id = {entry.id: entry for entry in CORPUS if entry not in absent}
    return [by_id[id_] for id_ in harness.ids(harness.wrapped.lists[-1]) if id_ in by_id]


def warm(harness: Harness, query: str = QUERY, namespace: str | None = None) -> Entry:
    """Teach that the query needs the first hit and an absent entry, which then comes in."""
    first, absent = present_of(harness, query)[0], absent_of(harness, query)[0]
    harness.synapse.reinforce([first.id, absent.id], query=query, namespace=namespace)
    return absent
