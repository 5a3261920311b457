"""langchain-tests' own suite for retrievers, unmodified, cold and warm."""

import pytest
from langchain_tests.integration_tests import RetrieversIntegrationTests

from langchain_synapse_retrievers import SynapseRetriever, SynapseVectorStoreRetriever
from synapse_retrievers import Synapse
from synapse_retrievers.testing.corpus import CORPUS
from tests.integrations.langchain_harness import chroma, in_memory, stub


class TestVectorStore(RetrieversIntegrationTests):
    @pytest.fixture(autouse=True, params=["cold", "warm"])
    def _memory(self, request):
        self.synapse = Synapse("memory:")
        if request.param == "warm":
            for entry in CORPUS:
                self.synapse.reinforce(
                    [entry.id, CORPUS[0].id, CORPUS[-1].id],
                    query=self.retriever_query_example,
                )

    @property
    def retriever_constructor(self):
        return SynapseVectorStoreRetriever

    @property
    def retriever_constructor_params(self):
        return {"vectorstore": self.vectorstore(), "synapse": self.synapse}

    @property
    def retriever_query_example(self):
        return "how often do signing keys rotate"

    def vectorstore(self):
        return in_memory()


class TestChroma(TestVectorStore):
    def vectorstore(self):
        return chroma()


class TestAnyRetriever(TestVectorStore):
    @property
    def retriever_constructor(self):
        return SynapseRetriever

    @property
    def retriever_constructor_params(self):
        base = stub()
        return {"base": base, "synapse": self.synapse, "fetch": base.fetch}
