"""Energy from past episodes: lnc.ltc by brute force, ties, common terms, who speaks."""

import math
from collections import Counter
from dataclasses import dataclass
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from synapse_retrievers.params import RecallParams
from synapse_retrievers.recall import cue as cue_module
from synapse_retrievers.recall.cue import (
    confidence,
    cue,
    least_likeness,
    query_terms,
    similar,
)
from synapse_retrievers.recall.energy import tell
from synapse_retrievers.stores.memory import MemoryStore
from synapse_retrievers.types import Changes, Episode, Use

PERSONAL = "personal"
PLAIN = RecallParams(cue_power=1.0)
"""Episodes speak with their similarity itself: W is its sum."""


def vector(words):
    return {word: 1.0 + math.log(n) for word, n in Counter(words).items()}


def length(weights):
    return math.sqrt(sum(weight * weight for weight in weights.values()))


def cosine(query, text, texts, params):
    """SMART lnc.ltc of two lists of words, with N and df over `texts`."""
    asked = {}
    for word, weight in vector(query).items():
        df = sum(word in other for other in texts)
        is_common = len(texts) >= params.common_from and df > params.common_share * len(texts)
        idf = math.log((1 + len(texts)) / (1 + df)) + 1
        asked[word] = 0.0 if is_common else weight * idf**2
    known = vector(text)
    if length(asked) == 0 or length(known) == 0:
        return 0.0
    shared = sum(weight * known.get(word, 0.0) for word, weight in asked.items())
    return shared / (length(asked) * length(known))


def by_hand(query, episodes, params):
    """(W, node -> cue) of episodes (query text, words, node -> strength, renewed_at)."""
    texts = [words for _, words, _, _ in episodes]
    ranked = []
    for text, words, used, at in episodes:
        sim = round(cosine(query, words, texts, params), 12)
        if sim >= params.cue_floor and sim > 0:
            ranked.append((-sim, -at, text, used))
    speaking = sorted(ranked, key=lambda row: row[:3])[: params.cue_episodes]
    energy = Counter()
    for sim, _, _, used in speaking:
        for node, strength in used.items():
            share = min(1.0, strength / params.accepted_strength)
            energy[node] += (-sim) ** params.cue_power * share / math.sqrt(len(used))
    return sum((-sim) ** params.cue_power for sim, *_ in speaking), dict(energy)


def stored(episodes):
    store = MemoryStore()
    for text, words, used, at in episodes:
        weights = vector(words)
        terms = {word: weight / length(weights) for word, weight in weights.items()}
        uses = {node: Use(strength) for node, strength in used.items()}
        kept = Episode(PERSONAL, text, terms, uses, at)

        def rule(before, kept=kept):
            counters = before.counters.copy()
            counters["used"] = 1.0
            return Changes(counters=counters, episode=kept)

        store.update(PERSONAL, list(used), rule, query=text)
    return store


@dataclass
class Index:
    """One namespace's terms, and how much was read of them."""

    reader: object
    episodes: int
    document_frequency: list
    handle: list
    read: int = 0
    looked_up: int = 0

    @classmethod
    def of(cls, reader, terms):
        known = reader.terms(list(terms))
        if not known.episodes:
            return cls(reader, 0, [0] * len(terms), [-1] * len(terms))
        return cls(reader, known.episodes[0], known.document_frequency[0], known.handle[0])

    def postings(self, places):
        rows = self.reader.postings([self.handle[place] for place in places])
        self.read += len(rows.term)
        return rows

    def weights(self, episodes, places):
        self.looked_up += len(episodes)
        return self.reader.weights(episodes, [self.handle[place] for place in places])


