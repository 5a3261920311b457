"""An index, a retriever of ours over it, and what answers use, for tests that name this plugin."""

import pytest

from llama_index.retrievers.synapse import SynapseRetriever
from synapse_retrievers.testing.corpus import QUERY
from tests.integrations.llama_index_harness import chroma


@pytest.fixture
def index():
    return chroma()


@pytest.fixture
def ours(index):
    retriever = SynapseRetriever(index.as_retriever(similarity_top_k=4), "memory:")
    yield retriever
    retriever.synapse.close()


@pytest.fixture
def used(index):
    """The two best hits of the question, in order."""
    found = index.as_retriever(similarity_top_k=4).retrieve(QUERY)
    return [hit.node for hit in found[:2]]
