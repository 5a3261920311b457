"""The plain retrievers that an evaluation wraps, against sums by hand."""

import numpy as np
import pytest

from synapse_retrievers.evaluation.ranking import Corpus, ranked

TEXTS = ("the parser of dates", "the printer of dates", "a window with a menu", "the parser again")
SOURCES = ("dates.py", "dates.py", "window.py", "parser.py")
VECTORS = np.array([[1.0, 0.0], [0.8, 0.6], [0.0, 1.0], [0.6, 0.8]])
CORPUS = Corpus(SOURCES, VECTORS, TEXTS)


def places(query, vector, **how):
    (found,) = ranked(CORPUS, [query], np.array([vector]), **how)
    return found


def test_vectors_rank_chunks_by_cosine_and_tell_their_scores():
    found = places("q", [1.0, 0.0], k=3)
    assert found.nodes == ("dates.py", "dates.py", "parser.py")
    assert found.scores == pytest.approx((1.0, 0.8, 0.6))


def test_files_stand_once_each_at_the_place_of_their_best_chunk():
    assert places("q", [1.0, 0.0], unit="files").nodes == ("dates.py", "parser.py", "window.py")


def test_bm25_ranks_by_rare_words_and_reads_no_vector():
    assert places("menu of the window", [1.0, 0.0], base="bm25", k=1).nodes == ("window.py",)
    for nothing in ("never said", "???", ""):
        assert places(nothing, [0.0, 1.0], base="bm25", k=2).scores == (0.0, 0.0)


def test_both_are_joined_by_their_ranks():
    found = places("menu window", [1.0, 0.0], base="hybrid", k=4)
    # By vector: 0 1 3 2; by words: 2 0 1 3 (equal scores stay in order).
    by_hand = {0: 1 / 61 + 1 / 62, 1: 1 / 62 + 1 / 63, 2: 1 / 64 + 1 / 61, 3: 1 / 63 + 1 / 64}
    order = sorted(by_hand, key=lambda row: -by_hand[row])
    assert found.nodes == tuple(SOURCES[row] for row in order)
    assert found.scores == pytest.approx([by_hand[row] for row in order])


def test_fewer_chunks_than_places_are_all_there_are():
    assert len(places("q", [1.0, 0.0], k=50).nodes) == 4
    assert ranked(CORPUS, [], np.zeros((0, 2))) == []
