"""What a trace tells: who moved, by which seed or past query, with what weight and age."""

import pytest

from synapse_retrievers import Carrier, Hit, Move, RecallParams, Synapse, Trace
from synapse_retrievers.params import DAY
from synapse_retrievers.stores.memory import MemoryStore

NOW = 1_700_000_000.0


@pytest.fixture
def moment():
    return [NOW]


@pytest.fixture
def memory(moment):
    return Synapse(MemoryStore(), clock=lambda: moment[0])


def before(node):
    """Hits whose last is no seed."""
    return [Hit(node), *(Hit(f"cold{place}") for place in range(4))]


def everything(ids):
    return dict.fromkeys(ids, "text")


def test_a_past_query_is_named_with_its_similarity_and_age(memory, moment):
    memory.reinforce(["a", "b"], "rotate keys")
    moment[0] += 3 * DAY
    trace = memory.recall("rotate keys", [Hit("x"), Hit("y"), Hit("z")], everything).trace
    (entered,) = trace.displaced_in
    assert (entered.node, entered.displaced, entered.before) == ("a", "z", None)
    (carrier,) = entered.carriers
    assert (carrier.kind, carrier.source, carrier.namespace) == (
        "episode",
        "rotate keys",
        "personal",
    )
    assert carrier.weight == pytest.approx(1.0)
    assert carrier.age_days == pytest.approx(3.0)
    assert carrier.energy == pytest.approx(3 * 2**-0.5 / (1 + 0.2))
    assert entered.energy == 1.0


def test_an_edge_is_named_with_its_seed_its_p_and_age(memory, moment):
    memory.reinforce(["a", "b"])
    moment[0] += 2 * DAY
    (reached,) = memory.explain("q", [*before("a"), Hit("b")]).reached
    (carrier,) = reached.carriers
    left = 2 ** (-2 / 365)
    assert (carrier.kind, carrier.source, carrier.path) == ("edge", "a", ("a", "b"))
    assert carrier.weight == pytest.approx(left / (left + 2))
    assert carrier.energy == pytest.approx(left / (left + 2))
    assert carrier.age_days == pytest.approx(2.0)


def test_two_hops_are_told_as_a_path(moment):
    params = RecallParams(kernel="hub", cue_weight=0.0)
    memory = Synapse(MemoryStore(), recall=params, clock=lambda: moment[0])
    memory.reinforce(["a", "b"])
    memory.reinforce(["b", "c"])
    trace = memory.explain("q", [*before("a"), Hit("b"), Hit("c")])
    carriers = {one.node: one.carriers[0] for one in trace.reached}
    assert carriers["c"].path == ("a", "b", "c")
    assert carriers["c"].source == "b"
    assert carriers["c"].energy == pytest.approx((0.3 * 0.6) ** 2)


def test_a_raise_and_what_made_room_are_told_in_the_new_order_then_the_displaced(memory):
    memory.reinforce(["new", "last"], "rotate keys")
    hits = [Hit("first"), Hit("weak"), Hit("last"), Hit("weaker")]
    moves = memory.recall("rotate keys", hits, everything).trace.moves
    assert [(m.node, m.kind, m.before, m.after) for m in moves] == [
        ("last", "raised", 2, 0),
        ("new", "displaced_in", None, 1),
        ("first", "lowered", 0, 2),
        ("weak", "lowered", 1, 3),
        ("weaker", "displaced", 3, None),
    ]


def test_the_other_half_of_a_memory_is_named_where_it_was_learned(memory):
    memory.reinforce(["a", "b"], "rotate keys", namespace="shared")
    (reached, _) = memory.explain("rotate keys").reached
    assert reached.carriers[0].namespace == "shared"
    assert reached.energy == pytest.approx(0.5)


def test_asking_writes_nothing(memory):
    memory.reinforce(["a", "b"], "rotate keys")
    before = repr([*memory.edges(), *memory.episodes(), *memory.store.nodes()])
    memory.explain("rotate keys", [Hit("a")])
    assert repr([*memory.edges(), *memory.episodes(), *memory.store.nodes()]) == before


def test_each_kind_of_move_reads_as_a_sentence():
    carrier = Carrier("episode", "personal", "rotate keys", 0.5, 0.4, 3.2)
    edge = Carrier("edge", "shared", "a", 0.25, 0.1, 0.0, ("a", "b"))
    moves = (
        Move("b", "displaced_in", None, 1, 0.4, (carrier,), "z"),
        Move("a", "raised", 2, 0, 0.1, (edge,)),
        Move("z", "displaced", 3, None),
    )
    told = str(Trace("q", "personal", 4, is_cold=False, moves=moves, refused={"c": "filtered"}))
    assert str(carrier) == "past query 'rotate keys' (similarity 0.50, 3 days ago, personal)"
    assert str(edge) == "used together, a -> b (weight 0.25, 0 days ago, shared)"
    assert told.splitlines() == [
        "'q' in personal: 4 hits, 3 moved",
        f"  b came in at 1 for z, energy 0.400: {carrier}",
        f"  a was raised from 2 to 0, energy 0.100: {edge}",
        "  z at 3 was displaced",
        "  c refused: filtered",
    ]


def test_a_cold_trace_says_why():
    assert str(Trace("q", None, 3, reason="no namespace")) == (
        "'q' in None: 3 hits, unchanged (no namespace)"
    )
