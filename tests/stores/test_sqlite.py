"""The SQLite store keeps the promises, and meets odd files well."""

import gc
import os
import sqlite3
import stat
import threading
from contextlib import closing

import pytest

from synapse_retrievers.errors import StoreBusyError, StoreCorruptError, StoreError
from synapse_retrievers.stores import episodes, packed, sqlite_removal, sqlite_slices
from synapse_retrievers.stores.base import SCHEMA
from synapse_retrievers.stores.sqlite import SQLiteStore
from synapse_retrievers.testing import StoreConformance
from synapse_retrievers.testing.strategies import teaching


class TestSQLiteStore(StoreConformance):
    @pytest.fixture
    def store(self, tmp_path):
        store = SQLiteStore(tmp_path / "synapse.db", busy_seconds=20.0)
        yield store
        store.close()


class TestSmallRows(StoreConformance):
    """Rows and slices so small that every history splits, empties and crosses them."""

    hub_degree = 300

    @pytest.fixture
    def store(self, tmp_path, monkeypatch):
        monkeypatch.setattr(packed, "SEGMENT_RECORDS", 3)
        monkeypatch.setattr(packed, "EPISODES_A_ROW", 2)
        monkeypatch.setattr(packed, "FULL_POSTINGS", 2)
        monkeypatch.setattr(episodes, "TEXTS_A_STATEMENT", 2)
        monkeypatch.setattr(sqlite_slices, "_NODES_A_SLICE", 2)
        monkeypatch.setattr(sqlite_slices, "_EDGES_A_SLICE", 3)
        monkeypatch.setattr(sqlite_removal, "_EPISODES_A_SLICE", 2)
        store = SQLiteStore(tmp_path / "synapse.db", busy_seconds=20.0)
        yield store
        store.close()


def teach(store, nodes=("a", "b")):
    store.update("personal", nodes, teaching(1.0))


def activations(store):
    return [edge.activations for edge in store.edges()]


def test_the_file_is_its_owners_only(tmp_path):
    SQLiteStore(tmp_path / "synapse.db").close()
    assert stat.S_IMODE((tmp_path / "synapse.db").stat().st_mode) == 0o600


def test_an_empty_file_is_a_new_store(tmp_path):
    path = tmp_path / "synapse.db"
    path.touch()
    store = SQLiteStore(path)
    teach(store)
    store.close()
    assert activations(SQLiteStore(path)) == [1]


def test_a_missing_directory_is_not_made(tmp_path):
    with pytest.raises(StoreError, match="does not exist"):
        SQLiteStore(tmp_path / "no" / "synapse.db")
    assert list(tmp_path.iterdir()) == []


def test_a_directory_is_no_store(tmp_path):
    with pytest.raises(StoreError, match="cannot be opened"):
        SQLiteStore(tmp_path)


@pytest.mark.parametrize("content", [b"not a database, long enough to look at" * 50, b"x"])
def test_garbage_is_refused_and_left_alone(tmp_path, content):
    path = tmp_path / "synapse.db"
    path.write_bytes(content)
    with pytest.raises(StoreCorruptError):
        SQLiteStore(path)
    assert path.read_bytes() == content
    assert list(tmp_path.iterdir()) == [path]


def test_a_database_of_something_else_is_never_written(tmp_path):
    path = tmp_path / "theirs.db"
    with closing(sqlite3.connect(path)) as theirs:
        theirs.execute("CREATE TABLE mine (x)")
        theirs.commit()
    content = path.read_bytes()
    with pytest.raises(StoreCorruptError, match="another application"):
        SQLiteStore(path)
    assert path.read_bytes() == content


def test_a_damaged_store_is_a_corrupt_store(tmp_path):
    path = tmp_path / "synapse.db"
    store = SQLiteStore(path)
    for number in range(200):
        teach(store, [f"n{number}", f"m{number}", "hub"])
    store.close()
    content = bytearray(path.read_bytes())
    content[4096:] = b"\x7f" * (len(content) - 4096)
    path.write_bytes(content)
    with pytest.raises(StoreCorruptError):
        list(SQLiteStore(path).edges())


def test_a_cut_record_is_a_corrupt_store(tmp_path):
    store = SQLiteStore(tmp_path / "synapse.db")
    teach(store)
    with closing(sqlite3.connect(tmp_path / "synapse.db")) as file:
        file.execute("UPDATE adjacency SET records = x'00'")
        file.commit()
    with pytest.raises(StoreCorruptError, match="no whole number"):
        list(store.edges())
    with pytest.raises(StoreCorruptError, match="no whole number"):
        teach(store)


def test_missing_tables_are_a_corrupt_store(tmp_path):
    store = SQLiteStore(tmp_path / "synapse.db")
    with closing(sqlite3.connect(tmp_path / "synapse.db")) as file:
        file.execute("DROP TABLE node")
        file.commit()
    with pytest.raises(StoreCorruptError, match="no such table"):
        teach(store)


def test_a_deleted_file_heals_at_the_next_call(tmp_path):
    path = tmp_path / "synapse.db"
    store = SQLiteStore(path)
    teach(store)
    path.unlink()
    assert activations(store) == []
    teach(store)
    path.unlink()
    teach(store)
    assert activations(store) == [1]
    store.close()
    assert activations(SQLiteStore(path)) == [1]


