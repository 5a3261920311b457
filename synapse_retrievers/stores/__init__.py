"""Where edges and episodes live."""

from synapse_retrievers.stores.base import SCHEMA, Reader, Rule, Store
from synapse_retrievers.stores.memory import MemoryStore
from synapse_retrievers.stores.sqlite import SQLiteStore
from synapse_retrievers.stores.url import open_store

__all__ = ["SCHEMA", "MemoryStore", "Reader", "Rule", "SQLiteStore", "Store", "open_store"]
