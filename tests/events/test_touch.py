import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synapse_retrievers.events.touch import touched

SOURCES = {
    "auth": "/repo/src/auth.py",
    "auth 2": "/repo/src/auth.py",
    "ts": "lib/auth.ts",
    "pool": "src/db/pool.py",
    "readme": "README.md",
    "intro": "docs\\guide\\intro.md",
    "index": "docs/index.md",
    "api index": "docs/api/index.md",
    "page": "https://docs.example.com/api/tokens?lang=en",
    "plan": "file:///data/My%20Notes/plan 1.md",
    "notes": "notes.md",
    "none": "",
}
ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=100)


def _names(inputs):
    return set(touched("read_file", inputs, SOURCES))


@pytest.mark.parametrize(
    ("inputs", "nodes"),
    [
        ({"path": "/repo/src/auth.py"}, {"auth", "auth 2"}),
        ({"path": "./src/auth.py"}, {"auth", "auth 2"}),
        ({"path": "src/../src/auth.py:12:5"}, {"auth", "auth 2"}),
        ({"path": "src/auth.py#L10-L20"}, {"auth", "auth 2"}),
        ({"path": "auth.py"}, {"auth", "auth 2"}),
        ({"path": "/home/me/work/src/db/pool.py"}, {"pool"}),
        ({"path": "C:\\work\\docs\\guide\\intro.md"}, {"intro"}),
        ({"path": "docs/api/index.md"}, {"api index"}),
        ({"path": "docs/index.md"}, {"index"}),
        ({"path": "/data/My Notes/plan 1.md"}, {"plan"}),
        ({"path": "/srv/app/notes.md"}, {"notes"}),
        ({"uri": "file:///repo/src/auth.py"}, {"auth", "auth 2"}),
        ({"url": "https://docs.example.com/api/tokens#top"}, {"page"}),
        ({"cmd": "cd /x && sed -n '1,20p' src/db/pool.py | grep size > out.txt"}, {"pool"}),
        ({"cmd": 'cat "src/db/pool.py";ls'}, {"pool"}),
        ({"files": [{"p": "pool.py"}, "README.md"]}, {"pool", "readme"}),
        ("Look into src/db/pool.py, please.", {"pool"}),
        (json.dumps({"path": "src/db/pool.py"}), {"pool"}),
        ("{'path': 'src/db/pool.py'}", {"pool"}),
        ({"input": "*** Update File: src/db/pool.py\n-see README.md\n+see lib/auth.ts"}, {"pool"}),
    ],
)
def test_a_path_names_the_nodes_of_its_file(inputs, nodes):
    assert _names(inputs) == nodes


@pytest.mark.parametrize(
    "inputs",
    [
        {"path": "sub/README.md"},
        {"path": "/repo/sub/README.md"},
        {"path": "sub/notes.md"},
        {"path": "index.md"},  # two sources have that name
        {"path": "my_pool.py"},
        {"path": "pool.pyc"},
        {"path": "/other/src/auth.py"},
        {"path": "/src/auth.py"},
        {"path": "db"},
        {"path": "docs/*.md"},
        {"cmd": "cat **/README.md src/*/pool.py"},
        {"path": "."},
        {"path": ""},
        {"content": "as in src/db/pool.py"},
        {"query": "what does README.md say"},
        {"path": None, "limit": 5},
        {},
        "",
    ],
)
def test_what_names_no_source_touches_nothing(inputs):
    assert _names(inputs) == set()


@pytest.mark.parametrize(
    ("tool", "inputs", "touch"),
    [
        ("read_file", {}, "read"),
        ("run_shell", {"command": "cat README.md"}, "read"),
        ("open", {}, "read"),
        ("write_file", {"content": "x"}, "edited"),
        ("EditFile", {}, "edited"),
        ("apply_patch", {}, "edited"),
        ("str_replace_based_edit_tool", {"command": "view"}, "read"),
        ("str_replace_based_edit_tool", {"command": "str_replace"}, "edited"),
        ("editor", {"command": "insert"}, "edited"),
        ("fs", {"new_string": "x", "old_string": "y"}, "edited"),
        ("list_credits", {}, "read"),
    ],
)
def test_the_verb_decides_between_edited_and_read(tool, inputs, touch):
    assert touched(tool, {"path": "README.md", **inputs}, SOURCES) == {"readme": touch}


def test_the_very_path_of_a_source_is_that_source():
    sources = {"root": "x.py", "sub": "sub/x.py", "page": "app/[id]/page.tsx"}
    assert touched("read", {"path": "x.py"}, sources) == {"root": "read"}
    assert touched("read", {"path": "sub/x.py"}, sources) == {"sub": "read"}
    assert touched("read", {"path": "app/[id]/page.tsx"}, sources) == {"page": "read"}


def test_a_file_in_a_container_under_another_root_is_missed():
    assert touched("read", {"path": "/app/src/auth.py"}, SOURCES) == {}


@given(
    st.recursive(
        ANY_TEXT | st.none() | st.integers(),
        lambda inner: st.lists(inner) | st.dictionaries(ANY_TEXT, inner),
    ),
    ANY_TEXT,
    st.dictionaries(ANY_TEXT, ANY_TEXT | st.text("/\\.a:#?*", max_size=12)),
)
def test_no_input_fails(inputs, tool, sources):
    for given_inputs in (str(inputs), {"path": inputs}):
        assert touched(tool, given_inputs, sources).keys() <= sources.keys()


@pytest.mark.parametrize("unit", ["/", "a/", "../", "\"'", " ", "[", '{"a":', "a.b ", "\\"])
def test_long_garbage_takes_no_more_than_seconds(unit):
    text = unit * (1_000_000 // len(unit))
    started = time.perf_counter()
    touched(text[:100], text, SOURCES)
    touched("read", {"path": text}, SOURCES)
    assert time.perf_counter() - started < 10
