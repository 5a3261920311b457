"""The chunks of a repository in an embedded Chroma, with vectors that need no network."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import chromadb
from chromadb.config import Settings
from langchain_chroma import Chroma
from langchain_core.embeddings import Embeddings

from synapse_retrievers.evaluation.embedding import embed
from synapse_retrievers.evaluation.tree import chunks

_BATCH = 256
_SEARCH = {
    "hnsw:space": "cosine",
    # Wide enough to find nearly always what an exact search finds: with Chroma's defaults one or
    # two queries in a hundred get another answer on every new build, and the figures wander.
    "hnsw:construction_ef": 200,
    "hnsw:M": 32,
    "hnsw:search_ef": 200,
}


class WordLlamaEmbeddings(Embeddings):
    """Wordllama's vectors, as LangChain asks for them.

    Queries are embedded once and remembered, so that a timed query is a query of the store alone.
    """

    def __init__(self) -> None:
        self._queries: dict[str, list[float]] = {}

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """One vector of length 1 a text; 0 for a text without a known word."""
        return [row.tolist() for row in embed(texts)]

    def embed_query(self, text: str) -> list[float]:
        """The vector of one text."""
        if text not in self._queries:
            self.remember([text])
        return self._queries[text]

    def remember(self, queries: Sequence[str]) -> None:
        """Embed the queries now."""
        distinct = list(dict.fromkeys(queries))
        if distinct:
            self._queries.update(zip(distinct, self.embed_documents(distinct), strict=True))


@dataclass(frozen=True, slots=True)
class Index:
    """The chunks of a repository and the vector store that they go into; `pieces`: (path, text)."""

    vectorstore: Chroma
    embeddings: WordLlamaEmbeddings
    pieces: tuple[tuple[str, str], ...]

    @classmethod
    def build(
        cls, repository: str, commit: str, files: Mapping[str, str], folder: Path | None
    ) -> "Index":
        """The index of `files` as they stood at `commit`, in `folder` or in memory; not filled."""
        settings = Settings(anonymized_telemetry=False)
        client = (
            chromadb.EphemeralClient(settings)
            if folder is None
            else chromadb.PersistentClient(folder, settings)
        )
        # A name of its own: all in-memory clients of a process share their collections.
        name = re.sub(r"[^A-Za-z0-9]+", "-", repository).strip("-")[:40]
        embeddings = WordLlamaEmbeddings()
        vectorstore = Chroma(
            f"synapse-demo-{name}-{commit[:12]}",
            embeddings,
            client=client,
            collection_metadata=_SEARCH,
        )
        pieces = [(path, piece) for path, text in files.items() for piece in chunks(path, text)]
        return cls(vectorstore, embeddings, tuple(pieces))

    def fill(self, progress: Callable[[int, int], None]) -> None:
        """Put all chunks in; a complete index of the same commit is used as it is."""
        known = len(self.vectorstore.get(include=[])["ids"])
        if known == len(self.pieces):
            return
        if known:
            self.vectorstore.reset_collection()
        for at in range(0, len(self.pieces), _BATCH):
            batch = self.pieces[at : at + _BATCH]
            self.vectorstore.add_texts(
                [text for _, text in batch],
                metadatas=[{"source": path} for path, _ in batch],
                ids=[f"{at + place:07d}" for place in range(len(batch))],
            )
            progress(at + len(batch), len(self.pieces))

    def drop(self) -> None:
        """Free what an index in memory holds; the process may go on."""
        self.vectorstore.delete_collection()
