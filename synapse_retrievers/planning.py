"""The read path against a store: what a query's memory would change, before anything is fetched."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from synapse_retrievers.carriers import Carriers
from synapse_retrievers.errors import TimeLimitError
from synapse_retrievers.learning.decay import count_at, weight_at
from synapse_retrievers.namespaces import readable
from synapse_retrievers.params import DAY, LearningParams, RecallParams
from synapse_retrievers.recall.cue import Cue, cue, query_terms, similar
from synapse_retrievers.recall.displace import Absent, wanted
from synapse_retrievers.recall.energy import Energies, energize
from synapse_retrievers.recall.explain import Reached, Trace
from synapse_retrievers.recall.fuse import boosted, fuse
from synapse_retrievers.recall.plan import Plan, cold
from synapse_retrievers.recall.seed import seed
from synapse_retrievers.recall.spread import Frontier, Spread, spread
from synapse_retrievers.stores.base import Reader, Store
from synapse_retrievers.types import Bools, Hit, Ints, Namespace, NodeId, Uses


@dataclass(frozen=True, slots=True)
class Question:
    """One recall: what is asked, where, and when."""

    query: str
    words: Sequence[str]
    hits: list[Hit]
    used: Sequence[NodeId]
    namespace: Namespace
    now: float


class _AgedGraph:
    """A reader as the kernels see it: weights and counts as they are now."""

    def __init__(
        self,
        reader: Reader,
        namespaces: Mapping[Namespace, float],
        now: float,
        params: LearningParams,
        look_at_clock: Callable[[], None],
    ) -> None:
        self._reader = reader
        self._namespaces = tuple(namespaces)
        self._now = now
        self._params = params
        self._look_at_clock = look_at_clock
        self.factors = np.fromiter(namespaces.values(), float)

    def frontier(self, nodes: Ints) -> Frontier:
        self._look_at_clock()
        rows = self._reader.neighbors(nodes)
        counters = self._reader.counters(nodes)
        used = count_at(counters["used"], counters["used_at"], self._now, self._params)
        state = rows.state
        weight = np.zeros(len(state))
        for index, namespace in enumerate(self._namespaces):
            here = rows.namespace == index
            weight[here] = weight_at(state[here], self._now, namespace, self._params)
        return Frontier(
            rows.namespace,
            rows.sender,
            rows.neighbor,
            weight,
            count_at(state["co"], state["activated_at"], self._now, self._params),
            used[rows.namespace, rows.sender],
            np.maximum(self._now - state["activated_at"], 0.0) / DAY,
        )

    def degrees(self, nodes: Ints, exact_above: int) -> Ints:
        self._look_at_clock()
        return self._reader.degrees(nodes, exact_above)


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
        return _Planning(reader, question, namespaces, recall, learning, is_late).plan()


class _Planning:
    """One recall inside one view of the store; used once."""

    def __init__(
        self,
        reader: Reader,
        question: Question,
        namespaces: Mapping[Namespace, float],
        recall: RecallParams,
        learning: LearningParams,
        is_late: Callable[[], bool],
    ) -> None:
        self._reader = reader
        self._question = question
        self._namespaces = namespaces
        self._params = recall
        self._is_late = is_late
        self._graph = _AgedGraph(reader, namespaces, question.now, learning, self._stop_if_late)
        self._cues: list[tuple[Cue, Uses]] = []
        self._spread: Spread | None = None
        self._used: Ints = np.zeros(0, np.int64)

    def plan(self) -> Plan:
        question = self._question
        ids = list(dict.fromkeys(hit.id for hit in question.hits if hit.id is not None))
        ids += [node for node in question.used if node not in ids]
        handles = dict(zip(ids, self._reader.handles(ids).tolist(), strict=True))
        self._used = np.array([handles[node] for node in set(question.used)], np.int64)
        planned = self._planned(handles)
        return replace(planned, returned=self._returned(handles))

    def _returned(self, handles: Mapping[NodeId, int]) -> tuple[NodeId, ...]:
        """Hits that are marked gone in a namespace that is read."""
        known = {handle: node for node, handle in handles.items() if handle >= 0}
        if not known:
            return ()
        shown = {hit.id for hit in self._question.hits}
        gone_at = self._reader.counters(np.fromiter(known, np.int64, len(known)))["gone_at"]
        is_gone = ~np.isnan(gone_at).all(axis=0)
        gone = [node for node, marked in zip(known.values(), is_gone, strict=True) if marked]
        return tuple(node for node in gone if node in shown)

    def _planned(self, handles: Mapping[NodeId, int]) -> Plan:
        question = self._question
        energies = self._energies(handles)
        if not len(energies.node):
            return cold(question.query, question.hits, question.namespace)
        by_handle = dict(zip(energies.node.tolist(), energies.energy.tolist(), strict=True))
        known = {node: by_handle.get(handle, 0.0) for node, handle in handles.items()}
        worths = fuse(question.hits, known, self._params)
        absent = self._absent(energies, set(handles.values()), worths)
        hit_ids = {hit.id for hit in question.hits}
        reached = {node: known[node] for node in known if node in hit_ids and known[node] > 0.0}
        if not reached and not absent:
            return cold(question.query, question.hits, question.namespace)
        candidates = wanted(worths, absent, self._params) if worths else absent
        names = [node.id for node in candidates]
        found = dict(zip(names, self._reader.handles(names).tolist(), strict=True))
        carriers = self._carriers(energies)
        told = [
            Reached(node, energy, carriers.of(handles[node]), is_hit=True)
            for node, energy in reached.items()
        ]
        told += [Reached(node.id, node.energy, carriers.of(found[node.id])) for node in candidates]
        told.sort(key=lambda node: (-node.energy, node.node))
        trace = Trace(
            question.query, question.namespace, len(worths), is_cold=False, reached=tuple(told)
        )
        return Plan(
            question.hits,
            trace,
            tuple(worths),
            tuple(candidates) if worths else (),
            {name: chunk for name in names if (chunk := carriers.chunk_of(found[name]))},
            self._params,
        )

    def _energies(self, handles: Mapping[NodeId, int]) -> Energies:
        start = {
            handles[node]: energy
            for node, energy in seed(self._question.hits, self._question.used, self._params).items()
            if handles[node] >= 0
        }
        self._stop_if_late()
        self._spread = self._spread_from(start) if self._params.spread_weight else None
        self._stop_if_late()
        if self._params.cue_weight:
            self._cues = self._cue()
        self._stop_if_late()
        return energize(self._spread, self._cues, self._graph.factors, self._params)

    def _spread_from(self, start: Mapping[int, float]) -> Spread | None:
        if not start:
            return None
        seeds, energies = np.fromiter(start, np.int64), np.fromiter(start.values(), float)
        return spread(seeds, energies, self._graph, self._params)

    def _cue(self) -> list[tuple[Cue, Uses]]:
        terms = query_terms(self._question.words)
        cues = []
        for postings in self._reader.postings(tuple(terms)) if terms else []:
            found = similar(terms, postings, self._params)
            uses = self._reader.uses(found.episode)
            cues.append((cue(found, uses, self._params, self._used), uses))
        return cues

    def _absent(
        self, energies: Energies, present: set[int], worths: Sequence[float]
    ) -> list[Absent]:
        """The best nodes that are neither hits nor used in this run nor gone, ties included."""
        is_absent = ~np.isin(energies.node, np.fromiter(present, np.int64, len(present)))
        if self._params.fusion == "ranks" and len(worths) > 1:
            is_absent &= self._params.boost * energies.energy > min(worths[1:]) - 1e-9
        if worths and self._params.cue_weight:
            is_absent &= (energies.confidence == 1.0) | self._follows(energies.node)
        node, energy = energies.node[is_absent], energies.energy[is_absent]
        order = np.argsort(-energy, kind="stable")
        found: list[Absent] = []
        for start in range(0, len(order), 64):
            rows = order[start : start + 64]
            if len(found) >= self._params.candidates and energy[rows[0]] < found[-1].energy:
                break
            is_there = np.isnan(self._reader.counters(node[rows])["gone_at"]).all(axis=0)
            rows = rows[is_there]
            for name, value in zip(
                self._reader.ids(node[rows]), energy[rows].tolist(), strict=True
            ):
                found.append(Absent(name, value, boosted(value, self._params)))
        found.sort(key=lambda one: (-one.energy, one.id))
        return found[: self._params.candidates]

    def _follows(self, nodes: Ints) -> Bools:
        """Which of the nodes were used together with one that this run has used already."""
        arrived = self._spread.hops[:1] if self._spread is not None else ()
        reached = [hop.node[np.isin(hop.sender, self._used)] for hop in arrived]
        return np.isin(nodes, np.concatenate([np.zeros(0, np.int64), *reached]))

    def _carriers(self, energies: Energies) -> Carriers:
        return Carriers(
            self._reader,
            tuple(self._namespaces),
            self._graph.factors,
            self._spread,
            self._cues,
            dict(zip(energies.node.tolist(), energies.confidence.tolist(), strict=True)),
            self._params,
            self._question.now,
        )

    def _stop_if_late(self) -> None:
        if self._is_late():
            raise TimeLimitError(self._params.time_limit)
