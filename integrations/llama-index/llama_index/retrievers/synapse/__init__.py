"""The retriever that learns, for LlamaIndex."""

from llama_index.retrievers.synapse.base import SynapsePostprocessor, SynapseRetriever

__all__ = ["SynapsePostprocessor", "SynapseRetriever"]
