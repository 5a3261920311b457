"""A whole recall against the design said slowly in plain floats, and its promises."""

import itertools
import math
from collections import Counter, defaultdict
from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synapse_retrievers import Hit, LearningParams, RecallParams, Synapse, Use
from synapse_retrievers.errors import StoreError, TimeLimitError
from synapse_retrievers.params import DAY
from synapse_retrievers.planning import Question, plan
from synapse_retrievers.recall.plan import cold
from synapse_retrievers.stores.memory import MemoryStore
from synapse_retrievers.stores.sqlite import SQLiteStore

NOW = 1_700_000_000.0
IDS = [f"n{number}" for number in range(12)]
WORDS = ["alpha", "beta", "gamma", "delta", "epsilon"]
KERNELS = ["conditional", "hub", "paper"]
FUSIONS = ["ranks", "scores"]
FACTORS = {"personal": 1.0, "shared": 0.5}


def joined(values, kernel):
    if kernel == "paper":
        return sum(values)
    left = 1.0
    for value in values:
        left *= 1.0 - value
    return 1.0 - left


class Slow:
    """Everything that a recall needs, read through the store's listings and summed by hand."""

    def __init__(self, store, now, params):
        self.now, self.params = now, params
        self.edges = [edge for edge in store.edges() if edge.namespace in FACTORS]
        self.episodes = [one for one in store.episodes() if one.namespace in FACTORS]
        self.used = {
            (node.namespace, node.id): self.counted(node.used, node.used_at)
            for node in store.nodes()
        }
        self.around = defaultdict(set)
        for edge in self.edges:
            a, b = edge.pair
            self.around[a].add(b)
            self.around[b].add(a)

    def counted(self, count, at):
        return count * 2 ** (-max(0.0, self.now - at) / DAY / 365)

    def weight(self, edge):
        idle = max(0.0, self.now - edge.activated_at) / DAY
        start = 60 if edge.namespace == "shared" else 30
        rho = math.log(1 + edge.activations / 10)
        sure = 2 ** (-idle / start)
        half = (1 - sure) * start + sure * (3 + 117 * rho / (1 + rho))
        half = max(min(120.0, max(3.0, half)), 60.0 if edge.namespace == "shared" else 0.0)
        left = edge.weight * 2 ** (-idle / half)
        return max(left, min(edge.weight, 0.2)) if edge.activations >= 5 else left

    def hub(self, node):
        degree = len(self.around[node])
        return math.sqrt(self.params.hub_degree / max(degree, self.params.hub_degree))

    def seeds(self, hits, used):
        seeds = {}
        count = 5 if self.params.kernel == "conditional" else 3
        for place, node in enumerate(hits):
            if node is not None and node not in seeds and len(seeds) < count:
                graded = self.params.kernel == "conditional"
                seeds[node] = 1 - place / len(hits) if graded else 1.0
        return seeds | dict.fromkeys(used, 1.0)

    def conditional(self, seeds, namespace):
        arrived = defaultdict(list)
        for edge in self.edges:
            for u, v in (edge.pair, edge.pair[::-1]):
                if edge.namespace == namespace and u in seeds and v not in seeds:
                    co = self.counted(edge.co, edge.activated_at)
                    p = co / (self.used[namespace, u] + 2)
                    arrived[v].append(seeds[u] * self.hub(u) * p)
        return {v: joined(values, "hub") * self.hub(v) for v, values in arrived.items()}

    def relayed(self, seeds):
        kernel, merged = self.params.kernel, defaultdict(float)
        for edge in self.edges:
            for pair in (edge.pair, edge.pair[::-1]):
                merged[pair] += FACTORS[edge.namespace] * self.weight(edge)
        senders, sent, received = dict(seeds), set(seeds), defaultdict(list)
        for _ in range(2):
            arrived = defaultdict(list)
            for (u, v), weight in merged.items():
                if u in senders and v not in seeds:
                    arrived[v].append(senders[u] * min(1.0, weight) * 0.6 * self.hub(u))
            hop = {v: joined(values, kernel) for v, values in arrived.items()}
            for v, energy in hop.items():
                received[v].append(energy)
            senders = {v: energy for v, energy in hop.items() if v not in sent and energy > 0}
            sent |= set(senders)
        read_out = self.hub if kernel == "hub" else lambda _: 1.0
        return {v: joined(values, kernel) * read_out(v) for v, values in received.items()}

    def cue(self, words, namespace):
        episodes = [one for one in self.episodes if one.namespace == namespace]
        texts = [Counter(one.query.split()) for one in episodes]
        asked, ranked = {}, []
        for word, count in Counter(words).items():
            df = sum(word in text for text in texts)
            idf = math.log((1 + len(texts)) / (1 + df)) + 1
            asked[word] = (1 + math.log(count)) * idf**2
        norm = math.sqrt(sum(weight**2 for weight in asked.values()))
        for one, text in zip(episodes, texts, strict=True):
            lengths = math.sqrt(sum((1 + math.log(n)) ** 2 for n in text.values())) * norm
            dot = sum(w * (1 + math.log(text[word])) for word, w in asked.items() if word in text)
            sim = round(dot / lengths, 12) if lengths else 0.0
            if sim >= 0.05:
                ranked.append((-sim, -one.renewed_at, one.query, one))
        speaking = sorted(ranked, key=lambda row: row[:3])[:20]
        gains, support = Counter(), Counter()
        for sim, _, _, one in speaking:
            for node, use in one.used.items():
                sure = (-sim) ** 2 * min(1.0, use.strength / 0.4)
                gains[node] += sure / math.sqrt(len(one.used))
                support[node] += sure
        return sum((-sim) ** 2 for sim, *_ in speaking), gains, support

    def confidence(self, query):
        """Node -> how far the similarity of past questions reaches 0.33."""
        total = Counter()
        for namespace, factor in FACTORS.items():
            for node, sure in self.cue(query.split(), namespace)[2].items():
                total[node] += factor * sure
        return {node: min(1.0, round(sure**0.5 / 0.33, 12)) for node, sure in total.items()}

    def may_come_in(self, query, used):
        """The nodes that past questions support, or that were used with what the run used."""
        known = {node for node, sure in self.confidence(query).items() if sure == 1.0}
        return known | {v for u in used for v in self.around[u]}

    def energies(self, query, hits, used):
        params, seeds, total = self.params, self.seeds(hits, used), Counter()
        most = math.inf if params.kernel == "paper" else 1.0
        sure = self.confidence(query)
        for namespace, factor in FACTORS.items():
            own = Counter()
            if params.cue_weight:
                weight, gains, _ = self.cue(query.split(), namespace)
                for node, gain in gains.items():
                    own[node] += sure[node] * params.cue_weight * gain / (weight + 0.2)
            if params.kernel == "conditional":
                for node, energy in self.conditional(seeds, namespace).items():
                    own[node] += params.spread_weight * energy
            for node, energy in own.items():
                total[node] += factor * min(most, energy)
        if params.kernel != "conditional":
            for node, energy in self.relayed(seeds).items():
                total[node] += min(most, params.spread_weight * energy)
        return {v: e for v, e in ((v, round(min(most, e), 12)) for v, e in total.items()) if e > 0}

    def recalled(self, query, hits, scores, energies, used, dead):
        params, count = self.params, len(hits)
        fit = self.may_come_in(query, used) if params.cue_weight else energies
        if not any(v in hits or (v in fit and v not in used) for v in energies):
            return hits
        bases = [1 - place / (2 * count) for place in range(count)]
        if params.fusion == "scores":
            bases = [1 - place / count for place in range(count)]
            if all(score is not None and math.isfinite(score) for score in scores):
                bases = [float(score) for score in scores]
        worths = [
            round(base + round(params.boost * energies.get(node, 0.0), 12), 12)
            for node, base in zip(hits, bases, strict=True)
        ]
        absent = sorted(
            (-energy, node)
            for node, energy in energies.items()
            if node not in {*hits, *used} and node in fit and energy >= params.displace_from
        )
        worth = {node: round(params.boost * -energy, 12) for energy, node in absent}
        if params.fusion == "ranks":
            absent = [row for row in absent if count > 1 and worth[row[1]] > min(worths[1:])]
        best = [node for _, node in absent[: params.candidates] if node not in dead]
        kept = sorted(range(count), key=lambda place: (-worths[place], place))
        if params.fusion == "scores":
            coming = best[: min(2, max(0, count - 1))]
            return [hits[place] for place in kept[: count - len(coming)]] + coming
        coming = []
        while len(coming) < min(2, count // 2, len(best)):
            weakest = min((p for p in kept if p), key=lambda place: (worths[place], -place))
            if worth[best[len(coming)]] <= worths[weakest]:
                break
            kept.remove(weakest)
            coming.append(best[len(coming)])
        rows = [(-worths[place], 0, place, "", hits[place]) for place in kept]
        rows += [(-worth[node], 1, 0, node, node) for node in coming]
        return [node for *_, node in sorted(rows, key=lambda row: row[:4])]


def taught(lessons, store=None):
    """A memory that learned (namespace, words, ids, strength, days ago) in this order."""
    moment = [NOW]
    synapse = Synapse(store or MemoryStore(), clock=lambda: moment[0])
    for namespace, words, ids, strength, days in lessons:
        moment[0] = NOW - days * DAY
        query = " ".join(words) if words else None
        synapse.reinforce(ids, query, strength, namespace=namespace)
    moment[0] = NOW
    return synapse


def as_memory(store, params, now=NOW, **options):
    return Synapse(store, recall=params, clock=lambda: now, **options)


def anything(ids):
    return {node: f"text of {node}" for node in ids}


some_ids = st.lists(st.sampled_from(IDS), min_size=1, max_size=4, unique=True)
some_words = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4)
lessons = st.lists(
    st.tuples(
        st.sampled_from(["personal", "shared", "acme"]),
        some_words | st.none(),
        some_ids,
        st.sampled_from([0.1, 0.4, 1.0, 2.0]),
        st.integers(-3, 400),
    ),
    max_size=10,
)
scores = st.one_of(
    st.none(),
    st.floats(),
    st.floats(-1, 1),
    st.integers(-5, 5),
    st.floats(-1, 1).map(np.float64),
    st.floats(-1, 1, width=32).map(np.float32),
)
hit_lists = st.lists(
    st.builds(Hit, st.none() | st.sampled_from([*IDS, "cold1", "cold2"]), scores), max_size=50
)
unique_hits = st.lists(
    st.builds(Hit, st.sampled_from([*IDS, "cold1", "cold2"]), st.floats(-1, 1)),
    max_size=12,
    unique_by=lambda hit: hit.id,
)
queries = some_words.map(" ".join)


