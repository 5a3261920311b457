"""The oracle keeps the promises too."""

import pytest

from synapse_retrievers.stores.memory import MemoryStore
from synapse_retrievers.testing import StoreConformance


class TestMemoryStore(StoreConformance):
    @pytest.fixture
    def store(self):
        return MemoryStore()
