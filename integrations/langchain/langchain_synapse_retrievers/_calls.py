"""What a call says beside its query: by its configuration, its metadata, or those around it."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from langchain_core.callbacks import BaseRunManager
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import ensure_config

# What the wrapped retriever may read of the call's own config: filters often come in this way.
_CONFIGURABLE: ContextVar[dict[str, Any]] = ContextVar("synapse_configurable", default={})  # noqa: B039 - never written
_NAMESPACE: ContextVar[str | None] = ContextVar("synapse_namespace", default=None)


def configurable() -> dict[str, Any]:
    """What the wrapped retriever may read of the call's configuration."""
    return _CONFIGURABLE.get()


def namespace_of(run: BaseRunManager | None) -> str | None:
    """The namespace that the call names; None: it names none."""
    namespace = _NAMESPACE.get()
    if namespace is None and run is not None:
        # Retrievers of retrievers hand on their callbacks alone, and these the metadata.
        namespace = run.metadata.get("synapse_namespace")
    return namespace


@contextmanager
def named(config: RunnableConfig | None) -> Iterator[None]:
    """The call's own namespace; a retriever inside one that names none keeps the outer one's."""
    whole = ensure_config(config)
    given = whole.get("configurable", {})
    named = given.get("synapse_namespace", whole.get("metadata", {}).get("synapse_namespace"))
    token = None if named is None else _NAMESPACE.set(named)
    asked = _CONFIGURABLE.set(given)
    try:
        yield
    finally:
        _CONFIGURABLE.reset(asked)
        if token is not None:
            _NAMESPACE.reset(token)
