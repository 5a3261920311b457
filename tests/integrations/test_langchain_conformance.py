"""LangChain keeps the promises: over Chroma, over any vector store, around any retriever."""

from langchain_synapse_retrievers import SynapseRetriever, SynapseVectorStoreRetriever
from synapse_retrievers.testing import RetrieverConformance
from synapse_retrievers.testing.corpus import CORPUS
from synapse_retrievers.testing.reins import Wrapped
from tests.integrations.langchain_harness import LangChainHarness, chroma, in_memory, stub

THRESHOLD = {"score_threshold": 0.001}


class TestChroma(RetrieverConformance):
    def build(self, where, *, corpus=CORPUS, k=6, **options):
        wrapped = Wrapped()
        store = chroma(corpus, wrapped)
        base = store.as_retriever(search_kwargs={"k": k})
        ours = SynapseRetriever.wrap(base, where, **options)
        assert isinstance(ours, SynapseVectorStoreRetriever)
        limited = store.as_retriever(
            search_type="similarity_score_threshold", search_kwargs={"k": k, **THRESHOLD}
        )
        threshold = SynapseRetriever.wrap(limited, ours.synapse)
        return LangChainHarness(ours, (threshold, {}), wrapped, store)


class TestVectorStore(RetrieverConformance):
    def build(self, where, *, corpus=CORPUS, k=6, **options):
        wrapped = Wrapped()
        store = in_memory(corpus, wrapped)
        ours = SynapseRetriever.from_vectorstore(store, where, k=k, **options)
        threshold = SynapseRetriever.from_vectorstore(
            store,
            ours.synapse,
            search_type="similarity_score_threshold",
            search_kwargs={"k": k, **THRESHOLD},
        )
        return LangChainHarness(ours, (threshold, {}), wrapped, store)


class TestAnyRetriever(RetrieverConformance):
    @property
    def cannot(self):
        return {"filter": "the user's fetch= knows nothing of the call's filter: nothing comes in"}

    def build(self, where, *, corpus=CORPUS, k=6, **options):
        wrapped = Wrapped()
        base = stub(corpus, wrapped, k)
        ours = SynapseRetriever.wrap(base, where, fetch=base.fetch, **options)
        return LangChainHarness(ours, (ours, THRESHOLD), wrapped, base)
