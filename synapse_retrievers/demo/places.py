"""Where the demo writes, tried before any work is done."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from synapse_retrievers.errors import SynapseError
from synapse_retrievers.synapse import Synapse


class FolderError(SynapseError):
    """A folder cannot be written to."""

    def __init__(self, folder: Path, reason: str, option: str) -> None:
        super().__init__(f"{folder} cannot be written to ({reason}): name another {option}")


class TaughtStoreError(SynapseError):
    """The store was taught before, so what it is asked would not be new to it."""

    def __init__(self, store: Path) -> None:
        super().__init__(
            f"{store} has been taught already, figures from it would flatter: name a new file with "
            "--store"
        )


@contextmanager
def open_places(store: Path | None, folder: Path | None) -> Iterator[Path]:
    """Where the store goes: as asked, or a file that is gone afterwards.

    Raises:
        FolderError: A place cannot be written.
        TaughtStoreError: The store has been taught before.
    """
    if folder is not None:
        _check_writable(folder, "with --folder")
    if store is not None:
        _check_writable(store.parent, "with --store")
        _check_new(store)
        yield store
        return
    try:
        scratch = tempfile.TemporaryDirectory(prefix="synapse-demo-", ignore_cleanup_errors=True)
    except OSError as error:
        reason = error.strerror or "none is usable"
        raise FolderError(Path(tempfile.gettempdir()), reason, "in TMPDIR") from error
    with scratch as name:
        yield Path(name) / "synapse.db"


def _check_writable(folder: Path, option: str) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise FolderError(folder, error.strerror or str(error), option) from error


def _check_new(store: Path) -> None:
    if not store.exists():
        return
    synapse = Synapse(store)
    try:
        if any(space.episodes for space in synapse.stats().namespaces.values()):
            raise TaughtStoreError(store)
    finally:
        synapse.close()
