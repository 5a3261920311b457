"""The promises of a retriever; an adapter joins by `build`."""

from synapse_retrievers.testing.bound_promises import BoundPromises
from synapse_retrievers.testing.door_promises import DoorPromises
from synapse_retrievers.testing.durable_promises import DurablePromises
from synapse_retrievers.testing.keeping_promises import KeepingPromises
from synapse_retrievers.testing.learning_promises import LearningPromises
from synapse_retrievers.testing.result_promises import ResultPromises


class RetrieverConformance(
    ResultPromises, DoorPromises, LearningPromises, BoundPromises, DurablePromises, KeepingPromises
):
    """P1 to P14, sync and async.

    class TestMine(RetrieverConformance):
        def build(self, where, *, corpus=CORPUS, k=6, **options):
            return MyHarness(...)
    """