def heard(query, episodes, params=None):
    """(cue, its support by node, its gains by node)"""
    params = params or RecallParams()
    terms = query_terms(query)
    with stored(episodes).reading([PERSONAL]) as reader:
        found = similar(terms, Index.of(reader, terms), params)
        spoken = cue(found, reader.uses(found.episode), params)
        told = tell([spoken], [1.0], params)
        gains = {
            node: sum(one.gain for one in said)
            for node, said in told.of(told.support, params).items()
        }
        name = dict(zip(told.support, reader.ids(np.array([*told.support], int)), strict=True))
    return (
        spoken,
        {name[node]: value for node, value in told.support.items()},
        {name[node]: value for node, value in gains.items()},
    )


def told(query, episodes, params=None):
    """(W, node -> cue, queries that speak) as the code sees it."""
    spoken, _, gains = heard(query, episodes, params)
    return spoken.weight, gains, [spoken.uses.query[one.row] for one in spoken.speakers]


def support(query, episodes, params=None):
    """Node -> support."""
    return heard(query, episodes, params)[1]


def test_the_worked_example():
    episodes = [
        ("rotate keys", ["rotate", "keys"], {"a": 1.0, "b": 0.2}, 1.0),
        ("load keys", ["load", "keys"], {"a": 0.6}, 2.0),
        ("log in", ["log", "in"], {"c": 1.0}, 3.0),
    ]
    # idf squared: rotate ln(4/2)+1, keys ln(4/3)+1, now (never seen) ln(4/1)+1
    rotate, keys, now = (math.log(2) + 1) ** 2, (math.log(4 / 3) + 1) ** 2, (math.log(4) + 1) ** 2
    norm = math.sqrt(rotate**2 + keys**2 + now**2)
    first, second = (rotate + keys) / (norm * math.sqrt(2)), keys / (norm * math.sqrt(2))
    weight, energy, speaks = told(["rotate", "keys", "now"], episodes)
    assert speaks == ["rotate keys", "load keys"]
    assert weight == pytest.approx(first**2 + second**2)
    assert energy["a"] == pytest.approx(first**2 / math.sqrt(2) + second**2)
    assert energy["b"] == pytest.approx(first**2 * 0.5 / math.sqrt(2))
    known = support(["rotate", "keys", "now"], episodes)
    assert known == pytest.approx({"a": first**2 + second**2, "b": first**2 * 0.5})
    assert "c" not in energy


def test_the_same_words_are_similar_by_one_where_no_idf_tells_them_apart():
    weight, energy, _ = told(["a", "b"], [("a b", ["a", "b"], {"x": 1.0}, 0.0)])
    assert (weight, energy["x"]) == (pytest.approx(1.0), pytest.approx(1.0))


def test_a_word_never_seen_lengthens_the_query():
    episodes = [("a", ["a"], {"x": 1.0}, 0.0)]
    seen, unseen = (math.log(2 / 2) + 1) ** 2, (math.log(2 / 1) + 1) ** 2
    weight, _, _ = told(["a", "never"], episodes, PLAIN)
    assert weight == pytest.approx(seen / math.hypot(seen, unseen))


def test_repeated_words_count_by_their_logarithm_on_both_sides():
    episodes = [("a a b", ["a", "a", "b"], {"x": 1.0}, 0.0)]
    twice = 1 + math.log(2)
    expected = (twice * twice + 1) / (math.hypot(twice, 1) ** 2)
    assert told(["a", "b", "a"], episodes, PLAIN)[0] == pytest.approx(expected)
    assert told(["a", "b"], episodes)[0] < 1.0


def test_many_weak_resemblances_do_not_outweigh_a_strong_one():
    strong = ("strong", ["a", "b"], {"right": 1.0}, 0.0)
    weak = [(n, ["a", "b", *(f"{n}{m}" for m in range(16))], {"wrong": 1.0}, 0.0) for n in "cdefgh"]
    _, energy, _ = told(["a", "b"], [strong, *weak])
    assert energy["right"] > energy["wrong"]
    _, plain, _ = told(["a", "b"], [strong, *weak], PLAIN)
    assert plain["right"] < plain["wrong"]


