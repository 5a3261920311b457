"""Which run belongs to which root call."""

import threading

from synapse_retrievers.events.tree import Tree


def test_a_run_belongs_to_the_topmost_known_parent():
    tree = Tree()
    assert tree.started("root", None) == "root"
    assert tree.started("chain", "root") == "root"
    assert tree.started("llm", "chain") == "root"
    assert tree.root_of("llm") == "root"


def test_an_unknown_run_is_its_own_root_and_an_unknown_parent_the_root():
    tree = Tree()
    assert tree.root_of("never") == "never"
    assert tree.started("child", "elsewhere") == "elsewhere"


def test_a_circle_ends():
    tree = Tree()
    tree.started("a", "b")
    tree.started("b", "a")
    assert tree.root_of("a") == "b"
    assert tree.started("self", "self") == "self"


def test_abandoned_runs_are_bounded():
    tree = Tree()
    for number in range(10_100):
        tree.started(f"run{number}", None)
        tree.tool_started(f"tool{number}", f"run{number}", "read", {})
    assert len(tree) == 10_000
    assert tree.tool_ended("tool0", 0.0) is None
    assert sum(tree.tool_ended(f"tool{n}", 0.0) is not None for n in range(10_100)) == 256


def test_a_tool_call_ends_once_with_its_root_and_inputs():
    tree = Tree()
    tree.started("root", None)
    tree.tool_started("tool", "root", "read_file", {"path": "a.py"})
    event = tree.tool_ended("tool", 7.0)
    assert (event.root_id, event.tool, event.inputs, event.at) == (
        "root",
        "read_file",
        {"path": "a.py"},
        7.0,
    )
    assert tree.tool_ended("tool", 8.0) is None


def test_a_tool_that_retrieved_touches_nothing_but_its_sibling_does():
    tree = Tree()
    tree.started("root", None)
    tree.tool_started("search", "root", "search", {"q": "x"})
    tree.tool_started("edit", "root", "edit", {"path": "a.py"})
    tree.started("retriever", "search")
    tree.retrieved("retriever")
    assert tree.tool_ended("search", 0.0) is None
    assert tree.tool_ended("edit", 0.0) is not None


def test_threads_do_not_disturb_one_another():
    tree = Tree()

    def work(name):
        for number in range(200):
            assert tree.started(f"{name}/{number}", name) == name

    threads = [threading.Thread(target=work, args=(f"t{n}",)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(tree) == 1_600
