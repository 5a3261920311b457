"""What is refused at the edge, before anything is read or written."""

import math
from collections.abc import Iterable, Sequence
from operator import is_

from synapse_retrievers.errors import FeedbackError, NamespaceError, NodeIdError, ParamError
from synapse_retrievers.types import Hit, Namespace, NodeId

_LONGEST_NAMESPACE = 200
_LONGEST_QUERY = 10_000


def checked_id(value: object) -> NodeId:
    """The value, if it is non-empty text that UTF-8 can hold.

    Raises:
        NodeIdError: It is not.
    """
    if type(value) is not str and isinstance(value, str):
        value = str.__str__(value)
    if not isinstance(value, str) or not value:
        raise NodeIdError(value)
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise NodeIdError(value) from None
    return value


def checked_ids(values: Iterable[object]) -> list[NodeId]:
    """The distinct ids in their first order.

    Raises:
        NodeIdError: One is no id, or a single text was given where a list is meant.
    """
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise NodeIdError(values, is_list=True)
    return list(dict.fromkeys(map(checked_id, values)))


def checked_hits(values: Sequence[Hit | NodeId | tuple[NodeId, float] | None]) -> list[Hit]:
    """The values as hits, the very list if it is one; ids alone and (id, score) are taken too.

    Raises:
        NodeIdError: A value is no hit, or its id no id.
    """
    hits = [_hit(value) for value in values]
    if isinstance(values, list) and all(map(is_, hits, values)):
        return values
    return hits


def _hit(value: object) -> Hit:
    if isinstance(value, Hit):
        return (
            value
            if value.id is None or checked_id(value.id) is value.id
            else Hit(checked_id(value.id), value.score)
        )
    if value is None:
        return Hit(None)
    if isinstance(value, tuple) and len(value) == 2:  # noqa: PLR2004 - (id, score)
        return Hit(checked_id(value[0]), value[1])
    return Hit(checked_id(value))


def checked_namespace(value: object) -> Namespace:
    """The value, if it is a single token.

    Raises:
        NamespaceError: It is not.
    """
    is_token = (
        isinstance(value, str)
        and 0 < len(value) <= _LONGEST_NAMESPACE
        and value.isprintable()
        and not any(map(str.isspace, value))
        and value != "branch:"
    )
    if not is_token:
        raise NamespaceError(value)
    return str(value)


def checked_strength(value: object) -> float:
    """The value, if it is a strength in (0, 2].

    Raises:
        FeedbackError: It is not.
    """
    is_real = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_real or not 0.0 < value <= 2.0:  # type: ignore[operator]  # noqa: PLR2004
        raise FeedbackError("strength", value, "a number in (0, 2]")
    return float(value)  # type: ignore[arg-type]


def checked_query(value: object) -> str:
    """The value's first 10,000 characters, as UTF-8 can hold them.

    A whole page that was pasted as a query is known by its beginning.

    Raises:
        FeedbackError: It is no text.
    """
    if not isinstance(value, str):
        raise FeedbackError("query", value, "the query's text")
    return value[:_LONGEST_QUERY].encode("utf-8", "replace").decode()


def checked_moment(value: object, name: str = "clock") -> float:
    """The value, if it is a finite number of Unix seconds.

    Raises:
        ParamError: It is not.
    """
    is_real = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_real or not math.isfinite(value) or abs(value) > 1e15:  # type: ignore[arg-type]  # noqa: PLR2004
        raise ParamError(name, value, "in finite Unix seconds")
    return float(value)  # type: ignore[arg-type]
