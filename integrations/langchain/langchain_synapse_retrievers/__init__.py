"""The retriever that learns, for LangChain."""

from langchain_synapse_retrievers.listener import SynapseListener
from langchain_synapse_retrievers.retriever import SynapseRetriever, SynapseVectorStoreRetriever

__all__ = ["SynapseListener", "SynapseRetriever", "SynapseVectorStoreRetriever"]
