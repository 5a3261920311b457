"""What keeps documents out inside of a retriever, as far as it can be seen from outside."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableLambda, RunnableSequence
from langchain_core.runnables.base import RunnableBindingBase
from langchain_core.runnables.configurable import (
    RunnableConfigurableAlternatives,
    RunnableConfigurableFields,
)

_KEEPS_OUT = (
    "filter",
    "filters",
    "where",
    "where_document",
    "score_threshold",
    "similarity_threshold",
    "base_compressor",
    "structured_query_translator",
)
"""Fields of retrievers, whoever wrote them, by which a document does not come through."""

_NEUTRAL = {"name", "tags", "metadata"}


def restrictions_of(retriever: object) -> dict[str, Any]:
    """The search arguments bound to a retriever or to one inside it, and what else keeps out.

    A retriever built of others has no arguments of its own to look at: what keeps a document out
    inside of it keeps it out of the whole.
    """
    found: dict[str, Any] = {}
    for one in _inside(retriever, {}, _retrieves):
        found.update(_own(one))
    return found


def _own(one: object) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if isinstance(one, RunnableBindingBase):
        found |= one.kwargs
    if isinstance(one, RunnableSequence) and not _retrieves(one.steps[-1]):
        found["steps behind the retriever"] = one.steps[-1]
    if isinstance(one, RunnableConfigurableFields):
        found |= {f"configurable {key}": key for key in one.fields if key not in _NEUTRAL}
    if isinstance(one, RunnableConfigurableAlternatives) and not all(
        isinstance(other, Runnable) for other in one.alternatives.values()
    ):
        found["alternatives that are made when called"] = one.alternatives
    if isinstance(one, BaseRetriever):
        kwargs = getattr(one, "search_kwargs", None)
        found |= kwargs if isinstance(kwargs, Mapping) else {}
        found |= {name: value for name in _KEEPS_OUT if (value := getattr(one, name, None))}
        kind = getattr(one, "search_type", None)
        if getattr(kind, "value", kind) == "similarity_score_threshold":
            found.setdefault("score_threshold", 0.0)
    return found


def _retrieves(one: object) -> bool:
    """Whether there is a retriever in it."""
    return any(isinstance(part, BaseRetriever) for part in _inside(one, {}, lambda _: True))


def _inside(
    one: object, seen: dict[int, object], is_asked: Callable[[object], bool]
) -> Iterator[object]:
    """It and all the runnables in it, each once, but for those that are not asked."""
    if id(one) in seen:
        return
    seen[id(one)] = one
    if isinstance(one, Runnable):
        if not is_asked(one):
            return
        yield one
        parts = [*vars(one).values(), *(_held(one) if isinstance(one, RunnableLambda) else ())]
    elif isinstance(one, Mapping):
        parts = list(one.values())
    elif isinstance(one, list | tuple):
        parts = list(one)
    else:
        return
    for part in parts:
        yield from _inside(part, seen, is_asked)


def _held(one: RunnableLambda[Any, Any]) -> Iterator[object]:
    """What a function refers to: LangChain reads its source, which is not always to be had."""
    yield from one.deps
    for name in ("func", "afunc"):
        for cell in getattr(getattr(one, name, None), "__closure__", None) or ():
            with suppress(ValueError):  # an empty cell
                yield cell.cell_contents
