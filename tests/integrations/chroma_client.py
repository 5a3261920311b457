"""Chroma in memory, for both frameworks: every client has a database of its own."""

import uuid
from functools import cache


@cache
def chroma_settings():
    """Made once: reading them takes longer than all else in a test."""
    from chromadb.config import Settings

    return Settings(anonymized_telemetry=False)


def chroma_client():
    """A database of its own: clients of one process share what they hold."""
    import chromadb

    chromadb.EphemeralClient(chroma_settings())
    name = uuid.uuid4().hex
    chromadb.AdminClient(chroma_settings()).create_database(name)
    return chromadb.EphemeralClient(chroma_settings(), database=name)
