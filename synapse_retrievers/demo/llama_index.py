"""The same retrievers through LlamaIndex, on the index that LangChain has filled."""

from typing import Any

from langchain_chroma import Chroma
from langchain_core.embeddings import Embeddings
from llama_index.core import VectorStoreIndex
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.vector_stores.chroma import ChromaVectorStore

from llama_index.retrievers.synapse import SynapseRetriever
from synapse_retrievers.demo.learner import Retrievers
from synapse_retrievers.synapse import Synapse


class _Embeddings(BaseEmbedding):
    """LangChain's embeddings as LlamaIndex asks for them."""

    embeddings: Any

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._get_query_embedding(text)

    def _get_query_embedding(self, query: str) -> list[float]:
        vector: list[float] = self.embeddings.embed_query(query)
        return vector

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_query_embedding(query)


def retrievers(vectorstore: Chroma, embeddings: Embeddings, synapse: Synapse, k: int) -> Retrievers:
    """Plain and wrapped: query -> the sources of its chunks."""
    vectors = ChromaVectorStore(chroma_collection=vectorstore._collection)  # noqa: SLF001
    index = VectorStoreIndex.from_vector_store(vectors, _Embeddings(embeddings=embeddings))
    base = index.as_retriever(similarity_top_k=k)
    wrapped = SynapseRetriever(base, synapse, node="source")
    return Retrievers(
        lambda query: tuple(hit.metadata["source"] for hit in base.retrieve(query)),
        lambda query: tuple(hit.metadata["source"] for hit in wrapped.retrieve(query)),
        lambda: wrapped.last_trace,
    )
