import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synapse_retrievers.events.evidence import evidence_of
from synapse_retrievers.events.usage import usage
from synapse_retrievers.params import LearningParams

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=200)
WORDS = [
    *["the", "pool", "opens", "after", "five", "failures", "of"],
    *["a_b", "verify_token", "def", "class", "密钥每周轮换", "してい", "(", ":", "\n", ""],
]
PROSE = st.lists(st.sampled_from(WORDS), max_size=40).map(" ".join)
SOME_TEXT = ANY_TEXT | PROSE

BREAKER = (
    "The client opens the circuit breaker after five consecutive failures. While it is open, "
    "requests fail fast with CircuitOpenError for thirty seconds, then one trial request is sent."
)
ROTATION = (
    "Signing keys are rotated every seven days by the key manager. Old public keys stay in the "
    "JWKS document for two weeks, so tokens signed before the rotation remain valid."
)
POOL = (
    "Each worker holds a pool of ten database connections. Idle connections are closed after five "
    "minutes; set POOL_MAX_IDLE to change this."
)
VERIFY = "def verify_token(raw: str) -> Claims:\n    header, body, mac = raw.split('.')\n"
LOADER = "class KeyLoader:\n    def load(self, url):\n        return fetch(url)\n"


def _evidence(answer, query, chunks):
    return [evidence_of(score, LearningParams()) for score in usage(answer, query, chunks)]


def test_shared_wording_is_use():
    answer = "Old public keys stay in the JWKS document for two weeks after a rotation."
    query = "How long do old tokens work?"
    assert _evidence(answer, query, [BREAKER, ROTATION, POOL]) == [None, "used", None]


def test_several_chunks_may_be_used():
    answer = (
        "Requests fail fast with CircuitOpenError for thirty seconds. Meanwhile idle connections "
        "are closed after five minutes."
    )
    assert _evidence(answer, "What happens?", [BREAKER, ROTATION, POOL]) == ["used", None, "used"]


def test_a_golden_score():
    # opens the circuit | the circuit breaker | circuit breaker after; "it" and "after two" are not.
    assert usage("It opens the circuit breaker after two.", "", [BREAKER, POOL]) == [3.0, 0.0]


def test_a_paraphrase_is_missed():
    answer = "When a service keeps erroring, calls are rejected at once for half a minute."
    assert _evidence(answer, "What if a service is down?", [BREAKER, POOL]) == [None, None]


def test_a_one_word_answer_is_missed():
    assert _evidence("Ten.", "How many connections has a worker?", [POOL, BREAKER]) == [None, None]


def test_the_echo_of_the_question_is_no_use():
    query = "Why does the client open the circuit breaker after five consecutive failures?"
    answer = "The client does open the circuit breaker after five consecutive failures, as asked."
    assert _evidence(answer, query, [BREAKER, POOL]) == [None, None]


@pytest.mark.parametrize(
    "answer",
    [
        "The context does not mention a pool of ten database connections.",
        "The provided documents don't contain information on idle connections being closed.",
        "There is no information about the circuit breaker after five failures in the sources.",
        "I cannot find any mention of how idle connections are closed in the provided context.",
        "Der Kontext enthält keine Angaben dazu.",
    ],
)
def test_a_refusal_is_no_use(answer):
    assert _evidence(answer, "Is it safe?", [BREAKER, POOL]) == [None, None]


def test_what_stands_beside_a_refusal_counts():
    answer = (
        "The context does not mention a pool of ten database connections, but the client opens "
        "the circuit breaker after five consecutive failures."
    )
    assert _evidence(answer, "What is the limit?", [BREAKER, POOL]) == ["used", None]


def test_a_claim_with_not_in_it_is_no_refusal():
    chunk = "Documents in the archive tier are not deleted until the legal hold ends."
    answer = "Documents in the archive tier are not deleted until the legal hold ends."
    assert _evidence(answer, "When?", [chunk, POOL]) == ["used", None]


def test_boilerplate_of_all_chunks_is_no_use():
    header = "Acme internal handbook, confidential draft. "
    chunks = [header + text for text in (BREAKER, ROTATION, POOL)]
    assert (
        _evidence("See the Acme internal handbook, confidential draft.", "", chunks) == [None] * 3
    )


