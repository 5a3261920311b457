"""The one place where a failure of ours is caught so that the user's call goes on (fail open)."""

import logging
from collections.abc import Callable
from typing import TypeVar

_Value = TypeVar("_Value")

_LOGGER = logging.getLogger("synapse_retrievers")


class Guard:
    """Counts what failed and warns once.

    `failures` counts every one; the warning carries the traceback of the first.
    """

    def __init__(self, subject: str) -> None:
        self._subject = subject
        self._has_warned = False
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
        if not self._has_warned:
            self._has_warned = True
            _LOGGER.warning(
                "%s failed and is passed over; results stay those of the wrapped retriever, and "
                "this is said once (stats().failures counts on): %s",
                self._subject,
                error,
                exc_info=error,
            )
