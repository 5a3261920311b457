"""What is known of one run: queries, uses, credits."""

from hypothesis import given
from hypothesis import strategies as st

from synapse_retrievers.events.run import Run
from synapse_retrievers.types import Use


def run(**queries):
    found = Run("key", "personal", None, 0.0)
    for query, nodes in queries.items():
        found.asked(query, nodes)
    return found


def uses(nodes):
    return dict.fromkeys(nodes, Use(1.0))


def credited(found, nodes):
    return {query: "".join(used) for query, used in found.credits(uses(nodes)).items()}


def test_a_used_node_is_credited_to_the_queries_that_returned_it():
    assert credited(run(one="ab", two="bc"), "abc") == {"one": "ab", "two": "bc"}


def test_a_node_that_no_query_returned_is_credited_to_all_asked_before():
    assert credited(run(one="a", two="b"), "az") == {"one": "az", "two": "z"}


def test_the_same_query_asked_again_returns_all_of_both():
    found = run(one="ab")
    found.asked("one", "bc", {"c": "carrier"}, {"c": "c#1"})
    assert found.queries == {"one": ("a", "b", "c")}
    assert (found.carriers, found.chunks) == ({"c": "carrier"}, {"c": "c#1"})


def test_evidence_is_united_by_strength_and_changes_nothing_yet():
    found = run(one="a")
    found.used = {"a": Use(0.5, "a#1"), "b": Use(1.0)}
    united = found.with_evidence({"a": Use(0.9), "b": Use(0.2), "c": Use(0.1)})
    assert united == {"a": Use(0.9, "a#1"), "b": Use(1.0), "c": Use(0.1)}
    assert found.used == {"a": Use(0.5, "a#1"), "b": Use(1.0)}


def test_the_chunk_by_which_a_document_came_stands_for_its_use():
    found = run(one="a")
    found.asked("one", "a", None, {"a": "a#3"})
    assert found.with_evidence({"a": Use(1.0)}) == {"a": Use(1.0, "a#3")}
    assert found.with_evidence({"a": Use(1.0, "a#9")}) == {"a": Use(1.0, "a#9")}


nodes = st.lists(st.sampled_from("abcde"), max_size=4)


asked = st.dictionaries(st.sampled_from("xyz"), nodes, min_size=1)


@given(asked, st.sets(st.sampled_from("abcde")))
def test_every_used_node_is_credited_to_somebody(queries, used):
    found = run(**queries)
    credited_to = found.credits(uses(sorted(used)))
    assert {node for one in credited_to.values() for node in one} == used
    assert list(credited_to) == list(queries)
