"""The read path against a store: what a query's memory would change, before anything is fetched."""

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

import numpy as np

from synapse_retrievers.aging import AgedGraph, Moment
from synapse_retrievers.carriers import Carriers
from synapse_retrievers.choosing import Choice, Reach, choose
from synapse_retrievers.errors import TimeLimitError
from synapse_retrievers.namespaces import readable
from synapse_retrievers.params import LearningParams, RecallParams
from synapse_retrievers.recall.cue import Cue, cue, query_terms, similar
from synapse_retrievers.recall.displace import wanted
from synapse_retrievers.recall.energy import Told, tell
from synapse_retrievers.recall.explain import Reached, Trace
from synapse_retrievers.recall.plan import Plan, cold
from synapse_retrievers.recall.seed import seed
from synapse_retrievers.recall.spread import spread
from synapse_retrievers.stores.base import Reader, Store
from synapse_retrievers.types import Floats, Hit, Ints, Namespace, NodeId, Postings


@dataclass(frozen=True, slots=True)
class Question:
    """One recall: what is asked, where, and when."""

    query: str
    words: Sequence[str]
    hits: list[Hit]
    used: Sequence[NodeId]
    namespace: Namespace
    now: float


def plan(
    store: Store,
    question: Question,
    recall: RecallParams,
    learning: LearningParams,
    is_late: Callable[[], bool],
) -> Plan:
    """What is learned about the question, in one consistent view of the store.

    Raises:
        StoreError: The store failed.
        TimeLimitError: `is_late` said so between two steps.
    """
    namespaces = readable(question.namespace)
    with store.reading(tuple(namespaces)) as reader:
        if not reader.namespaces:
            return cold(question.query, question.hits, question.namespace)
        factors = [namespaces[name] for name in reader.namespaces]
        return _Planning(reader, question, factors, recall, learning, is_late).plan()


@dataclass(frozen=True, slots=True)
class _Index:
    """The query's terms in one namespace of the view."""

    reader: Reader
    episodes: int
    document_frequency: Sequence[int]
    handle: Sequence[int]

    def postings(self, places: Sequence[int]) -> Postings:
        return self.reader.postings([self.handle[place] for place in places])

    def weights(self, episodes: Ints, places: Sequence[int]) -> Floats:
        return self.reader.weights(episodes, [self.handle[place] for place in places])


class _Planning:
    """One recall inside one view of the store; used once."""

    def __init__(
        self,
        reader: Reader,
        question: Question,
        factors: Sequence[float],
        recall: RecallParams,
        learning: LearningParams,
        is_late: Callable[[], bool],
    ) -> None:
        self._reader = reader
        self._question = question
        self._factors = factors
        self._params = recall
        self._is_late = is_late
        moment = Moment(reader.namespaces, question.now, learning)
        self._graph = AgedGraph(reader, np.array(factors), moment, self._stop_if_late)

    def plan(self) -> Plan:
        question = self._question
        asked = dict.fromkeys(hit.id for hit in question.hits if hit.id is not None)
        ids = list(asked | dict.fromkeys(question.used))
        found = zip(ids, self._reader.handles(ids).tolist(), strict=True)
        known = {node: handle for node, handle in found if handle >= 0}
        used = {known[node] for node in question.used if node in known}
        self._stop_if_late()
        cues = self._cues(used) if self._params.cue_weight else []
        told = tell(cues, self._factors, self._params)
        self._stop_if_late()
        if not known and not told.support:
            return cold(question.query, question.hits, question.namespace)
        reach = self._reach(known, used, told)
        self._stop_if_late()
        choice = choose(self._reader, self._graph, reach, question.hits, known, self._params)
        self._stop_if_late()
        planned = self._planned(choice, reach)
        present = np.fromiter(known.values(), np.int64, len(known))
        gone = zip(known, self._graph.is_gone(present).tolist(), strict=True)
        returned = tuple(node for node, is_marked in gone if is_marked and node in asked)
        return replace(planned, returned=returned) if returned else planned

    def _cues(self, used: AbstractSet[int]) -> list[Cue]:
        """What the past questions of each namespace say."""
        terms = query_terms(self._question.words)
        if not terms:
            return []
        known = self._reader.terms(tuple(terms))
        cues = []
        for place, episodes in enumerate(known.episodes):
            index = _Index(
                self._reader, episodes, known.document_frequency[place], known.handle[place]
            )
            found = similar(terms, index, self._params)
            if len(found.episode):
                cues.append(cue(found, self._reader.uses(found.episode), self._params, used))
            else:
                cues.append(Cue(of=episodes))
        return cues

    def _reach(self, known: Mapping[NodeId, int], used: AbstractSet[int], told: Told) -> Reach:
        question, params = self._question, self._params
        start = {
            known[node]: energy
            for node, energy in seed(question.hits, question.used, params).items()
            if node in known
        }
        seeds = np.fromiter(start, np.int64, len(start))
        of = self._asked_about(known, seeds, used, told)
        if not params.spread_weight or not len(seeds):
            return Reach(None, told, of)
        energies = np.fromiter(start.values(), float, len(start))
        asked = None if of is None else np.array([one for one in of if one not in start], np.int64)
        return Reach(spread(seeds, energies, self._graph, params, asked), told, of)

    def _asked_about(
        self, known: Mapping[NodeId, int], seeds: Ints, used: AbstractSet[int], told: Told
    ) -> Sequence[int] | None:
        """The nodes whose energy can matter (ascending handles); None: any.

        Beside the hits these are the ones that may come in: those that past questions are sure
        of, and those that were used together with one that this run has used already.
        """
        params = self._params
        if not (self._question.hits and params.cue_weight and params.displace_similarity):
            return None
        asked = {*known.values(), *told.sure(params)}
        senders = [place for place, node in enumerate(seeds.tolist()) if node in used]
        if senders and params.spread_weight:
            edges = self._graph.frontier(seeds)
            asked.update(edges.neighbor[np.isin(edges.sender, senders)].tolist())
        return sorted(asked)

    def _planned(self, choice: Choice, reach: Reach) -> Plan:
        question, params = self._question, self._params
        shown = {hit.id for hit in question.hits} - {None}
        reached = {
            handle: energy
            for handle, energy in choice.energy.items()
            if choice.names.get(handle) in shown
        }
        if not reached and not choice.absent:
            return cold(question.query, question.hits, question.namespace)
        worths, absent = choice.worths, choice.absent
        candidates = wanted(worths, absent, params) if worths else absent
        handles = {name: handle for handle, name in choice.names.items()}
        named = {handles[node.id]: node for node in candidates}
        carriers = Carriers(
            self._reader, self._factors, reach, choice, [*reached, *named], params, question.now
        )
        told = [
            Reached(choice.names[handle], energy, carriers.of(handle), handle in reached)
            for handle, energy in choice.energy.items()
            if handle in reached or handle in named
        ]
        told.sort(key=lambda node: (-node.energy, node.node))
        return Plan(
            question.hits,
            Trace(
                question.query,
                question.namespace,
                len(worths),
                is_cold=False,
                reached=tuple(told),
                skipped=reach.spread.skipped if reach.spread is not None else 0,
            ),
            tuple(worths),
            tuple(candidates) if worths else (),
            {
                node.id: chunk
                for handle, node in named.items()
                if (chunk := carriers.chunk_of(handle)) is not None
            },
            params,
        )

    def _stop_if_late(self) -> None:
        if self._is_late():
            raise TimeLimitError(self._params.time_limit)
