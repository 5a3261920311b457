"""What LlamaIndex reports, told to the core; one pair of handlers hears the whole process."""

import inspect
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any
from weakref import ref

from llama_index.core.base.llms.base import BaseLLM
from llama_index.core.base.llms.types import ChatMessage, ChatResponse
from llama_index.core.base.response.schema import AsyncStreamingResponse, StreamingResponse
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore
from llama_index.core.tools.types import BaseTool
from llama_index_instrumentation import get_dispatcher
from llama_index_instrumentation.base.event import BaseEvent
from llama_index_instrumentation.event_handlers import BaseEventHandler
from llama_index_instrumentation.span_handlers import BaseSpanHandler

from llama_index.retrievers.synapse._shelves import restrictions_of
from synapse_retrievers import LEDGER, LISTENING, TREE, Answered, Guard, Prompted, observe_soon

_GUARD = Guard("the LlamaIndex listener")
_RESTRICTED: dict[str, None] = {}
"""Root spans in which a retriever with filters ran; the newest ones."""
_RESTRICTED_KEPT = 1_000
_KEPT_IN: deque[list["ref[NodeWithScore]"]] = deque(maxlen=64)
"""The very hits that retrievers with filters returned; the newest ones."""
_STREAMED: ContextVar[tuple[str, ...]] = ContextVar("synapse_streamed", default=())
"""The root spans of this context's last engines that returned streams, which may be unread yet."""
_STREAMED_KEPT = 8
_CALLED: ContextVar[str | None] = ContextVar("synapse_called", default=None)
"""The span of the model that this context called last outside of any other span."""


class SynapseEvents(BaseEventHandler):
    """Prompts and answers. A streamed response is never touched: its text comes with the end."""

    @classmethod
    def class_name(cls) -> str:
        """The name that LlamaIndex knows it by."""
        return "SynapseEvents"

    def handle(self, event: BaseEvent, **_: Any) -> None:
        """Look at the event's class first: there is one for every token."""
        note = _NOTED.get(type(event).__name__)
        if note is not None and len(LEDGER):
            _GUARD.run(lambda: note(event), None)


class SynapseSpans(BaseSpanHandler[Any]):
    """Which span belongs to which root, and which tools were called; keeps no span."""

    @classmethod
    def class_name(cls) -> str:
        """The name that LlamaIndex knows it by."""
        return "SynapseSpans"

    def new_span(
        self,
        id_: str,
        bound_args: inspect.BoundArguments,
        instance: Any | None = None,
        parent_span_id: str | None = None,
        tags: dict[str, Any] | None = None,  # noqa: ARG002 - LlamaIndex's signature
        **_: Any,
    ) -> None:
        """Note it."""
        _GUARD.run(lambda: _entered(id_, bound_args, instance, parent_span_id), None)

    def prepare_to_exit_span(
        self,
        id_: str,
        bound_args: inspect.BoundArguments,  # noqa: ARG002 - LlamaIndex's signature
        instance: Any | None = None,
        result: Any | None = None,
        **_: Any,
    ) -> None:
        """A tool call that succeeded has touched what it names."""
        _GUARD.run(lambda: _returned(id_, instance, result), None)
        _GUARD.run(lambda: _left(id_, is_good=not getattr(result, "is_error", False)), None)

    def prepare_to_drop_span(
        self,
        id_: str,
        bound_args: inspect.BoundArguments,  # noqa: ARG002 - LlamaIndex's signature
        instance: Any | None = None,  # noqa: ARG002 - LlamaIndex's signature
        err: BaseException | None = None,  # noqa: ARG002 - LlamaIndex's signature
        **_: Any,
    ) -> None:
        """A tool call that failed has touched nothing."""
        _GUARD.run(lambda: _left(id_, is_good=False), None)


def listen() -> None:
    """Hear the whole process from now on; once, however often it is called."""
    if "llama-index" not in LISTENING:
        LISTENING.add("llama-index")
        root = get_dispatcher()
        root.add_event_handler(SynapseEvents())
        root.add_span_handler(SynapseSpans())


