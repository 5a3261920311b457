"""The chunk that shares most with the query."""

import math

from hypothesis import given
from hypothesis import strategies as st

from synapse_retrievers.recall.chunk import best_chunk


def by_hand(words, chunks):
    def shared(chunk):
        return sum(
            math.log((1 + len(chunks)) / (1 + sum(word in other for other in chunks))) + 1
            for word in sorted(set(words) & set(chunk))
        )

    sums = [round(shared(chunk), 12) for chunk in chunks]
    return sums.index(max(sums))


def test_what_all_chunks_hold_decides_less_than_what_one_holds():
    chunks = [["the", "of"], ["the", "token"], ["the"]]
    assert best_chunk(["the", "token"], chunks) == 1


def test_repeating_a_word_is_no_sharing_more():
    assert best_chunk(["a", "b"], [["a", "b"], ["a"] * 9]) == 0


def test_ties_and_nothing_shared_go_to_the_earlier_chunk():
    assert best_chunk(["a"], [["x"], ["a", "b"], ["a", "c"]]) == 1
    assert best_chunk([], [["x"], ["y"]]) == 0


words = st.lists(st.sampled_from("abcdef"), max_size=6)


@given(words, st.lists(words, min_size=1, max_size=64))
def test_the_chunk_is_as_by_hand(asked, chunks):
    assert best_chunk(asked, chunks) == by_hand(asked, chunks)
