# ruff: noqa: ARG002, D102 - LangChain's own signatures and texts
"""What LangChain reports, told to the core; one listener hears every run of the process."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatGeneration, LLMResult
from langchain_core.tracers.context import register_configure_hook

from synapse_retrievers import (
    LEDGER,
    LISTENING,
    TREE,
    Answered,
    Guard,
    Prompted,
    mark_context,
    observe,
)

_GUARD = Guard("the LangChain listener")


class SynapseListener(BaseCallbackHandler):
    """Learns from any run: what an LLM was given, what it answered, what tools touched.

    Constructing a retriever is enough; pass one of these as a callback only where configure hooks
    do not reach. Any number of them learn each run once.
    """

    raise_error = False

    @property
    def ignore_llm(self) -> bool:
        """Prompts mean nothing while nothing was retrieved."""
        return not len(LEDGER)

    @property
    def ignore_chat_model(self) -> bool:
        """Prompts mean nothing while nothing was retrieved."""
        return not len(LEDGER)

    def on_chain_start(
        self,
        serialized: Any,
        inputs: Any,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        **_: Any,
    ) -> None:
        _guarded(lambda: TREE.started(str(run_id), _parent(parent_run_id)))

    def on_retriever_start(
        self,
        serialized: Any,
        query: str,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        **_: Any,
    ) -> None:
        _guarded(lambda: TREE.started(str(run_id), _parent(parent_run_id)))

    def on_tool_start(
        self,
        serialized: Any,
        input_str: str,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        inputs: dict[str, Any] | None = None,
        **more: Any,
    ) -> None:
        name = str((serialized or {}).get("name") or more.get("name") or "")
        _guarded(
            lambda: TREE.tool_started(
                str(run_id), _parent(parent_run_id), name, inputs or input_str
            )
        )

    def on_tool_end(self, output: Any, *, run_id: UUID, **_: Any) -> None:
        _guarded(lambda: _tool_ended(str(run_id)))

    def on_tool_error(self, error: BaseException, *, run_id: UUID, **_: Any) -> None:
        _guarded(lambda: TREE.tool_ended(str(run_id), 0.0))

    def on_chat_model_start(
        self,
        serialized: Any,
        messages: list[list[BaseMessage]],
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        **_: Any,
    ) -> None:
        _guarded(
            lambda: _prompted(
                run_id,
                parent_run_id,
                [text for batch in messages for one in batch for text in _texts(one.content)],
            )
        )

    def on_llm_start(
        self,
        serialized: Any,
        prompts: list[str],
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        **_: Any,
    ) -> None:
        _guarded(lambda: _prompted(run_id, parent_run_id, prompts))

    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **_: Any) -> None:
        _guarded(lambda: _answered(str(run_id), response))


class _Caller(BaseCallbackHandler):
    """Makes the caller of a chain known, so that it sees the last trace of what it called."""

    # In the caller's own context: on the async path other handlers run in another thread's.
    run_inline = True
    ignore_llm = ignore_chat_model = ignore_retriever = ignore_agent = True
    ignore_retry = ignore_custom_event = True

    def on_chain_start(
        self,
        serialized: Any,
        inputs: Any,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        **_: Any,
    ) -> None:
        if parent_run_id is None:
            _guarded(mark_context)


LISTENER = SynapseListener()

# default=, not set(): a value that is set is invisible to plain threads.
_HOOK: ContextVar[SynapseListener | None] = ContextVar("synapse_listener", default=LISTENER)


_CALLER: ContextVar[_Caller | None] = ContextVar("synapse_caller", default=_Caller())  # noqa: B039 - it holds nothing


def listen() -> None:
    """Hear every run of the process from now on; once, however often it is called."""
    if "langchain" not in LISTENING:
        LISTENING.add("langchain")
        register_configure_hook(_HOOK, inheritable=True, handle_class=SynapseListener)
        register_configure_hook(_CALLER, inheritable=False, handle_class=_Caller)


def _guarded(action: Callable[[], object]) -> None:
    _GUARD.run(action, None)


def _parent(parent_run_id: UUID | None) -> str | None:
    return None if parent_run_id is None else str(parent_run_id)


def _prompted(run_id: UUID, parent_run_id: UUID | None, texts: Sequence[str]) -> None:
    root_id = TREE.started(str(run_id), _parent(parent_run_id))
    observe(Prompted(str(run_id), root_id, "\n".join(texts), time.monotonic()))


def _answered(run_id: str, response: LLMResult) -> None:
    texts: list[str] = []
    quotes: list[str] = []
    for generation in response.generations[0] if response.generations else []:
        texts.append(generation.text)
        if isinstance(generation, ChatGeneration):
            quotes += _quotes(generation.message.content)
    observe(Answered(run_id, "\n".join(texts), tuple(quotes), time.monotonic()))


def _tool_ended(run_id: str) -> None:
    touched = TREE.tool_ended(run_id, time.monotonic())
    if touched is not None:
        observe(touched)


def _texts(content: object) -> Iterator[str]:
    """Every text in a message's content, however the provider nests its blocks."""
    if isinstance(content, str):
        yield content
    elif isinstance(content, dict):
        for value in content.values():
            yield from _texts(value)
    elif isinstance(content, list):
        for value in content:
            yield from _texts(value)


def _quotes(content: object) -> Iterator[str]:
    """What the provider itself reports as cited."""
    if isinstance(content, dict):
        cited = content.get("cited_text")
        if isinstance(cited, str):
            yield cited
        for value in content.values():
            yield from _quotes(value)
    elif isinstance(content, list):
        for value in content:
            yield from _quotes(value)
