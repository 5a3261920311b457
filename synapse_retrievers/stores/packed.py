"""How edges, postings and uses lie in a row: sums over bytes and arrays, no I/O."""

import struct
from collections.abc import Iterable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from synapse_retrievers.errors import StoreError
from synapse_retrievers.types import EDGE_STATE, Ints

Records: TypeAlias = NDArray[Any]
"""One-dimensional array of one of the record types below."""

RECORD = np.dtype([("neighbor", "<u4"), ("state", EDGE_STATE)])
POSTING = np.dtype([("episode", "<u4"), ("weight", "<f8")])
USE = np.dtype([("node", "<i8"), ("strength", "<f8"), ("chunk", "<i8")])
_USE = struct.Struct("<qdq")
TERM = np.dtype([("term", "<i8"), ("weight", "<f8")])

SEGMENT_RECORDS = 512
"""Most records in one row of a node's adjacency."""

NAMESPACE_SHIFT = 43
NODE_SHIFT = 15
SEGMENTS = 1 << 12
"""Row ids of one node and kind: the header (segment 0) and those after it."""

EPISODE_SHIFT = 32
POSTING_SHIFT = 20
EPISODES_A_ROW = 512
FULL_POSTINGS = 320
"""A row of so many postings, which fit on one page of 4 kB, gets no newer ones if it can."""

_NAMESPACES = 1 << 20
_NODES = 1 << 28
_SEQUENCES = EPISODES_A_ROW << POSTING_SHIFT
_TERMS = 1 << (63 - POSTING_SHIFT)


class DamagedError(Exception):
    """Bytes that are no whole number of records."""


def unpack(blob: bytes | bytearray, kind: np.dtype[Any]) -> Records:
    """The records in these bytes, writable if those are.

    Raises:
        DamagedError: The bytes were cut.
    """
    if len(blob) % kind.itemsize:
        msg = f"{len(blob)} bytes are no whole number of records of {kind.itemsize}"
        raise DamagedError(msg)
    return np.frombuffer(blob, dtype=kind)


def uses_in(blob: bytes) -> list[tuple[int, float, int]]:
    """Records of `USE` as values: there are few, and one by one they are quicker.

    Raises:
        DamagedError: The bytes were cut.
    """
    if len(blob) % _USE.size:
        unpack(blob, USE)
    return list(_USE.iter_unpack(blob))


def _bounded(name: str, value: int, end: int) -> int:
    if value >= end:
        msg = f"the store is full: {name} {value} is beyond {end - 1}; start another file"
        raise StoreError(msg)
    return value


def namespace_base(namespace: int) -> int:
    """The row id below all adjacency rows of a namespace."""
    return _bounded("namespace", namespace, _NAMESPACES) << NAMESPACE_SHIFT


def header_ids(namespace: int, nodes: Ints) -> Ints:
    """The row id of each node's header; of handle -1, one below all rows."""
    _bounded("node", int(nodes.max(initial=1)), _NODES)
    return namespace_base(namespace) | (nodes << NODE_SHIFT)


def nodes_of(row_ids: Ints) -> Ints:
    """Whose row each is."""
    return (row_ids >> NODE_SHIFT) & (_NODES - 1)


def episode_id(namespace: int, sequence: int) -> int:
    """The row id, and handle, of a namespace's episode."""
    return (namespace << EPISODE_SHIFT) | _bounded("episode", sequence, _SEQUENCES)


def sequence_of(episode: int) -> int:
    """The episode's number within its namespace."""
    return episode & ((1 << EPISODE_SHIFT) - 1)


def posting_id(term: int, sequence: int) -> int:
    """The row that a term's postings from this episode on begin in.

    An episode's posting lies in the last row up to this one that the term has; a new row begins
    only behind a full one, so that a term of few episodes has few rows.
    """
    return (_bounded("term", term, _TERMS) << POSTING_SHIFT) | (sequence // EPISODES_A_ROW)


def split(records: Records) -> list[Records]:
    """The records in as few parts as fit into segments, of about one size; at least one part."""
    parts = max(1, -(-len(records) // SEGMENT_RECORDS))
    return np.array_split(records, parts)


def begins_new_row(blob: bytes, edits: Iterable[tuple[int, float | None]]) -> bool:
    """Whether these postings stand better in a row of their own, behind this one."""
    if len(blob) < FULL_POSTINGS * POSTING.itemsize:
        return False
    # Whoever looks for the newest of the full row must not be led to the new one.
    newest = int(unpack(blob, POSTING)["episode"][-1]) // EPISODES_A_ROW
    return all(
        weight is not None and sequence // EPISODES_A_ROW > newest for sequence, weight in edits
    )


def revise(blob: bytes, edits: Iterable[tuple[int, float | None]]) -> bytes:
    """A row of postings after the edits (episode sequence, weight); None takes it away."""
    wanted = dict(edits)
    records = unpack(blob, POSTING)
    gone = np.fromiter(wanted, dtype=np.int64, count=len(wanted))
    added = np.array([(s, w) for s, w in wanted.items() if w is not None], dtype=POSTING)
    # Nearly every write appends the newest episode; only the others need a search and a sort.
    if not (len(records) and gone.min() <= records["episode"][-1]):
        return blob + np.sort(added, order="episode").tobytes()
    stays = np.isin(records["episode"], gone, invert=True)
    merged = np.concatenate([records[stays], added])
    return merged[np.argsort(merged["episode"], kind="stable")].tobytes()
