"""What the promises about results are made of."""

import copy
import logging
from pathlib import Path

import pytest

from synapse_retrievers.synapse import Synapse
from synapse_retrievers.testing.corpus import QUERY, Entry
from synapse_retrievers.testing.harness import Harness, RetrieverSuite, warm


class Checks(RetrieverSuite):
    """What the promises about results are made of."""

    def is_untouched(
        self, harness: Harness, way: str, namespace: str | None = None, *, is_copied: bool = True
    ) -> None:
        """What comes back is what the wrapped retriever returned.

        Args:
            harness: Asked once, or twice.
            way: How.
            namespace: Named by the call.
            is_copied: Ask again with the same objects, and compare them with a copy.
        """
        found = harness.ask(QUERY, way=way, namespace=namespace)
        wrapped = harness.wrapped.lists[-1]
        if "same list" not in self.cannot:
            assert found is wrapped
        assert [id(one) for one in found] == [id(one) for one in wrapped]
        if is_copied:
            before = copy.deepcopy(wrapped)
            harness.wrapped.forced = wrapped
            harness.ask(QUERY, way=way, namespace=namespace)
            harness.wrapped.forced = None
            assert wrapped == before

    def is_warm(self, harness: Harness, way: str, namespace: str | None = None) -> Entry:
        """Teach, and see that the result changes."""
        absent = warm(harness, namespace=namespace)
        found = harness.ids(harness.ask(QUERY, way=way, namespace=namespace))
        if "fetch" in self.cannot:
            trace = harness.last_trace()
            assert trace is not None
            assert trace.reached
        else:
            assert absent.id in found
        return absent

    def warm_file(self, folder: Path, way: str) -> Path:
        """A closed store that would change the result."""
        folder.mkdir(exist_ok=True)
        path = folder / "kept" / "synapse.db"
        path.parent.mkdir()
        harness = self.build(Synapse(str(path)))
        self.is_warm(harness, way)
        harness.synapse.close()
        return path


def ours(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    """The warnings of this library."""
    return [record for record in caplog.records if record.name.startswith("synapse_retrievers")]