def test_the_neighbor_that_only_overlaps_gets_no_credit():
    text = f"{BREAKER} {ROTATION} {POOL}"
    first, second = text[:260], text[160:420]
    answer = BREAKER
    assert _evidence(answer, "What happens?", [first, second]) == ["used", None]


def test_the_neighbor_of_a_long_overlap_gets_no_credit_either():
    first, second = f"{POOL} {BREAKER} {ROTATION}", f"{BREAKER} {ROTATION} Something else follows."
    answer = f"Idle connections are closed. {BREAKER} {ROTATION}"
    assert _evidence(answer, "What happens?", [first, second]) == ["used", None]


def test_one_shared_term_of_a_script_without_spaces_is_no_use():
    assert usage("向量数据库很快", "", ["部署向量数据库需要磁盘。"]) == [1.0]
    assert usage("データベースです", "", ["大きなデータベースが要る。"]) == [0.75]
    assert usage("데이터베이스", "", ["큰 데이터베이스"]) == [0.75]


def test_equal_chunks_score_alike_and_do_not_take_from_each_other():
    alone = usage(BREAKER, "", [BREAKER])
    assert usage(BREAKER, "", [BREAKER, POOL, BREAKER]) == [*alone, 0.0, *alone]


@pytest.mark.parametrize(
    ("answer", "query", "used", "unused"),
    [
        (
            "根据文档，签名密钥每七天轮换一次，旧公钥保留两周。",
            "旧令牌还有效吗？",
            "签名密钥每七天轮换一次，由密钥管理器负责。旧公钥保留两周。",
            "每个工作进程保持十个数据库连接，空闲连接五分钟后关闭。",
        ),
        (
            "署名鍵は七日ごとに鍵管理サーバーで自動更新されます。",
            "鍵はいつ変わりますか？",
            "署名鍵は七日ごとに鍵管理サーバーで自動更新されます。古い公開鍵は二週間残ります。",
            "各ワーカーは十個のデータベース接続を保持しています。設定することができます。",
        ),
        (
            "Ключи подписи меняются каждые семь дней менеджером ключей.",
            "Когда меняются ключи?",
            "Ключи подписи меняются каждые семь дней менеджером ключей и хранятся две недели.",
            "Каждый рабочий процесс держит десять соединений с базой данных.",
        ),
        (
            "يتم تدوير مفاتيح التوقيع كل سبعة أيام بواسطة مدير المفاتيح.",
            "متى يتم التدوير؟",
            "يتم تدوير مفاتيح التوقيع كل سبعة أيام بواسطة مدير المفاتيح وتبقى القديمة أسبوعين.",
            "يحتفظ كل عامل بعشرة اتصالات بقاعدة البيانات.",
        ),
        (
            "서명 키는 키 관리 서비스에서 일주일마다 자동으로 교체됩니다.",
            "언제 바뀌나요?",
            "서명 키는 키 관리 서비스에서 일주일마다 자동으로 교체됩니다. 이전 키는 남습니다.",
            "각 작업자는 데이터베이스 연결을 열 개 유지합니다.",
        ),
    ],
)
def test_other_scripts_work(answer, query, used, unused):
    assert _evidence(answer, query, [unused, used]) == [None, "used"]


def test_function_words_of_japanese_are_no_use():
    chunk = "この機能は管理画面から設定することができます。"
    answer = "はい、利用することができます。"
    assert _evidence(answer, "使えますか？", [chunk]) == [None]


def test_an_answer_in_another_language_is_missed():
    answer = "Der Client öffnet den Schutzschalter nach fünf Fehlern in Folge."
    assert _evidence(answer, "What happens?", [BREAKER, POOL]) == [None, None]


@pytest.mark.parametrize(
    "answer",
    [
        "It calls verify_token first.",
        "It calls `verify_token` first.",
        "Use verify_token(raw) there.",
    ],
)
def test_a_symbol_that_the_chunk_defines_is_use(answer):
    assert _evidence(answer, "How is it checked?", [VERIFY, LOADER, BREAKER]) == [
        "used",
        None,
        None,
    ]


@pytest.mark.parametrize(
    ("answer", "is_used"),
    [
        ("The KeyLoader does it.", True),
        ("`load` does it.", True),
        ("Call load(url) for this.", True),
        ("It will load the keys.", False),
        ("The keyloader does it.", False),
    ],
)
def test_a_plain_name_counts_only_as_code(answer, is_used):
    assert _evidence(answer, "Who?", [LOADER, BREAKER]) == ["used" if is_used else None, None]


