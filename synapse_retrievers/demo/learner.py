"""The real retrievers on one index and one store, plain and wrapped, under the clock of a log."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter

from langchain_chroma import Chroma
from langsmith import tracing_context

from langchain_synapse_retrievers import SynapseRetriever
from synapse_retrievers.evaluation.history import Run
from synapse_retrievers.evaluation.replay import Answer
from synapse_retrievers.recall.explain import Trace
from synapse_retrievers.stats import Stats
from synapse_retrievers.synapse import Synapse


class LangChainLearner:
    """The real retrievers on one index and one store, under the clock of the log."""

    def __init__(self, vectorstore: Chroma, synapse: Synapse, now: list[float], k: int) -> None:
        self._synapse = synapse
        self._now = now
        self._base = vectorstore.as_retriever(search_kwargs={"k": k})
        self._wrapped = SynapseRetriever.from_vectorstore(vectorstore, synapse, k=k, node="source")
        self._plain_first = False

    def ask(self, run: Run) -> Answer[Trace | None]:
        """Plain and wrapped, in turns first: what the first call warms up, the second gets."""
        self._now[0] = run.t
        self._plain_first = not self._plain_first
        calls = {"plain": self._base.invoke, "wrapped": self._wrapped.invoke}
        found: dict[str, tuple[str, ...]] = {}
        seconds: dict[str, float] = {}
        for name in sorted(calls, reverse=not self._plain_first):
            start = perf_counter()
            documents = calls[name](run.query)
            seconds[name] = perf_counter() - start
            found[name] = tuple(document.metadata["source"] for document in documents)
        return Answer(
            *(found["plain"], found["wrapped"], seconds["plain"], seconds["wrapped"]),
            self._wrapped.last_trace,
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
def open_learner(vectorstore: Chroma, store: Path, k: int) -> Iterator[LangChainLearner]:
    """Both retrievers on the index, learning into the store at `store`; closed at the end."""
    now = [0.0]
    synapse = Synapse(store, clock=lambda: now[0])
    try:
        # What a user traces elsewhere must not receive the messages of this repository.
        with tracing_context(enabled=False):
            yield LangChainLearner(vectorstore, synapse, now, k)
    finally:
        synapse.close()
