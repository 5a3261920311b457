"""LlamaIndex keeps the promises: over Chroma, around any retriever, and behind one."""

from llama_index.retrievers.synapse import SynapsePostprocessor, SynapseRetriever
from synapse_retrievers.testing import RetrieverConformance
from synapse_retrievers.testing.corpus import CORPUS
from synapse_retrievers.testing.reins import Wrapped
from tests.integrations.llama_index_harness import (
    RESTRICTIONS,
    LlamaIndexHarness,
    PostprocessorHarness,
    ReinedRetriever,
    StubRetriever,
    chroma,
)


def fronts(index, wrapped, k):
    """Restriction -> a retriever that has it."""
    return {
        restriction: ReinedRetriever(index, wrapped, similarity_top_k=k, **options)
        for restriction, options in RESTRICTIONS.items()
    }


class TestChroma(RetrieverConformance):
    def build(self, where, *, corpus=CORPUS, k=6, **options):
        wrapped = Wrapped()
        index = chroma(corpus, wrapped)
        bases = fronts(index, wrapped, k)
        ours = {None: SynapseRetriever(bases.pop(None), where, **options)}
        for restriction, base in bases.items():
            ours[restriction] = SynapseRetriever(base, ours[None].synapse)
        return LlamaIndexHarness(ours, wrapped, index)


class TestAnyRetriever(RetrieverConformance):
    @property
    def cannot(self):
        none = "a retriever of one's own has no restriction that LlamaIndex knows of"
        return {
            "filter": none,
            "threshold restriction": none,
            "unknown restriction": none,
            "delete": "what the user's fetch= does not give may still be there",
        }

    def build(self, where, *, corpus=CORPUS, k=6, **options):
        wrapped = Wrapped()
        base = StubRetriever(corpus, wrapped, k)
        ours = SynapseRetriever(base, where, fetch=base.fetch, **options)
        return LlamaIndexHarness({None: ours}, wrapped, base)


class TestPostprocessor(RetrieverConformance):
    def build(self, where, *, corpus=CORPUS, k=6, **options):
        wrapped = Wrapped()
        index = chroma(corpus, wrapped)
        bases = fronts(index, wrapped, k)
        ours = {None: SynapsePostprocessor(where, index=index, **options)}
        for restriction in RESTRICTIONS:
            filters = RESTRICTIONS[restriction].get("filters")
            if restriction is not None:
                ours[restriction] = SynapsePostprocessor(
                    ours[None].synapse, index=index, filters=filters
                )
        return PostprocessorHarness(ours, bases, wrapped, index)
