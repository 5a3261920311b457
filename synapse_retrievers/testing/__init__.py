"""Suites that a backend or a retriever joins to prove that it keeps the promises."""

from synapse_retrievers.testing.retriever_conformance import RetrieverConformance
from synapse_retrievers.testing.store_conformance import StoreConformance

__all__ = ["RetrieverConformance", "StoreConformance"]