def test_a_node_comes_in_by_one_past_question_that_is_like_this_one_or_by_several_together():
    params = RecallParams(displace_similarity=0.5)
    sums = [0.0, 0.4999**2, 0.5**2, 0.4**2, 2 * 0.4**2]
    sure = [0.0, 0.4999 / 0.5, 1.0, 0.8, 1.0]
    assert [confidence(one, 0.5, params) for one in sums] == pytest.approx(sure)
    assert [confidence(one, 0.0, params) for one in sums] == [1.0] * 5
    assert least_likeness(10, RecallParams(displace_similarity=0.0)) == 0.0
    cubed = RecallParams(displace_similarity=0.5, cue_power=3.0)
    assert confidence(0.25**3, 0.5, cubed) == pytest.approx(0.5)


def test_the_more_episodes_there_are_the_liker_one_must_be():
    params = RecallParams(displace_similarity=0.4, crowd_from=100, crowd_growth=0.5)
    for episodes, least in ((1, 0.4), (100, 0.4), (1_000, 0.6), (10_000, 0.8), (10**9, 1.0)):
        asked = least_likeness(episodes, params)
        sums = [least**2 / 4, (least - 1e-9) ** 2, least**2]
        found = [confidence(one, asked, params) for one in sums]
        assert found == pytest.approx([0.5, 1.0, 1.0], abs=1e-6)
        assert [one == 1.0 for one in found] == [False, False, True]


def crowd(count, common):
    """`count` episodes; the first `common` of them hold the word "the"."""
    return [
        (f"q{n:03}", [f"w{n}", "the"] if n < common else [f"w{n}"], {f"n{n}": 1.0}, float(n))
        for n in range(count)
    ]


@pytest.mark.parametrize(
    ("count", "common", "speaks"),
    [(49, 49, True), (50, 10, True), (50, 11, False), (55, 11, True), (55, 12, False)],
)
def test_from_fifty_episodes_on_terms_in_more_than_a_fifth_of_them_say_nothing(
    count, common, speaks
):
    weight, _, _ = told(["the"], crowd(count, common))
    assert (weight > 0) is speaks


def test_a_common_term_does_not_lengthen_the_query():
    found, _, _ = told(["the", "w3"], crowd(60, 60), PLAIN)
    assert found == pytest.approx(1 / math.hypot(1, 1))


def test_of_equally_similar_episodes_the_newest_speak():
    episodes = [(f"q{n:02}", ["same"], {f"n{n}": 1.0}, float(n % 25)) for n in range(25)]
    _, _, speaks = told(["same"], episodes, RecallParams(cue_episodes=20))
    assert speaks == [f"q{n:02}" for n in range(24, 4, -1)]


def test_of_equally_new_ones_those_whose_query_comes_first():
    names = ["m", "b", "z", "a", "c"]
    episodes = [(name, ["same"], {name: 1.0}, 7.0) for name in names]
    _, _, speaks = told(["same"], episodes, RecallParams(cue_episodes=3))
    assert speaks == ["a", "b", "c"]


def test_below_the_floor_nothing_speaks():
    episodes = [("q", ["a", *(f"w{n}" for n in range(500))], {"x": 1.0}, 0.0)]
    assert 0 < cosine(["a"], episodes[0][1], [episodes[0][1]], RecallParams()) < 0.05
    assert told(["a"], episodes) == (0.0, {}, [])


def test_accepted_evidence_counts_whole_and_what_feedback_took_below_counts_less():
    for strength, share in ((2.0, 1.0), (1.0, 1.0), (0.4, 1.0), (0.2, 0.5), (0.1, 0.25)):
        _, energy, _ = told(["a"], [("a", ["a"], {"x": strength}, 0.0)])
        assert energy["x"] == pytest.approx(share)


def test_episodes_do_not_age():
    young = told(["a"], [("a", ["a"], {"x": 1.0}, 1e9)])
    assert young == told(["a"], [("a", ["a"], {"x": 1.0}, 0.0)])


