"""What the tools cannot see: who may import what, catch what, and how long things are."""

import ast
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = {  # where it is imported from -> its folder there
    ROOT: "synapse_retrievers",
    ROOT / "integrations/langchain": "langchain_synapse_retrievers",
    ROOT / "integrations/llama-index": "llama_index",
}
FILES = {
    path.relative_to(top).as_posix(): path
    for top, folder in PACKAGES.items()
    for path in sorted((top / folder).rglob("*.py"))
}
TREES = {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in FILES.items()}

TOOLS = re.compile(r"synapse_retrievers/(cli|commands|report|eval_report|demo|viz)\b")
PURE = re.compile(
    r"synapse_retrievers/(recall|events|learning)/|synapse_retrievers/(tokens|types)\."
)
PURE_LIBRARY = {
    *("abc", "array", "bisect", "collections", "contextlib", "dataclasses", "enum", "functools"),
    *("heapq", "hashlib", "hmac", "itertools", "math", "operator", "re", "string", "threading"),
    *("json", "types", "typing", "unicodedata", "urllib.parse", "numpy"),
}
PURE_LAYERS = {"checks", "errors", "namespaces", "params", "tokens", "types"}
LIBRARIES = {  # beside the standard library and numpy
    re.compile(r"synapse_retrievers/testing/"): {"hypothesis", "pytest"},
    re.compile(r"synapse_retrievers/evaluation/embedding\."): {"wordllama"},
    re.compile(r"synapse_retrievers/evaluation/metrics\."): {"pytrec_eval"},
    re.compile(r"synapse_retrievers/evaluation/page\."): {"matplotlib"},
    re.compile(r"synapse_retrievers/evaluation/ranking\."): {"bm25s"},
    re.compile(r"synapse_retrievers/stores/postgres\."): {"psycopg", "psycopg_pool"},
    re.compile(r"langchain_synapse_retrievers/"): {"langchain_core", "pydantic"},
    re.compile(r"langchain_synapse_retrievers/middleware\."): {"langchain"},
    re.compile(r"llama_index/retrievers/synapse/"): {"llama_index", "llama_index_instrumentation"},
}
FAIL_OPEN = {("synapse_retrievers/guard.py", "run")}  # adapters and listeners go through it
FILE_LINES, BODY_LINES = 300, 50


def imports(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, "relative import"
            yield node.module


def functions(tree):
    return [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]


def called(tree):
    return {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}


def broad_handlers(node):
    """`except:`, `except Exception` and `except BaseException` that do not end in `raise`."""
    for handler in (n for n in ast.walk(node) if isinstance(n, ast.ExceptHandler)):
        caught = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
        names = {ast.unparse(name) if name else "" for name in caught}
        cleans_up = isinstance(handler.body[-1], ast.Raise) and handler.body[-1].exc is None
        if names & {"", "Exception", "BaseException"} and not cleans_up:
            yield handler, names


@pytest.mark.parametrize("name", FILES)
def test_a_file_has_one_idea_and_a_function_fits_on_a_screen(name):
    lines = len(FILES[name].read_text(encoding="utf-8").splitlines())
    assert lines <= FILE_LINES, f"{lines} lines"
    for function in functions(TREES[name]):
        first = function.body[1:2] if ast.get_docstring(function) else function.body[:1]
        length = function.end_lineno - first[0].lineno + 1 if first else 0
        assert length <= BODY_LINES, f"{function.name}: {length} lines"


@pytest.mark.parametrize("name", [name for name in FILES if not TOOLS.match(name)])
def test_the_core_imports_numpy_and_the_standard_library_alone(name):
    allowed = set(sys.stdlib_module_names) | {"numpy", "synapse_retrievers"}
    allowed.add(name.split("/", maxsplit=1)[0])
    for pattern, libraries in LIBRARIES.items():
        allowed |= libraries if pattern.match(name) else set()
    assert {module.split(".")[0] for module in imports(TREES[name])} <= allowed


@pytest.mark.parametrize("name", [name for name in FILES if PURE.match(name)])
def test_rules_are_pure_and_know_no_other_part(name):
    own = name.split("/")[1]
    for module in imports(TREES[name]):
        top, *rest = module.split(".")
        if top == "synapse_retrievers":
            assert rest, "the package imports its parts, not the other way round"
            assert rest[0] in PURE_LAYERS | {own}, module
        else:
            assert {top, module} & PURE_LIBRARY, module
    calls = called(TREES[name])
    assert not calls & {"open", "input", "hash"}  # hash() of text differs from run to run
    assert not [call for call in calls if call.startswith(("np.random", "numpy.random", "np.save"))]


@pytest.mark.parametrize("name", FILES)
def test_failures_are_swallowed_in_the_listed_functions_alone(name):
    broad = list(broad_handlers(TREES[name]))
    assert all(names == {"Exception"} for _, names in broad), "bare except or BaseException"
    places = [f.name for f in functions(TREES[name]) if any(broad_handlers(f))]
    assert len(broad) == len(places), f"line {[handler.lineno for handler, _ in broad]}"
    assert {(name, place) for place in places} <= FAIL_OPEN


@pytest.mark.parametrize("name", FILES)
def test_the_clock_is_handed_in_and_nothing_is_printed_or_pickled(name):
    calls = called(TREES[name])
    if not TOOLS.match(name):
        clocks = {"time.time", "time.time_ns", "datetime.now", "datetime.datetime.now"}
        assert not calls & clocks, "pass the time in"
        assert "print" not in calls
    modules = {module.split(".")[0] for module in imports(TREES[name])}
    assert not modules & {"pickle", "marshal", "shelve", "dill"}
    calls = [node for node in ast.walk(TREES[name]) if isinstance(node, ast.Call)]
    for call in calls:
        if ast.unparse(call.func) in {"np.load", "numpy.load"}:
            assert "allow_pickle=False" in ast.unparse(call)
