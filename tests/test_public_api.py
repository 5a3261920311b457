"""The names that users may rely on, and that each of them says what it does."""

import doctest
import importlib
import inspect
import pkgutil

import pytest

import synapse_retrievers
from synapse_retrievers.errors import MissingExtraError
from synapse_retrievers.stores.base import Reader, Store

CORE = {
    *("Synapse", "RecallParams", "LearningParams", "Hit", "Recalled", "Trace", "Edge", "Episode"),
    *("SynapseError", "ParamError", "NodeIdError", "NamespaceError", "FeedbackError"),
    *("UnknownRunError", "StoreError", "StoreBusyError", "StoreVersionError", "StoreCorruptError"),
    "MissingExtraError",
}
METHODS = {
    *("recall", "run", "reinforce", "feedback", "flush", "aflush", "neighbors", "edges"),
    *("episodes", "stats", "explain", "forget", "prune", "close"),
}
ADAPTER = {"wrap", "from_vectorstore", "synapse", "last_trace", "explain"}
TOOLS = tuple(
    f"synapse_retrievers.{tool}"
    for tool in ("commands", "demo", "eval_report", "evaluation", "report", "viz")
)
PACKAGES = [
    "synapse_retrievers",
    "langchain_synapse_retrievers",
    "llama_index.retrievers.synapse",
]


def load(name):
    """The module; the tools need what the core does without."""
    is_tool = name.startswith(TOOLS)
    return pytest.importorskip(name, exc_type=ImportError if is_tool else MissingExtraError)


def modules():
    for package in PACKAGES:
        try:
            found = importlib.import_module(package)
        except ImportError:
            continue
        for info in pkgutil.walk_packages(found.__path__, f"{package}."):
            yield info.name
        yield package


def constants_classes_functions(name):
    return not name.isupper(), not name[0].isupper(), name


def public(owner):
    home = getattr(owner, "__module__", None) or owner.__name__
    for name, value in vars(owner).items():
        inner = getattr(value, "__func__", getattr(value, "fget", value))
        is_ours = getattr(inner, "__module__", None) == home and not name.startswith("_")
        if is_ours and (inspect.isclass(inner) or inspect.isfunction(inner)):
            yield name, inner


@pytest.mark.parametrize("package", PACKAGES)
def test_all_is_sorted_and_is_what_is_public(package):
    module = pytest.importorskip(package)
    assert module.__all__ == sorted(module.__all__, key=constants_classes_functions)
    names = {n for n, value in vars(module).items() if not inspect.ismodule(value)}
    assert {n for n in names if not n.startswith("_")} == set(module.__all__)


def test_the_core_has_the_promised_names():
    assert set(synapse_retrievers.__all__) >= CORE
    assert {n for n in METHODS if not hasattr(synapse_retrievers.Synapse, n)} == set()


def test_the_adapter_has_the_promised_names():
    adapter = pytest.importorskip("langchain_synapse_retrievers")
    fields = set(adapter.SynapseRetriever.model_fields)
    missing = {n for n in ADAPTER if n not in fields and not hasattr(adapter.SynapseRetriever, n)}
    assert missing == set()


@pytest.mark.parametrize("name", [name for name in modules() if "._" not in name])
def test_everything_public_says_what_it_does(name):
    module = load(name)
    assert module.__doc__, name
    for title, value in public(module):
        assert inspect.getdoc(value), title
        # A store's methods inherit the protocol's text, a suite's names are its promises.
        if inspect.isclass(value) and not name.startswith("synapse_retrievers.testing"):
            for method, _ in public(value):
                texts = [inspect.getdoc(getattr(c, method, None)) for c in (value, Store, Reader)]
                assert any(texts), f"{title}.{method}"


@pytest.mark.parametrize("name", list(modules()))
def test_the_examples_in_docstrings_hold(name):
    assert doctest.testmod(load(name)).failed == 0