def test_a_replaced_file_is_seen_at_the_next_call(tmp_path):
    other = SQLiteStore(tmp_path / "other.db")
    teach(other)
    teach(other)
    other.close()
    store = SQLiteStore(tmp_path / "synapse.db")
    store.close()
    (tmp_path / "other.db").rename(tmp_path / "synapse.db")
    assert activations(store) == [2]


def test_text_that_utf8_cannot_hold_is_refused(tmp_path):
    with pytest.raises(StoreError, match="UTF-8"):
        teach(SQLiteStore(tmp_path / "synapse.db"), ["a\ud800", "b"])


def test_a_locked_file_is_read_and_refuses_writes_in_time(tmp_path):
    store = SQLiteStore(tmp_path / "synapse.db", busy_seconds=0.05)
    teach(store)
    with closing(sqlite3.connect(tmp_path / "synapse.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert activations(store) == [1]
        with pytest.raises(StoreBusyError, match="locked"):
            teach(store)
    teach(store)
    assert activations(store) == [2]


def test_a_thread_that_holds_the_lock_makes_others_busy(tmp_path):
    store = SQLiteStore(tmp_path / "synapse.db", busy_seconds=0.05)
    errors = []

    def write():
        try:
            teach(store)
        except StoreBusyError as error:
            errors.append(error)

    with store.batch():
        thread = threading.Thread(target=write)
        thread.start()
        thread.join()
    assert len(errors) == 1


def test_opening_waits_for_a_lock_and_says_how_long(tmp_path):
    path = tmp_path / "synapse.db"
    SQLiteStore(path).close()
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(StoreBusyError, match=r"locked for 0.05 s"):
            SQLiteStore(path, busy_seconds=0.05)
        letting_go = threading.Timer(0.3, other.close)
        letting_go.start()
        assert activations(SQLiteStore(path, busy_seconds=30.0)) == []
        letting_go.join()


def test_a_new_file_is_whole_when_it_appears(tmp_path, monkeypatch):
    linked = []
    link = os.link

    def look(draft, path):
        with closing(sqlite3.connect(draft)) as file:
            linked.append(file.execute("PRAGMA user_version").fetchone())
        link(draft, path)

    monkeypatch.setattr(os, "link", look)
    store = SQLiteStore(tmp_path / "synapse.db")
    teach(store)
    assert linked == [(SCHEMA,)]
    assert {one.name.removeprefix("synapse.db") for one in tmp_path.iterdir()} <= {
        "",
        "-wal",
        "-shm",
    }
    assert stat.S_IMODE((tmp_path / "synapse.db").stat().st_mode) == 0o600


def test_where_no_file_can_be_linked_it_is_made_in_its_place(tmp_path, monkeypatch):
    def refuse(draft, path):
        raise PermissionError

    monkeypatch.setattr(os, "link", refuse)
    store = SQLiteStore(tmp_path / "synapse.db")
    teach(store)
    assert activations(store) == [1]


def test_another_process_that_was_faster_has_made_the_file(tmp_path, monkeypatch):
    link = os.link

    def come_late(draft, path):
        link(draft, path)
        link(draft, path)

    monkeypatch.setattr(os, "link", come_late)
    store = SQLiteStore(tmp_path / "synapse.db")
    teach(store)
    assert activations(store) == [1]


def test_threads_leave_no_connections_behind(tmp_path):
    store = SQLiteStore(tmp_path / "synapse.db")
    for _ in range(20):
        thread = threading.Thread(target=teach, args=(store,))
        thread.start()
        thread.join()
    gc.collect()
    assert len(store._connections._table.links) == 1
    assert activations(store) == [20]


def test_close_lets_a_running_transaction_end(tmp_path):
    store = SQLiteStore(tmp_path / "synapse.db")
    with store.batch():
        teach(store)
        closer = threading.Thread(target=store.close)
        closer.start()
        closer.join()
        teach(store)
    assert activations(store) == [2]


def test_an_error_inside_a_batch_undoes_only_its_update_when_it_is_caught(tmp_path):
    store = SQLiteStore(tmp_path / "synapse.db")
    with store.batch():
        teach(store)
        with pytest.raises(StoreError):
            teach(store, ["a", "\ud800"])
        teach(store)
    assert activations(store) == [2]


def test_the_secret_survives(tmp_path):
    store = SQLiteStore(tmp_path / "synapse.db")
    secret = store.secret()
    store.close()
    assert SQLiteStore(tmp_path / "synapse.db").secret() == secret


def test_stats_tell_where_and_how_large(tmp_path):
    store = SQLiteStore(tmp_path / "synapse.db")
    stats = store.stats()
    assert stats.url == store.url == f"sqlite:///{tmp_path / 'synapse.db'}"
    assert stats.bytes > 4096


def test_reinforcing_a_hub_rewrites_only_what_it_touches(tmp_path):
    store = SQLiteStore(tmp_path / "synapse.db")
    names = [f"n{number:04}" for number in range(2_000)]
    with store.batch():
        for start in range(0, 2_000, 250):
            teach(store, ["hub", *names[start : start + 250]])
    rows = "SELECT id, records FROM adjacency WHERE id & 4095 > 0 OR degree > 1000"
    with closing(sqlite3.connect(tmp_path / "synapse.db")) as file:
        before = dict(file.execute(rows))
        teach(store, ["hub", names[1_234]])
        after = dict(file.execute(rows))
    assert len(before) >= 4
    assert before.keys() == after.keys()
    assert sum(before[row] != after[row] for row in before) == 1
