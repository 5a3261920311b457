import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synapse_retrievers.tokens import tokens, words

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=300)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (" \n\t…!?", []),
        ("The pool, again", ["the", "pool", "again"]),
        ("verify_token", ["verify_token", "verify", "token"]),
        ("HTTPServer", ["httpserver", "http", "server"]),
        ("parseJSON2Dict", ["parsejson2dict", "parse", "json2", "dict"]),
        ("APIs and PDFs", ["apis", "and", "pdfs"]),
        ("__init__ _private_ __", ["init", "private"]),
        ("sha256 in 2024", ["sha256", "in", "2024"]),
        ("Straße", ["strasse"]),
        ("向量数据库", ["向量", "量数", "数据", "据库"]),
        ("是", ["是"]),
        ("使用Redis缓存", ["使用", "redis", "缓存"]),
        ("検索する", ["検索", "索す", "する"]),
        ("데이터 저장", ["데이", "이터", "저장"]),
        ("Размер пула", ["размер", "пула"]),
        ("هذا النص", ["هذا", "النص"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("ＡＰＩ", ["api"]),
        ("con\ufb01g", ["config"]),
        ("a\0b \ud800 c", ["a", "b", "c"]),
    ],
)
def test_words_of_many_scripts_and_of_identifiers(text, expected):
    assert tokens(text) == expected


def test_words_leave_the_whole_of_an_identifier_out():
    assert words("verify_token uses HTTPServer") == ["verify", "token", "uses", "http", "server"]


@given(ANY_TEXT)
def test_no_text_fails_and_no_word_is_empty(text):
    assert tokens(text) == tokens(text)
    assert all(tokens(text))


@given(ANY_TEXT)
def test_composed_and_decomposed_characters_are_the_same(text):
    composed, decomposed = (unicodedata.normalize(form, text) for form in ("NFC", "NFD"))
    assert tokens(composed) == tokens(decomposed)


@pytest.mark.parametrize(
    "unit",
    ["a\u0301\u0323\u0345", "\uff9e\u0323", "A_", "汉", "\U0001d165\u0301", "aB", "\0\ud800"],
)
def test_a_megabyte_of_garbage_takes_no_more_than_seconds(unit):
    started = time.perf_counter()
    tokens(unit * (1_000_000 // len(unit)))
    assert time.perf_counter() - started < 10