def were_restricted(span_id: str | None, hits: Sequence[NodeWithScore]) -> bool:
    """Whether these hits come from a retriever with filters, as far as that can be seen.

    One that ran under the same root, or one that returned one of them lately: an engine's
    `retrieve` opens no root around its parts.
    """
    if span_id is not None and TREE.root_of(span_id) in _RESTRICTED:
        return True
    kept = {id(hit()) for hits in tuple(_KEPT_IN) for hit in hits}
    return any(id(hit) in kept for hit in hits)


def _entered(
    id_: str, bound_args: inspect.BoundArguments, instance: object, parent_id: str | None
) -> None:
    if isinstance(instance, BaseTool) and id_.split(".", 1)[-1].startswith(("call-", "acall-")):
        inputs = {**bound_args.arguments, **bound_args.arguments.get("kwargs", {})}
        TREE.tool_started(id_, parent_id, instance.metadata.get_name(), inputs)
        return
    root_id = TREE.started(id_, parent_id)
    if parent_id is None and isinstance(instance, BaseLLM):
        _CALLED.set(id_)
    if isinstance(instance, BaseRetriever) and restrictions_of(instance):
        _RESTRICTED[root_id] = None
        while len(_RESTRICTED) > _RESTRICTED_KEPT:
            _RESTRICTED.pop(next(iter(_RESTRICTED)), None)


def _returned(id_: str, instance: object, result: object) -> None:
    if isinstance(instance, BaseRetriever) and isinstance(result, list):
        if restrictions_of(instance):
            _KEPT_IN.append([ref(hit) for hit in result])
        return
    if TREE.root_of(id_) == id_ and not isinstance(instance, BaseLLM):
        is_stream = isinstance(result, StreamingResponse | AsyncStreamingResponse)
        _STREAMED.set((*_STREAMED.get(), id_)[-_STREAMED_KEPT:] if is_stream else ())


def _left(id_: str, *, is_good: bool) -> None:
    touched = TREE.tool_ended(id_, time.monotonic())
    if touched is not None and is_good:
        observe_soon(touched)


def _prompted(event: Any, text: str) -> None:
    root_id = TREE.root_of(event.span_id) if event.span_id else event.id_
    if root_id == _CALLED.get():
        # Reading a stream calls the model when the engine's own spans are over.
        root_id = _stream_of(text) or root_id
    observe_soon(Prompted(_llm_run(event, text), root_id, text, time.monotonic()))


def _stream_of(prompt: str) -> str | None:
    """The stream of this context whose question the prompt asks; the last one if none is seen."""
    streamed = _STREAMED.get()
    for root_id in reversed(streamed):
        if any(asked.query in prompt for _, asked in LEDGER.results_of(root_id)):
            return root_id
    return streamed[-1] if streamed else None


def _answered(event: Any, prompt: str, texts: Sequence[str], quotes: Sequence[str] = ()) -> None:
    run_id = _llm_run(event, prompt)
    observe_soon(Answered(run_id, "\n".join(texts), tuple(quotes), time.monotonic()))


def _llm_run(event: Any, prompt: str) -> str:
    """The same for the start and the end of one call, also when its stream outlived its span."""
    return f"{event.span_id}/{hash(prompt)}"


def _chat_started(event: Any) -> None:
    _prompted(event, _joined(event.messages))


def _chat_ended(event: Any) -> None:
    if isinstance(event.response, ChatResponse):
        message = event.response.message
        _answered(event, _joined(event.messages), [*_texts([message])], [*_quotes(message)])


def _completion_started(event: Any) -> None:
    _prompted(event, event.prompt)


def _completion_ended(event: Any) -> None:
    _answered(event, event.prompt, [event.response.text or ""])


_NOTED: dict[str, Callable[[Any], None]] = {
    "LLMChatStartEvent": _chat_started,
    "LLMChatEndEvent": _chat_ended,
    "LLMCompletionStartEvent": _completion_started,
    "LLMCompletionEndEvent": _completion_ended,
}


def _joined(messages: Sequence[ChatMessage]) -> str:
    return "\n".join(_texts(messages))


def _texts(messages: Sequence[ChatMessage]) -> Iterator[str]:
    for message in messages:
        for block in message.blocks:
            text = getattr(block, "text", None)
            if isinstance(text, str):
                yield text


def _quotes(message: ChatMessage) -> Iterator[str]:
    """What the provider itself reports as cited."""
    for block in message.blocks:
        cited = getattr(getattr(block, "cited_content", None), "text", None)
        if isinstance(cited, str):
            yield cited