words = st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=6)
episodes = st.lists(
    st.tuples(
        st.integers(0, 30).map(lambda n: f"q{n:02}"),
        words,
        st.dictionaries(st.sampled_from("uvwxyz"), st.floats(0.01, 2), min_size=1, max_size=4),
        st.integers(0, 4).map(float),
    ),
    max_size=30,
    unique_by=lambda row: row[0],
)


@given(
    words,
    episodes,
    st.sampled_from([1, 3, 20]),
    st.sampled_from([1, 5, 50]),
    st.sampled_from([1.0, 3.0]),
    st.randoms(),
)
def test_the_cue_is_as_by_brute_force_in_any_order_of_learning(
    query, rows, count, common_from, power, random
):
    params = RecallParams(cue_episodes=count, common_from=common_from, cue_power=power)
    weight, energy = by_hand(query, rows, params)
    random.shuffle(rows)
    found_weight, found, speaks = told(query, rows, params)
    assert len(speaks) <= count
    assert found_weight == pytest.approx(weight, abs=1e-9)
    assert found == pytest.approx(energy, abs=1e-9)


@given(words, episodes)
def test_similarity_lies_in_zero_to_one(query, rows):
    terms = query_terms(query)
    with stored(rows).reading([PERSONAL]) as reader:
        found = similar(terms, Index.of(reader, terms), RecallParams())
    assert np.all((found.similarity > 0) & (found.similarity <= 1))
    assert np.all(np.diff(found.similarity) <= 0)


def test_what_used_only_what_this_run_has_used_is_silent():
    params = RecallParams()
    episodes = [
        ("a b", ["a", "b"], {"x": 1.0}, 1.0),
        ("a c", ["a", "c"], {"x": 1.0, "y": 1.0}, 0.0),
    ]
    terms = query_terms(["a", "b"])
    with stored(episodes).reading([PERSONAL]) as reader:
        found = similar(terms, Index.of(reader, terms), params)
        uses = reader.uses(found.episode)
        once = cue(found, uses, params, set(reader.handles(["x"]).tolist()))
        assert [uses.query[one.row] for one in once.speakers] == ["a c"]
        assert len(cue(found, uses, params).speakers) == 2
        assert found.of == once.of == 2
        assert once.weight == pytest.approx(found.similarity[1] ** 2)


def skewed(count, seed):
    """Episodes whose words are drawn with chances of about 1 / rank."""
    random = Random(seed)
    ranks = [f"w{int(40 * random.random() ** 3)}" for _ in range(count * 5)]
    return [
        (f"q{n:04}", ranks[5 * n : 5 * n + 5], {f"n{n % 7}": 1.0}, float(n)) for n in range(count)
    ]


@pytest.mark.parametrize("at_once", [1, 7, 40, 10**6])
@pytest.mark.parametrize("lookup", [0, 1, 10**6])
@pytest.mark.parametrize("dense", [0, 16])
def test_stopping_early_finds_what_reading_everything_does(monkeypatch, at_once, lookup, dense):
    monkeypatch.setattr(cue_module, "_AT_ONCE", at_once)
    monkeypatch.setattr(cue_module, "_LOOKUP", lookup)
    monkeypatch.setattr(cue_module, "_DENSE", dense)
    episodes, stopped = skewed(300, seed=5), 0
    with stored(episodes).reading([PERSONAL]) as reader:
        for place, words in enumerate(skewed(40, seed=6)):
            params = RecallParams(cue_episodes=1 + place % 5)
            terms = query_terms(words[1] + ["w39", "never"][: place % 3])
            index = Index.of(reader, terms)
            found = similar(terms, index, params)
            monkeypatch.setattr(cue_module, "_AT_ONCE", 10**6)
            whole = similar(terms, Index.of(reader, terms), params)
            monkeypatch.setattr(cue_module, "_AT_ONCE", at_once)
            assert found.episode.tolist() == whole.episode.tolist()
            assert found.similarity.tolist() == pytest.approx(whole.similarity.tolist(), abs=1e-12)
            stopped += index.looked_up > 0
    assert (stopped > 0) is (at_once <= 40 and lookup < 2)
