"""The retriever that learns, for LlamaIndex."""

from llama_index.retrievers.synapse.base import SynapseRetriever
from llama_index.retrievers.synapse.postprocessor import SynapsePostprocessor

__all__ = ["SynapsePostprocessor", "SynapseRetriever"]
