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
    node,
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
        return {
            "filter": "the user's fetch= knows nothing of the retriever's filters",
        }

    def build(self, where, *, corpus=CORPUS, k=6, **options):
        wrapped = Wrapped()
        nodes = {entry.id: node(entry) for entry in corpus}
        bases = {
            restriction: StubRetriever(nodes, wrapped, k, **limits)
            for restriction, limits in RESTRICTIONS.items()
        }
        base = bases.pop(None)
        ours = {None: SynapseRetriever(base, where, fetch=base.fetch, **options)}
        for restriction, limited in bases.items():
            ours[restriction] = SynapseRetriever(limited, ours[None].synapse, fetch=limited.fetch)
        return LlamaIndexHarness(ours, wrapped, base)


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