@st.composite
def settings_of_recall(draw):
    kernel, fusion = draw(st.sampled_from(KERNELS)), draw(st.sampled_from(FUSIONS))
    return RecallParams(
        kernel=kernel,
        fusion=fusion,
        hub_degree=draw(st.sampled_from([2, 50])),
        displace_from=draw(st.sampled_from([0.0, 0.15])),
        cue_weight=draw(st.sampled_from([0.0, 3.0])),
        boost=draw(st.sampled_from([0.3, 2.0])),
    )


@settings(max_examples=80)
@given(
    lessons,
    queries,
    unique_hits,
    st.lists(st.sampled_from(IDS), max_size=2, unique=True),
    st.sets(st.sampled_from(IDS), max_size=3),
    settings_of_recall(),
)
def test_a_recall_is_as_said_slowly(rows, query, hits, used, dead, params):
    store = taught(rows).store
    slow = Slow(store, NOW, params)
    ids = [hit.id for hit in hits]
    energies = slow.energies(query, ids, used)
    memory = as_memory(store, params)
    found = {node.node: node.energy for node in memory.explain(query, [*hits]).reached}
    if not used:
        for node, energy in found.items():
            assert energy == pytest.approx(energies[node], abs=1e-9)
        assert {node for node in energies if node in ids} <= found.keys()

    def fetch(wanted):
        return {node: node for node in wanted if node not in dead}

    recalled = memory.recall(query, hits, fetch, used=used)
    scores = [hit.score for hit in hits]
    expected = slow.recalled(query, ids, scores, energies, used, dead)
    assert [hit.id for hit in recalled.hits] == expected


