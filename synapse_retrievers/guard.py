"""The one place where a failure of ours is caught so that the user's call goes on (fail open)."""

import logging
from collections.abc import Callable
from typing import Any, TypeVar
from weakref import WeakSet

from synapse_retrievers.errors import SynapseError

_Value = TypeVar("_Value")

_LOGGER = logging.getLogger("synapse_retrievers")


_WARNED_NAMES: set[Any] = set()
_WARNED_OBJECTS: "WeakSet[Any]" = WeakSet()


class Guard:
    """Counts what failed and warns once of each subject, however many objects guard it.

    `failures` counts every one; the warning tells the first.
    """

    def __init__(self, subject: str, of: object = None) -> None:
        """Guard something.

        Args:
            subject: What the warning says has failed.
            of: The object that is warned of once; None: whatever has this name.
        """
        self._subject = subject
        self._of = of
        self.failures = 0

    def run(self, action: Callable[[], _Value], otherwise: _Value) -> _Value:
        """What `action` gives; `otherwise` where it fails, whatever it raises."""
        try:
            return action()
        except Exception as error:  # fail open: the user's own call must not see it
            self.note(error)
            return otherwise

    def note(self, error: Exception) -> None:
        """Count a failure, and warn if it is the first."""
        self.failures += 1
        if not self._was_warned_of():
            _LOGGER.warning(
                "%s failed and is passed over; results stay those of the wrapped retriever, and "
                "this is said once (stats().failures counts on): %s",
                self._subject,
                error,
                # Our own errors say all in one line; where another comes from has to be seen.
                exc_info=None if isinstance(error, SynapseError) else error,
            )

    def _was_warned_of(self) -> bool:
        """Whether somebody was warned before; from now on, yes."""
        known: set[Any] | WeakSet[Any] = _WARNED_NAMES if self._of is None else _WARNED_OBJECTS
        key = self._subject if self._of is None else self._of
        was_warned = key in known
        known.add(key)
        return was_warned
