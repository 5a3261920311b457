"""Fourteen texts, one question, and an embedding that needs no model."""

import zlib
from dataclasses import dataclass
from typing import Any

from synapse_retrievers.types import NodeId

_TEXTS = (
    "Signing keys rotate every ninety days and the former key stays valid for one week.",
    "The circuit breaker opens after five failed calls and probes the backend each minute.",
    "Invoices are rendered by the billing worker that reads the ledger table at midnight.",
    "Uploaded images pass through a virus scanner before the thumbnail service resizes them.",
    "Session tokens are stored in a redis cluster whose replicas live in two regions.",
    "Search queries fall back to trigram matching when the inverted index is rebuilding.",
    "Feature flags are evaluated on the edge proxy from a snapshot pushed every minute.",
    "The audit trail is append only and its entries are chained by cryptographic hashes.",
    "Rate limits use a leaky bucket per account with burst capacity for paying customers.",
    "Backups of the ledger are encrypted by the vault and restored quarterly as a drill.",
    "Webhook deliveries retry with exponential backoff until the receiving server confirms.",
    "Password hashes were migrated from bcrypt to argon without asking users to log in.",
    "The mobile client batches telemetry events and sends them when charging on wifi.",
    "Database migrations run inside a canary deployment guarded by a health check endpoint.",
)


@dataclass(frozen=True, slots=True)
class Entry:
    """One document of the corpus; `tenant` and `source` stand in its metadata."""

    id: NodeId
    text: str
    tenant: str
    source: str

    @property
    def metadata(self) -> dict[str, Any]:
        """A fresh mapping each time."""
        return {"tenant": self.tenant, "source": self.source}


CORPUS = tuple(
    Entry(f"n{place:02}", text, "ab"[place % 2], f"docs/{place:02}/guide.md")
    for place, text in enumerate(_TEXTS)
)
"""Fourteen texts that share few words; even places belong to tenant a, odd ones to tenant b."""

QUERY = "how often are the signing keys of a session changed"
"""A question of which no text holds three words in a row."""


def embed(text: str) -> list[float]:
    """A bag of hashed words as a vector of 64 places; equal in every process."""
    vector = [0.01] * 64
    for word in text.lower().replace(".", " ").split():
        vector[zlib.crc32(word.encode("utf-8", "replace")) % 64] += 1.0
    length = sum(value * value for value in vector) ** 0.5
    return [value / length for value in vector]
