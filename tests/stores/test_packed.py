"""Sums over rows of records."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from synapse_retrievers.errors import StoreError
from synapse_retrievers.stores import packed

sequences = st.integers(1, 60)


def test_an_edge_record_has_forty_bytes():
    assert packed.RECORD.itemsize == 40


def test_row_ids_do_not_overlap():
    nodes = np.array([1, 2, (1 << 28) - 1])
    low, middle, high = packed.header_ids(1, nodes).tolist()
    assert low + 8 * packed.SEGMENTS == middle
    assert high + 8 * packed.SEGMENTS == packed.namespace_base(2)
    assert packed.nodes_of(packed.header_ids(7, nodes)).tolist() == nodes.tolist()
    assert packed.header_ids(7, np.array([-1]))[0] < 0


@pytest.mark.parametrize(
    "overflowing",
    [
        lambda: packed.namespace_base(1 << 20),
        lambda: packed.header_ids(1, np.array([1 << 28])),
        lambda: packed.episode_id(1, 1 << 29),
        lambda: packed.posting_id(1 << 43, 1),
    ],
)
def test_a_full_store_says_so(overflowing):
    with pytest.raises(StoreError, match="full"):
        overflowing()


def test_the_largest_row_ids_fit_into_sqlite():
    largest = int(packed.header_ids((1 << 20) - 1, np.array([(1 << 28) - 1]))[0])
    assert largest + 8 * packed.SEGMENTS - 1 == 2**63 - 1
    assert packed.posting_id((1 << 43) - 1, (1 << 29) - 1) == 2**63 - 1


def test_cut_bytes_are_damaged():
    with pytest.raises(packed.DamagedError):
        packed.unpack(b"12345", packed.RECORD)


@given(st.integers(0, 3_000))
def test_split_fills_no_segment_beyond_its_size(count):
    records = np.zeros(count, dtype=packed.RECORD)
    records["neighbor"] = np.arange(count)
    parts = packed.split(records)
    assert np.concatenate(parts)["neighbor"].tolist() == list(range(count))
    assert max(len(part) for part in parts) <= packed.SEGMENT_RECORDS
    assert len(parts) == max(1, -(-count // packed.SEGMENT_RECORDS))


@given(
    st.dictionaries(sequences, st.floats(0, 1)),
    st.dictionaries(sequences, st.none() | st.floats(0, 1), min_size=1),
)
def test_revised_postings_are_those_of_a_dict(before, edits):
    blob = packed.revise(b"", before.items()) if before else b""
    after = packed.unpack(packed.revise(blob, edits.items()), packed.POSTING).tolist()
    expected = {k: w for k, w in (before | edits).items() if w is not None}
    assert after == sorted(expected.items())
