"""What a framework reports, in words of no framework; `at` is in monotonic seconds."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from synapse_retrievers.types import Namespace, NodeId


@dataclass(frozen=True, slots=True)
class Result:
    """One place of a returned result list.

    Attributes:
        node: What is learned about; None: the wrapped store gives it no id.
        text: What the LLM may have been given of it.
        chunk: Its own id where the node is a document.
        source: The path or address it was made from, if that is known.
    """

    node: NodeId | None
    text: str = ""
    chunk: NodeId | None = None
    source: str | None = None


@dataclass(frozen=True, slots=True)
class Retrieved:
    """A retriever of ours returned results.

    Attributes:
        run_id: The retriever's own run.
        root_id: The root call it belongs to; itself when it was called alone.
        owner: Whose memory is taught.
        namespace: The active one at that moment.
        query: As asked.
        results: In the order in which they were returned.
        carriers: Displaced-in node -> what carried it in.
        at: When.
    """

    run_id: str
    root_id: str
    owner: object
    namespace: Namespace
    query: str
    results: tuple[Result, ...]
    carriers: Mapping[NodeId, object] = field(default_factory=dict)
    at: float = 0.0


@dataclass(frozen=True, slots=True)
class Prompted:
    """An LLM was given a prompt; `run_id` is the LLM's own run."""

    run_id: str
    root_id: str
    text: str
    at: float = 0.0


@dataclass(frozen=True, slots=True)
class Answered:
    """An LLM answered a prompt; empty text where it only called tools.

    `quotes` are passages that the provider itself reports as cited.
    """

    run_id: str
    text: str
    quotes: tuple[str, ...] = ()
    at: float = 0.0


@dataclass(frozen=True, slots=True)
class ToolTouched:
    """A tool call that succeeded; `run_id` is the tool's own run."""

    run_id: str
    root_id: str
    tool: str
    inputs: Mapping[str, object] | str
    at: float = 0.0
