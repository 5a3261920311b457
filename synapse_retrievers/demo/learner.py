"""The real retrievers on one index and one store, plain and wrapped, under the clock of a log."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Literal, TypeAlias

from langchain_chroma import Chroma
from langsmith import tracing_context

from langchain_synapse_retrievers import SynapseRetriever
from synapse_retrievers.demo.index import Index
from synapse_retrievers.errors import MissingExtraError
from synapse_retrievers.evaluation.log import Run
from synapse_retrievers.evaluation.replay import Answer
from synapse_retrievers.recall.explain import Trace
from synapse_retrievers.stats import Stats
from synapse_retrievers.synapse import Synapse

Framework: TypeAlias = Literal["langchain", "llama-index"]

Ask: TypeAlias = Callable[[str], tuple[str, ...]]
"""A query -> the source of every chunk returned, best first."""


@dataclass(frozen=True, slots=True)
class Retrievers:
    """The real retrievers of one framework on one index: plain, and wrapped around a memory."""

    plain: Ask
    wrapped: Ask
    last_trace: Callable[[], Trace | None]


def retrievers(vectorstore: Chroma, synapse: Synapse, k: int) -> Retrievers:
    """LangChain's."""
    base = vectorstore.as_retriever(search_kwargs={"k": k})
    wrapped = SynapseRetriever.from_vectorstore(vectorstore, synapse, k=k, node="source")
    return Retrievers(
        lambda query: tuple(one.metadata["source"] for one in base.invoke(query)),
        lambda query: tuple(one.metadata["source"] for one in wrapped.invoke(query)),
        lambda: wrapped.last_trace,
    )


class FrameworkLearner:
    """The real retrievers on one index and one store, under the clock of the log."""

    def __init__(self, both: Retrievers, synapse: Synapse, now: list[float]) -> None:
        self._both = both
        self._synapse = synapse
        self._now = now
        self._plain_first = False

    def ask(self, run: Run) -> Answer[Trace | None]:
        """Plain and wrapped, in turns first: what the first call warms up, the second gets."""
        self._now[0] = run.t
        self._plain_first = not self._plain_first
        calls = {"plain": self._both.plain, "wrapped": self._both.wrapped}
        found: dict[str, tuple[str, ...]] = {}
        seconds: dict[str, float] = {}
        for name in sorted(calls, reverse=not self._plain_first):
            start = perf_counter()
            found[name] = calls[name](run.query)
            seconds[name] = perf_counter() - start
        return Answer(
            *(found["plain"], found["wrapped"], seconds["plain"], seconds["wrapped"]),
            self._both.last_trace(),
        )

    def teach(self, run: Run) -> None:
        """The files that the commit touched were used for its message."""
        self._now[0] = run.t
        with self._synapse.run(run.query) as use:
            use.used(run.used, evidence="touched")

    def finish(self) -> Stats:
        """Everything learned is on disk; what the store holds and what failed on the way."""
        self._synapse.flush()
        return self._synapse.stats()


@contextmanager
def open_learner(
    index: Index, store: Path, k: int, framework: Framework
) -> Iterator[FrameworkLearner]:
    """Both retrievers on the index, learning into the store at `store`; closed at the end.

    Raises:
        MissingExtraError: The framework is not installed.
    """
    now = [0.0]
    synapse = Synapse(store, clock=lambda: now[0])
    try:
        # What a user traces elsewhere must not receive the messages of this repository.
        with tracing_context(enabled=False):
            yield FrameworkLearner(_retrievers(index, synapse, k, framework), synapse, now)
    finally:
        synapse.close()


def _retrievers(index: Index, synapse: Synapse, k: int, framework: Framework) -> Retrievers:
    if framework == "langchain":
        return retrievers(index.vectorstore, synapse, k)
    try:
        from synapse_retrievers.demo import llama_index  # noqa: PLC0415 - it takes seconds
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("llama_index"):
            raise
        raise MissingExtraError("the demo through LlamaIndex", "demo-llama-index") from error
    return llama_index.retrievers(index.vectorstore, index.embeddings, synapse, k)
