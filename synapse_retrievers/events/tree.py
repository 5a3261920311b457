"""Which run belongs to which root call, and which tool calls only retrieved."""

import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass

from synapse_retrievers.events.event import ToolTouched

_RUNS = 10_000
_TOOLS = 256
_DEEPEST = 100


@dataclass(frozen=True, slots=True)
class _Started:
    root_id: str
    tool: str
    inputs: Mapping[str, object] | str


class Tree:
    """Thread-safe; bounded, because a run that was abandoned never reports its end."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._parents: OrderedDict[str, str | None] = OrderedDict()
        self._tools: OrderedDict[str, _Started] = OrderedDict()

    def __len__(self) -> int:
        """How many runs it knows."""
        return len(self._parents)

    def started(self, run_id: str, parent_id: str | None) -> str:
        """Note a run and its parent; the root it belongs to."""
        with self._lock:
            self._parents[run_id] = parent_id
            while len(self._parents) > _RUNS:
                self._parents.popitem(last=False)
            return self._path(run_id)[-1]

    def root_of(self, run_id: str) -> str:
        """The root that a run belongs to, as far as it is known."""
        with self._lock:
            return self._path(run_id)[-1]

    def tool_started(
        self, run_id: str, parent_id: str | None, tool: str, inputs: Mapping[str, object] | str
    ) -> None:
        """Note a tool call, until it ends."""
        root_id = self.started(run_id, parent_id)
        with self._lock:
            self._tools[run_id] = _Started(root_id, tool, inputs)
            while len(self._tools) > _TOOLS:
                self._tools.popitem(last=False)

    def tool_ended(self, run_id: str, at: float) -> ToolTouched | None:
        """The call as an event; None if it only retrieved, or was never noted."""
        with self._lock:
            started = self._tools.pop(run_id, None)
        if started is None:
            return None
        return ToolTouched(run_id, started.root_id, started.tool, started.inputs, at)

    def retrieved(self, run_id: str) -> None:
        """Note that a run retrieved: the tool calls above it touch nothing by what they ask."""
        with self._lock:
            for above in self._path(run_id):
                self._tools.pop(above, None)

    def _path(self, run_id: str) -> list[str]:
        path = [run_id]
        while len(path) < _DEEPEST:
            parent = self._parents.get(path[-1])
            if parent is None or parent in path:
                break
            path.append(parent)
        return path
