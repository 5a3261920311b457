"""A retriever that learns which nodes belong together, inside the same result count.

query -> wrapped hits -> seed -> spread | cue -> fuse -> displace -> as many results
      -> event -> ledger -> usage -> evidence -> lesson -> reinforce -> half_life -> decay -> store
"""

from synapse_retrievers.active_run import ActiveRun
from synapse_retrievers.errors import (
    FeedbackError,
    MissingExtraError,
    NamespaceClaimedError,
    NamespaceError,
    NodeIdError,
    ParamError,
    StoreBusyError,
    StoreCorruptError,
    StoreError,
    StoreVersionError,
    SynapseError,
    TimeLimitError,
    UnknownRunError,
)
from synapse_retrievers.events.event import Answered, Prompted, Result, Retrieved, ToolTouched
from synapse_retrievers.guard import Guard
from synapse_retrievers.keeping import Neighbor
from synapse_retrievers.last_trace import LastTrace, mark_context
from synapse_retrievers.observer import LEDGER, LISTENING, TREE, observe, observe_soon
from synapse_retrievers.params import LearningParams, RecallParams
from synapse_retrievers.recall.chunk import best_chunk
from synapse_retrievers.recall.explain import Carrier, Move, Reached, Trace
from synapse_retrievers.recall.plan import Plan, Recalled
from synapse_retrievers.seam import Call, Found, Seam, memory, node_kind
from synapse_retrievers.stats import Stats
from synapse_retrievers.stores.url import open_store
from synapse_retrievers.synapse import Synapse
from synapse_retrievers.tokens import tokens
from synapse_retrievers.types import Edge, Episode, Hit, Namespace, NodeId, Removed, Use

__version__ = "0.1.0"

__all__ = [
    "LEDGER",
    "LISTENING",
    "TREE",
    "ActiveRun",
    "Answered",
    "Call",
    "Carrier",
    "Edge",
    "Episode",
    "FeedbackError",
    "Found",
    "Guard",
    "Hit",
    "LastTrace",
    "LearningParams",
    "MissingExtraError",
    "Move",
    "Namespace",
    "NamespaceClaimedError",
    "NamespaceError",
    "Neighbor",
    "NodeId",
    "NodeIdError",
    "ParamError",
    "Plan",
    "Prompted",
    "Reached",
    "RecallParams",
    "Recalled",
    "Removed",
    "Result",
    "Retrieved",
    "Seam",
    "Stats",
    "StoreBusyError",
    "StoreCorruptError",
    "StoreError",
    "StoreVersionError",
    "Synapse",
    "SynapseError",
    "TimeLimitError",
    "ToolTouched",
    "Trace",
    "UnknownRunError",
    "Use",
    "best_chunk",
    "mark_context",
    "memory",
    "node_kind",
    "observe",
    "observe_soon",
    "open_store",
    "tokens",
]