def test_a_long_verb_is_no_symbol_unless_it_is_marked_as_code():
    chunks = ["def configure(app):\n    app.ready = True", POOL]
    assert _evidence("Then configure the rest.", "How?", chunks) == [None, None]
    assert _evidence("Then call `configure`.", "How?", chunks) == ["used", None]


def test_a_symbol_of_the_query_or_of_two_chunks_is_no_use():
    assert _evidence("verify_token does.", "What does verify_token do?", [VERIFY]) == [None]
    twice = [VERIFY, "async def verify_token(other):\n    pass"]
    assert _evidence("verify_token does.", "Who?", twice) == [None, None]


@pytest.mark.parametrize(
    "definition",
    [
        "export async function parseHeader(raw) {",
        "func (s *Server) parseHeader(raw string) error {",
        "    pub(crate) fn parseHeader(raw: &str) -> Header {",
        "public final class parseHeader extends Base {",
        "export interface parseHeader {",
        "export const parseHeader = (raw) => raw",
        "type parseHeader struct {",
        "export type parseHeader = string",
        "  def self.parseHeader(raw)",
        "fun parseHeader(raw: String) = raw",
        "#define parseHeader 1",
    ],
)
def test_definitions_of_the_usual_languages_are_known(definition):
    assert usage("See parseHeader for this.", "", [definition, BREAKER]) == [1.5, 0.0]


@pytest.mark.parametrize(
    "prose",
    ["the class Hierarchies of old", "Every function parseHeader has", "type Annotations help"],
)
def test_prose_defines_no_symbol(prose):
    answer = "Hierarchies, parseHeader and Annotations exist."
    assert usage(answer, "", [prose]) == [0.0]


def test_json_of_one_shape_is_no_use():
    rows = [f'{{"id": {n}, "name": "n{n}", "type": "node", "tags": ["a"]}}' for n in range(6)]
    answer = '{"id": 9, "name": "other", "type": "node", "tags": ["b"]}'
    assert _evidence(answer, "", rows) == [None] * 6


@pytest.mark.parametrize("empty", ["", "  \n", "…!?"])
def test_empty_texts_prove_nothing(empty):
    assert usage(empty, "", [BREAKER, VERIFY, empty]) == [0.0, 0.0, 0.0]
    assert usage(BREAKER, empty, [empty]) == [0.0]
    assert usage(BREAKER, "", []) == []


@given(SOME_TEXT, SOME_TEXT, st.lists(SOME_TEXT, max_size=5))
def test_no_text_fails_and_scores_are_finite(answer, query, chunks):
    scores = usage(answer, query, chunks)
    assert len(scores) == len(chunks)
    assert all(math.isfinite(score) and score >= 0 for score in scores)


@given(SOME_TEXT, SOME_TEXT, st.lists(SOME_TEXT, max_size=5).flatmap(
    lambda chunks: st.tuples(st.just(chunks), st.permutations(range(len(chunks))))
))  # fmt: skip
def test_the_order_of_chunks_does_not_matter(answer, query, shuffled):
    chunks, order = shuffled
    scores = usage(answer, query, chunks)
    assert usage(answer, query, [chunks[i] for i in order]) == [scores[i] for i in order]


@given(PROSE, PROSE, st.lists(PROSE, max_size=4), PROSE)
def test_one_more_chunk_never_raises_the_score_of_another(answer, query, chunks, more):
    before = usage(answer, query, chunks)
    after = usage(answer, query, [*chunks, more])
    assert all(new <= old for new, old in zip(after, before, strict=False))


@given(SOME_TEXT, st.lists(SOME_TEXT, max_size=4))
def test_an_empty_answer_used_nothing(query, chunks):
    assert usage("", query, chunks) == [0.0] * len(chunks)


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "unit",
    [
        "A_",
        "A",
        "def ",
        "type a ",
        "export ",
        "context not ",
        "\n",
        " ",
        "func (",
        "`",
        "汉",
        "a\u0301",
    ],
)
def test_a_megabyte_of_garbage_takes_no_more_than_seconds(unit):
    text = unit * (1_000_000 // len(unit))
    assert len(usage(text, text[:50], [text, text + "x"])) == 2
