"""What the library raises, and what to do about it.

SynapseError
├── ParamError (ValueError)            a setting is outside its range
├── NodeIdError (ValueError)           an id is missing or not text
├── NamespaceError (ValueError)        a namespace is not a single token
├── FeedbackError (ValueError)         feedback with a value that has no meaning
├── TimeLimitError (TimeoutError)      a recall took longer than it may
├── UnknownRunError (LookupError)      a run id that this process does not know
├── StoreError                         the store failed
│   ├── StoreBusyError                 the lock was not had in time
│   ├── NamespaceClaimedError          the namespace serves another collection or kind of nodes
│   ├── StoreVersionError              written by a newer release
│   └── StoreCorruptError              the file is damaged or is no store
└── MissingExtraError (ImportError)    an optional dependency is not installed
"""


class SynapseError(Exception):
    """Anything that this library raises on purpose."""


class ParamError(SynapseError, ValueError):
    """A setting is outside its range."""

    def __init__(self, name: str, value: object, expected: str) -> None:
        super().__init__(f"{name}={value!r} is not allowed: give a value {expected}")
        self.name = name
        self.value = value


class NodeIdError(SynapseError, ValueError):
    """An id is missing or not text."""

    def __init__(self, value: object, *, is_list: bool = False) -> None:
        told = (
            f"{value!r:.100} is no list of node ids: put ids, also a single one, into a list"
            if is_list
            else f"{value!r:.100} is no node id: ids are non-empty text that UTF-8 can hold; "
            "convert yours with str() before you pass them"
        )
        super().__init__(told)
        self.value = value


class NamespaceError(SynapseError, ValueError):
    """A namespace is not a single token."""

    def __init__(self, value: object) -> None:
        super().__init__(
            f"{value!r:.100} is no namespace: give 'personal', 'shared', 'ephemeral', "
            "'branch:<name>' or one token of your own without white space, 200 characters at most"
        )
        self.value = value


class FeedbackError(SynapseError, ValueError):
    """Feedback with a value that has no meaning."""

    def __init__(self, name: str, value: object, expected: str) -> None:
        super().__init__(f"feedback cannot use {name}={value!r:.100}: give {expected}")
        self.name = name
        self.value = value


class TimeLimitError(SynapseError, TimeoutError):
    """A recall took longer than it may; it then changes nothing."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"no answer within {seconds:g} s: raise RecallParams(time_limit=...)")


class UnknownRunError(SynapseError, LookupError):
    """A run id that this process does not know."""

    def __init__(self, run_id: object) -> None:
        super().__init__(
            f"run {run_id!r:.100} is not known here: it ran in another process or its hour is "
            "over; pass query= and used= instead"
        )
        self.run_id = run_id


class StoreError(SynapseError):
    """The store failed; the cause is chained."""


class StoreBusyError(StoreError):
    """The lock was not had in time."""

    def __init__(self, url: str, seconds: float) -> None:
        super().__init__(
            f"{url} stayed locked for {seconds:g} s and nothing was written: call again, or find "
            "the process that holds it"
        )


class NamespaceClaimedError(StoreError):
    """The namespace serves another collection, or joins another kind of nodes."""

    def __init__(
        self, url: str, namespace: str, kept: tuple[str, str], asked: tuple[str, str]
    ) -> None:
        super().__init__(
            f"namespace {namespace!r} of {url} joins nodes by {kept[0]!r} of collection "
            f"{kept[1]!r}, not by {asked[0]!r} of {asked[1]!r}: give this retriever a namespace= "
            "of its own"
        )


class StoreVersionError(StoreError):
    """The store was written by a newer release."""

    def __init__(self, url: str, found: int, known: int) -> None:
        super().__init__(
            f"{url} has schema version {found}, this release knows {known}: "
            "upgrade synapse-retrievers or name another file"
        )


class StoreCorruptError(StoreError):
    """The file is damaged or is no store of ours."""

    def __init__(self, url: str, reason: object) -> None:
        super().__init__(
            f"{url} cannot be read as a synapse store ({reason}): restore a copy, or move the "
            "file away and start anew"
        )


class MissingExtraError(SynapseError, ImportError):
    """An optional dependency is not installed."""

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(f"{feature} needs: pip install 'synapse-retrievers[{extra}]'")
        self.extra = extra
