import json
import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synapse_retrievers.events.needle import found, needle, needles, occurs

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=300)


def _prose(seed, length=160):
    words = random.Random(seed)
    return " ".join(f"w{words.randrange(9_999)}" for _ in range(length))


@given(ANY_TEXT, st.text(max_size=40), st.text(max_size=40))
def test_a_given_text_is_recognized(text, before, after):
    recognized = occurs(needle(text), f"{before}\n{text}\n{after}")
    assert recognized == bool(needle(text))


@given(ANY_TEXT, ANY_TEXT)
def test_no_text_fails(text, prompt):
    assert found(prompt, needles([text, prompt, ""]))[2] is False


@pytest.mark.parametrize("empty", ["", "   \n\t ", "\u00a0"])
def test_an_empty_text_is_never_recognized(empty):
    assert not occurs(needle(empty), "")
    assert not occurs(needle(empty), f"some {empty} prompt")


def test_white_space_does_not_matter():
    text = _prose(1)
    assert occurs(needle(text), text.replace(" ", "\n    "))


@pytest.mark.parametrize("text", [
    'line one\nsaid "yes" in C:\\new\\table and\tthen ' + _prose(2, 40),
    "密钥每周轮换一次，令牌在一小时后过期。" * 10 + "结束",
    "emoji 😀 and accents é ß " + _prose(3, 40),
])  # fmt: skip
@pytest.mark.parametrize("escapes", [0, 1, 2, 3])
def test_json_escapes_do_not_matter(text, escapes):
    prompt = text
    for _ in range(escapes):
        prompt = json.dumps({"content": prompt})
    assert occurs(needle(text), prompt)
    assert occurs(needle(text), json.dumps({"content": prompt}, ensure_ascii=False))


def test_repr_escapes_do_not_matter():
    text = "first line\nisn't\u00a0it " + _prose(4, 40)
    assert occurs(needle(text), repr([text]))


def test_a_shared_header_recognizes_nothing():
    texts = [f"# Handbook\n\nAll rights reserved. {'Preface. ' * 20}{_prose(i)}" for i in range(3)]
    assert found(texts[1], needles(texts)) == [False, True, False]


def test_a_small_difference_in_a_long_text_is_seen():
    start, end = _prose(5, 20), _prose(6)
    texts = [f"{start} the port is {port} {end}" for port in (80, 443)]
    assert found(texts[1], needles(texts)) == [False, True]


def test_equal_texts_are_recognized_together():
    text, other = _prose(7), _prose(8)
    assert found(f"a {text} b", needles([text, other, text])) == [True, False, True]


def test_overlapping_neighbors_do_not_bring_in_the_window_between_them():
    text = _prose(9, 400)
    windows = [text[0:1000], text[800:1800], text[1600:2600]]
    alone = [needle(window) for window in windows]
    assert found(f"{windows[0]}\n\n{windows[2]}", needles(windows)) == [True, False, True]
    assert found(f"{windows[0]}\n\n{windows[2]}", alone) == [True, False, True]


def test_a_text_cut_off_behind_its_middle_is_recognized():
    text = _prose(10)
    assert occurs(needle(text), text[: len(text) * 2 // 3])
    assert not occurs(needle(text), text[: len(text) // 3])


def test_a_short_text_stands_between_words():
    assert occurs(needle("port 80"), "Use: port 80.")
    assert not occurs(needle("port 80"), "Use port 8080")
    assert not occurs(needle("port 80"), "Use airport 80")
    assert occurs(needle("缓存"), "使用缓存数据")
    assert occurs(needle("Redis"), "使用Redis缓存")


def test_a_rewritten_text_is_missed():
    text = "The client opens the circuit breaker after five failures in a row and waits a minute."
    assert not occurs(needle(text), "After five failures the breaker opens for a minute.")


def test_64_chunks_and_a_prompt_of_30_kb_take_milliseconds():
    texts = ["# Handbook\n\n" + _prose(i) for i in range(64)]
    prompt, known = "\n\n".join(texts[:30]), needles(texts)
    started = time.perf_counter()
    assert sum(found(prompt, known)) == 30
    assert time.perf_counter() - started < 0.1


@pytest.mark.parametrize("unit", ["\\", "\\u12", "\\u0061", " ", "a", "汉", "\\n"])
def test_long_garbage_takes_no_more_than_seconds(unit):
    text = unit * (1_000_000 // len(unit))
    started = time.perf_counter()
    found(text, needles([text, text + "x", text[:100]]))
    assert time.perf_counter() - started < 10
