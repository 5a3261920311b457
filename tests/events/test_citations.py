import time
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synapse_retrievers.events.citations import citations, cited_ids, numbering

THREE = {1: (0,), 2: (1,), 3: (2,)}
ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=200)
BRACKETS = st.text("[]()【】†123,-– source`=:\n^ab", max_size=80)


@pytest.mark.parametrize(
    ("answer", "cited"),
    [
        ("Keys rotate weekly [1].", {0}),
        ("Keys rotate weekly.[2]", {1}),
        ("Keys rotate [1, 3] and expire [2]", {0, 1, 2}),
        ("Keys rotate [1-3].", {0, 1, 2}),
        ("Keys rotate [1][3].", {0, 2}),
        ("It was founded in 1998[1][2].", {0, 1}),
        ("Keys rotate weekly【2】 and 【3†source】", {1, 2}),
        ("Keys rotate (source 2), tokens expire [Source 3].", {1, 2}),
        ("Both say so (see documents 1 and 3).", {0, 2}),
        ("They rotate [^2] weekly", {1}),
        ("密钥每周轮换[1]。", {0}),
        ("Sources: [1], [3]", {0, 2}),
    ],
)
def test_citations_are_found(answer, cited):
    assert citations(answer, THREE) == cited


@pytest.mark.parametrize(
    "answer",
    [
        "Take list[0] and a[1] as they are",
        "x = [1, 2, 3]",
        "f([1, 2]) returns them",
        "matrix[1][2] = 3",
        '{"ids": [1, 2]}',
        "return [1]",
        "see [1](https://example.com) for more",
        "[1]: https://example.com",
        "[^1]: A footnote",
        "`[1]` is a list, and so is\n```python\n[2]\n```",
        "a value in [0, 1]",
        "as of [2023]",
        "more in [7]",
        "References\n[1] Handbook, page 3\n[2] Guide",
        "",
    ],
)
def test_what_only_looks_like_a_citation_is_none(answer):
    assert citations(answer, THREE) == set()


def test_an_answer_that_opens_with_a_citation_is_missed():
    assert citations("[1] says that keys rotate", THREE) == set()  # as a reference list would


def test_an_index_that_ends_a_sentence_is_taken_for_a_citation():
    # "opened in 1998[1]." is so common that this is the lesser harm; code marks prevent it.
    assert citations("The first one is items[1].", THREE) == {0}
    assert citations("The first one is `items[1]`.", THREE) == set()


def test_where_the_prompt_numbers_nothing_a_number_cites_nothing():
    assert citations("Keys rotate [1].", numbering("Keys rotate.", ["Keys rotate."])) == set()


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("[1] Keys rotate.\n[2] Tokens expire.", {1: (0,), 2: (1,)}),
        ("[1] Tokens expire.\n[2] Keys rotate.", {1: (1,), 2: (0,)}),
        ("Source 1:\nKeys rotate.\n\nSource 2:\nTokens expire.", {1: (0,), 2: (1,)}),
        ("Document 4\nTitle: auth\nContent: Keys rotate.", {4: (0,)}),
        ("1. Keys rotate.\n2. Tokens expire.", {1: (0,), 2: (1,)}),
        ('<document index="2">\n<source>a.md</source>\n<content>\nKeys rotate.', {2: (0,)}),
        ("[1] auth.md\nKeys   rotate.\n---\n[2] ttl.md\nTokens expire.", {1: (0,), 2: (1,)}),
        ("1. Be brief.\n2. Use only this:\n\nKeys rotate.\n\nTokens expire.", {}),
        ("Keys rotate.\n\nTokens expire.", {}),
        ("[1] Keys rotate.\n[1] Tokens expire.", {}),
        ("", {}),
    ],
)
def test_the_numbering_is_read_off_the_prompt(prompt, expected):
    assert numbering(prompt, ["Keys rotate.", "Tokens expire.", ""]) == expected


def test_the_newest_turn_numbers_a_chunk():
    prompt = "[3] Keys rotate.\n\nAnd now?\n[1] Keys rotate."
    assert numbering(prompt, ["Keys rotate."]) == {1: (0,)}


def test_equal_texts_share_their_number():
    chunks = ["Keys rotate.", "Tokens expire.", "Keys rotate."]
    labels = numbering("[1] Keys rotate.\n[2] Tokens expire.", chunks)
    assert labels == {1: (0, 2), 2: (1,)}
    assert citations("They rotate [1].", labels) == {0, 2}


def test_an_overlapping_chunk_later_in_the_prompt_hides_no_label():
    first, second = f"{'Alpha. ' * 40}Keys rotate.", f"Keys rotate. {'Omega. ' * 40}"
    prompt = f"[1] {second}\n[2] {first} {second[:280]}"
    assert numbering(prompt, [first, second]) == {1: (1,), 2: (0,)}


def test_every_part_of_a_split_chunk_counts_for_the_chunk():
    first, second = (
        "Keys rotate every ninety days in the vault.",
        "The former key stays for a week.",
    )
    whole, other = f"{first} {second}", "Tokens are kept in a cluster of two regions."
    prompt = f"Source 1:\n{first}\n\nSource 2:\n{second}\n\nSource 3:\n{other}\n------\nQuery: how"
    numbered = numbering(prompt, [other, whole])
    assert numbered == {1: (1,), 2: (1,), 3: (0,)}
    assert citations("They stay a week [2].", numbered) == {1}


def test_what_a_chunk_numbers_itself_is_no_part_of_it():
    chunk = "Handbook of keys\n[1] Keys rotate every ninety days in the vault.\n[2] Tokens expire."
    assert numbering(f"Context:\n{chunk}\n", [chunk]) == {}


def test_a_part_that_two_chunks_share_counts_for_neither():
    shared = "Keys rotate every ninety days in the vault."
    prompt = f"Source 1:\n{shared}\n"
    assert numbering(prompt, [f"In the north: {shared}", f"In the south: {shared}"]) == {}
    assert numbering(prompt, [f"In the north: {shared}", f"Notes\n{prompt}"]) == {}


def test_a_number_that_two_searches_gave_means_nothing():
    prompt = "Search 1:\n[1] Keys rotate.\n[2] Locks hold.\n\nSearch 2:\n[1] Tokens expire."
    assert numbering(prompt, ["Keys rotate.", "Locks hold.", "Tokens expire."]) == {2: (1,)}


def test_ids_are_cited_literally():
    ids = ["auth-7", "doc", "2023", "intro", "src/a.py"]
    assert cited_ids("Keys rotate [auth-7; other], see `src/a.py`", ids) == {"auth-7", "src/a.py"}
    assert cited_ids("auth-7 [doc] [2023] `intro` auth-70 [auth-70]", ids) == set()
    assert cited_ids("It says so [intro]", ids) == {"intro"}


@given(ANY_TEXT | BRACKETS, BRACKETS)
def test_no_text_fails_and_only_given_positions_are_cited(answer, prompt):
    assert citations(answer, THREE) <= {0, 1, 2}
    assert cited_ids(answer, ["abcd"]) <= {"abcd"}
    assert set(chain(*numbering(prompt, [answer, "ab"]).values())) <= {0, 1}


@pytest.mark.parametrize("unit", ["[", "[1", "[1]", "[1,", "`", "(source ", "\nDoc 1", " ", "= "])
def test_long_garbage_takes_no_more_than_seconds(unit):
    text = unit * (300_000 // len(unit))
    started = time.perf_counter()
    citations(text, THREE)
    cited_ids(text, ["abcd"])
    numbering(text, [text[:100], "x"])
    assert time.perf_counter() - started < 10