@given(lessons, queries, hit_lists, st.data(), settings_of_recall())
def test_the_count_stays_and_no_node_is_there_twice_because_of_us(rows, query, hits, data, params):
    memory = as_memory(taught(rows).store, params)
    asked = []

    def fetch(wanted):
        asked.append(list(wanted))
        values = st.none() | st.just("text")
        found = {node: data.draw(values) for node in wanted if data.draw(st.booleans())}
        return found | {"never asked for": "text"}

    before = list(hits)
    used = data.draw(st.lists(st.sampled_from(IDS), max_size=2))
    recalled = memory.recall(query, hits, fetch, used=used)
    ids, old = Counter(hit.id for hit in recalled.hits), Counter(hit.id for hit in hits)
    assert hits == before
    assert len(recalled.hits) == len(recalled.places) == len(hits)
    assert all(count <= (old[node] or 1) for node, count in ids.items())
    assert "never asked for" not in ids
    assert not (ids.keys() - old.keys()) & set(used)
    assert ids.keys() - old.keys() == recalled.fetched.keys()
    assert len(asked) <= 1
    assert all(len(wanted) == len(set(wanted)) <= 8 for wanted in asked)
    kept = [place.hit for place in recalled.places if place.hit is not None]
    for place, hit in zip(recalled.places, recalled.hits, strict=True):
        assert hit is hits[place.hit] if place.hit is not None else hit.id == place.entered
    if params.fusion == "ranks" and hits:
        assert 0 in kept
        assert len(hits) - len(kept) <= min(2, len(hits) // 2)


@given(lessons, queries, hit_lists, st.sampled_from(["conditional", "hub"]))
def test_energy_is_bounded(rows, query, hits, kernel):
    memory = as_memory(taught(rows).store, RecallParams(kernel=kernel, candidates=64))
    energies = [node.energy for node in memory.explain(query, hits).reached]
    assert all(0.0 < energy <= 1.0 for energy in energies)


@given(hit_lists, queries, settings_of_recall())
def test_a_memory_without_anything_changes_nothing(hits, query, params):
    recalled = as_memory(MemoryStore(), params).recall(query, hits, anything)
    assert recalled.hits is hits
    assert recalled.trace.is_cold
    assert not recalled.trace.moves


@given(lessons, hit_lists, settings_of_recall())
def test_what_energy_does_not_reach_changes_nothing(rows, hits, params):
    store = taught([row for row in rows if row[0] == "acme"]).store
    recalled = as_memory(store, params).recall("alpha", hits, anything)
    assert recalled.hits is hits
    assert recalled.trace.is_cold


class Broken(MemoryStore):
    """A store that fails at every read."""

    @contextmanager
    def reading(self, namespaces):
        raise StoreError("broken")
        yield


WARM = [("personal", ["alpha"], ["n0", "n1", "n2"], 1.0, 0)]
HITS = [Hit("n0"), Hit("c1"), Hit("c2"), Hit("n1")]


def test_the_memory_of_the_next_tests_moves_something():
    memory = taught(WARM)
    assert memory.recall("alpha", HITS, anything).hits is not HITS


@pytest.mark.parametrize("why", ["disabled", "failing", "late", "no namespace", "environment"])
@given(hits=hit_lists)
@settings(max_examples=20)
def test_switched_off_failing_or_late_it_is_the_very_list(why, hits):
    store = taught(WARM).store
    if why == "disabled":
        memory = as_memory(store, RecallParams(), enabled=False)
    elif why == "failing":
        memory = as_memory(Broken(), RecallParams(), must_open=False)
    elif why == "late":
        memory = as_memory(store, RecallParams(), monotonic=itertools.count().__next__)
    elif why == "no namespace":
        memory = as_memory(store, RecallParams(), namespace=None)
    else:
        memory = as_memory(store, RecallParams())
    with pytest.MonkeyPatch.context() as patch:
        if why == "environment":
            patch.setenv("SYNAPSE_RETRIEVERS_DISABLED", " Yes ")
        recalled = memory.recall("alpha", hits, anything)
    assert recalled.hits is hits
    assert recalled.arrange(objects := list(hits)) is objects
    assert recalled.trace.is_cold
    assert recalled.trace.reason


def question(hits=HITS, query="alpha"):
    return Question(query, query.split(), hits, (), "personal", NOW)


@pytest.mark.parametrize("calls", range(3))
def test_the_time_limit_is_looked_at_before_and_after_the_spread_and_after_the_cue(calls):
    asked = []

    def is_late():
        asked.append(None)
        return len(asked) > calls

    store = taught(WARM).store
    with pytest.raises(TimeLimitError):
        plan(store, question(), RecallParams(), LearningParams(), is_late)


@pytest.mark.parametrize("kernel", ["hub", "paper"])
def test_the_time_limit_is_looked_at_between_hops(kernel):
    class Counting(MemoryStore):
        asked = 0

        @contextmanager
        def reading(self, namespaces):
            with super().reading(namespaces) as reader:
                neighbors = reader.neighbors

                def counted(handles):
                    self.asked += 1
                    return neighbors(handles)

                reader.neighbors = counted
                yield reader

    chain = [("personal", None, ["n0", "n1"], 1.0, 0), ("personal", None, ["n1", "n2"], 1.0, 0)]
    store = taught(chain, Counting()).store
    store.asked = 0
    params = RecallParams(kernel=kernel, hops=2)
    with pytest.raises(TimeLimitError):
        plan(store, question([Hit("n0")]), params, LearningParams(), lambda: store.asked > 0)
    assert store.asked == 1


@given(lessons, queries, hit_lists, settings_of_recall())
@settings(max_examples=30)
def test_the_same_state_query_and_clock_give_the_same(rows, query, hits, params):
    store = taught(rows).store
    first = as_memory(store, params).recall(query, hits, anything)
    second = as_memory(store, params).recall(query, hits, anything)
    assert [hit.id for hit in first.hits] == [hit.id for hit in second.hits]
    assert repr(first.trace) == repr(second.trace)


at_once = st.lists(
    st.tuples(
        st.sampled_from(["personal", "shared"]), some_words, some_ids, st.sampled_from([0.4, 1.0])
    ),
    max_size=8,
).map(lambda rows: [(s, [*w, f"own{n}"], i, x, 2) for n, (s, w, i, x) in enumerate(rows)])


@given(at_once, queries, unique_hits, settings_of_recall(), st.randoms())
def test_the_order_of_lessons_and_of_node_numbers_does_not_matter(
    rows, query, hits, params, random
):
    first = as_memory(taught(rows).store, params)
    random.shuffle(rows)
    other = MemoryStore()
    Synapse(other, clock=lambda: NOW).reinforce(random.sample(IDS, 12), namespace="acme")
    again = taught([(s, w, i[::-1], x, d) for s, w, i, x, d in rows], other)
    second = as_memory(again.store, params)
    found = [memory.recall(query, hits, anything) for memory in (first, second)]
    assert [h.id for h in found[0].hits] == [h.id for h in found[1].hits]
    energies = [{r.node: r.energy for r in one.trace.reached} for one in found]
    assert energies[0] == pytest.approx(energies[1], abs=1e-9)


@given(at_once, queries, unique_hits, settings_of_recall(), st.randoms())
@settings(max_examples=20)
def test_sqlite_and_memory_give_the_same_order_and_energies(
    tmp_path_factory, rows, query, hits, params, random
):
    memory = as_memory(taught(rows).store, params)
    random.shuffle(rows)
    store = SQLiteStore(tmp_path_factory.mktemp("same") / "s.db")
    try:
        lite = as_memory(taught(rows, store).store, params)
        found = [one.recall(query, hits, anything) for one in (memory, lite)]
    finally:
        store.close()
    assert [h.id for h in found[0].hits] == [h.id for h in found[1].hits]
    energies = [{r.node: r.energy for r in one.trace.reached} for one in found]
    assert energies[0] == pytest.approx(energies[1], abs=1e-9)


@given(lessons, st.lists(st.floats(-1e9, 4e9), min_size=1, max_size=6), st.floats(-1e9, 4e9))
def test_weights_are_a_pure_function_of_the_clock_whatever_was_read_or_pruned(rows, jumps, now):
    def weights(synapse):
        return {
            (node, one.node): (one.weight, one.probability)
            for node in IDS
            for one in synapse.neighbors(node)
        }

    quiet, busy = (taught(rows).store for _ in range(2))
    for moment in jumps:
        memory = as_memory(busy, RecallParams(), moment)
        memory.recall("alpha", [Hit(node) for node in IDS[:4]])
        memory.prune()
    stored = {(edge.namespace, edge.pair): edge for edge in quiet.edges()}
    for edge in busy.edges():
        assert stored[edge.namespace, edge.pair] == edge
    expected = weights(as_memory(quiet, RecallParams(), now))
    for pair, found in weights(as_memory(busy, RecallParams(), now)).items():
        assert found[0] == expected[pair][0]


def test_a_dead_filtered_or_none_candidate_is_skipped_and_the_next_is_tried():
    memory = taught([("personal", ["alpha"], ["n0", "n3", "n4", "n5"], 1.0, 0)])
    hits = [Hit("n0"), Hit("c1"), Hit("c2"), Hit("c3")]
    asked = []

    def fetch(wanted):
        asked.extend(wanted)
        return {"n3": None, "n5": "text"}

    recalled = memory.recall("alpha", hits, fetch)
    assert asked == ["n3", "n4", "n5"]
    assert [hit.id for hit in recalled.hits if hit.id not in {"n0", "c1", "c2"}] == ["n5"]


@pytest.mark.parametrize("error", [RuntimeError, StoreError, KeyError, TimeoutError])
def test_a_failing_fetch_lets_nothing_in_but_the_order_still_changes(error):
    def fetch(wanted):
        raise error("away")

    recalled = taught(WARM).recall("alpha", HITS, fetch)
    assert Counter(hit.id for hit in recalled.hits) == Counter(hit.id for hit in HITS)
    assert [hit.id for hit in recalled.hits] == ["n0", "n1", "c1", "c2"]


def test_what_interrupts_is_not_swallowed():
    def fetch(wanted):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        taught(WARM).recall("alpha", HITS, fetch)


def test_without_a_way_to_fetch_nothing_comes_in():
    recalled = taught(WARM).recall("alpha", HITS)
    assert not recalled.trace.displaced_in


def test_a_node_marked_gone_is_no_candidate_and_seen_again_is_one():
    memory = taught(WARM)
    memory.mark_gone(["n2"], "personal")
    assert "n2" not in {node.id for node in memory.plan("alpha", HITS).wanted}
    memory.recall("alpha", [Hit("n2"), Hit("c1")])
    assert "n2" in {node.id for node in memory.plan("alpha", HITS).wanted}


def test_a_node_that_only_shared_knows_can_be_marked_gone_too():
    memory = taught([("shared", ["alpha"], ["n0", "n1", "n2"], 1.0, 0)])
    assert "n2" in {node.id for node in memory.plan("alpha", HITS).wanted}
    memory.mark_gone(["n2"], "personal")
    assert "n2" not in {node.id for node in memory.plan("alpha", HITS).wanted}


def test_arrange_gives_the_very_objects_in_the_new_order():
    memory, objects = taught(WARM), [object() for _ in HITS]
    text = object()
    recalled = memory.recall("alpha", HITS, lambda ids: dict.fromkeys(ids, text))
    arranged = recalled.arrange(objects)
    for place, found in zip(recalled.places, arranged, strict=True):
        assert found is (text if place.hit is None else objects[place.hit])


def test_in_shadow_nothing_moves_and_the_trace_says_what_would():
    store = taught(WARM).store
    recalled = as_memory(store, RecallParams(), inject=False).recall("alpha", HITS, anything)
    assert recalled.hits is HITS
    assert recalled.trace.reason == "shadow mode"
    assert (
        recalled.trace.moves
        == as_memory(store, RecallParams()).recall("alpha", HITS, anything).trace.moves
    )


def test_the_chunk_of_the_strongest_episode_is_known_though_edges_gave_more():
    moment = [NOW]
    memory = Synapse(MemoryStore(), clock=lambda: moment[0])
    for seed in ("n0", "n1", "n2"):
        for _ in range(9):
            memory.reinforce([seed, "doc"])
    for word in ("one", "two", "three"):
        memory.reinforce(["doc"], f"alpha beta {word}")
    run = memory.run("alpha")
    with run as active:
        memory.learn(active.run, {"doc": Use(0.05, "doc#7")})
    hits = [Hit("n0"), Hit("n1"), Hit("n2"), Hit("c1")]
    planned = memory.plan("alpha beta one", hits)
    assert [node.id for node in planned.wanted] == ["doc"]
    assert dict(planned.chunks) == {"doc": "doc#7"}


def test_a_single_weak_pair_does_not_overtake_the_first_hit():
    memory = taught([("personal", None, ["n0", "n1"], 0.1, 0)])
    assert memory.recall("beta", HITS).hits[0].id == "n0"


def test_a_cold_plan_settles_to_the_same_list():
    hits = [Hit("a")]
    assert cold("q", hits, "personal").settle({"x": 1}).hits is hits


def test_an_accidental_pair_of_another_query_brings_nothing_in():
    memory = taught([("personal", ["zeta"], ["n0", "n2"], 1.0, 0)])
    recalled = memory.recall("alpha", [Hit("n0"), *(Hit(f"c{n}") for n in range(7))], anything)
    assert not recalled.trace.displaced_in


QUESTION = "rotate the signing keys of the gateway"
PAST = {
    "what do I do when the VPN profile is expired?": "vpn",
    "how do I request vacation days?": "vacation",
    "where can I find the expense form?": "expenses",
    "how do I reset my password?": "password",
    "what is the policy for remote work?": "remote",
    "who approves a new laptop?": "laptop",
    "how do I book a meeting room?": "room",
    "how can I get access to the build server?": "build",
    "when is the payroll processed?": "payroll",
    "what do I do when the printer is jammed?": "printer",
    "how do I rotate the api keys?": "keys",
    "is there a parking space for visitors?": "parking",
}


def asked(memory, query):
    """The one node that comes in."""
    told = memory.recall(query, [Hit(f"c{n}") for n in range(8)], anything)
    return [move.node for move in told.trace.displaced_in]


@pytest.mark.parametrize("lessons", [1, 3, 12])
def test_a_question_about_something_else_brings_nothing_in(lessons):
    memory = taught([("personal", q.split(), [node], 1.0, 0) for q, node in PAST.items()][:lessons])
    for other in (
        "what do I do with my bicycle?",
        "how do I cook rice?",
        "who is the president of France?",
    ):
        assert asked(memory, other) == []
        assert memory.explain(other).reached or lessons == 1, "it resembles one a little"


def test_the_same_question_in_other_words_brings_in_what_was_used():
    memory = taught([("personal", q.split(), [node], 1.0, 0) for q, node in PAST.items()])
    for query, node in {
        "my vpn profile expired, what now?": "vpn",
        "how do we rotate api keys for the gateway?": "keys",
        "I forgot my password": "password",
        "expense report form": "expenses",
    }.items():
        assert asked(memory, query) == [node]


def test_edges_alone_bring_nothing_in_until_the_run_has_used_their_other_end():
    memory = taught([("personal", None, ["n0", "doc"], 1.0, 0)] * 30)
    hits = [Hit("n0"), *(Hit(f"c{n}") for n in range(7))]
    assert not memory.recall(QUESTION, hits, anything).trace.displaced_in
    (entered,) = memory.recall(QUESTION, hits, anything, used=["n0"]).trace.displaced_in
    assert entered.node == "doc"


def test_what_followed_another_used_node_does_not_follow_this_one():
    memory = taught([("personal", None, ["n0", "doc"], 1.0, 0)] * 30)
    memory.reinforce(["n1", "else"])
    hits = [Hit("n0"), *(Hit(f"c{n}") for n in range(7))]
    entered = memory.recall(QUESTION, hits, anything, used=["n1"]).trace.displaced_in
    assert [move.node for move in entered] == ["else"]


def test_where_no_episode_is_asked_edges_alone_decide():
    memory = taught([("personal", None, ["n0", "doc"], 1.0, 0)] * 30)
    hits = [Hit("n0"), *(Hit(f"c{n}") for n in range(7))]
    params = RecallParams(cue_weight=0.0, spread_weight=1.0)
    assert as_memory(memory.store, params).recall("x", hits, anything).trace.displaced_in
