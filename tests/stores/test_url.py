"""A path or URL names one store."""

import copy
import gc
import pickle
import threading
from pathlib import Path

import pytest

from synapse_retrievers.errors import StoreError
from synapse_retrievers.stores import MemoryStore, SQLiteStore, Store, open_store


@pytest.fixture(autouse=True)
def _in_a_new_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SYNAPSE_RETRIEVERS_STORE", raising=False)


def test_every_spelling_of_a_file_is_one_object(tmp_path):
    store = open_store("x.db")
    assert isinstance(store, SQLiteStore)
    assert isinstance(store, Store)
    assert store is open_store(Path("x.db"))
    assert store is open_store(tmp_path / "y" / ".." / "x.db")
    assert store is open_store("sqlite:///x.db")
    assert store is open_store(f"sqlite:///{tmp_path}/x.db")
    assert store is open_store(store.url)
    (tmp_path / "link.db").symlink_to("x.db")
    assert store is open_store("link.db")
    assert store is not open_store("other.db")


def test_nothing_given_is_the_environment_then_the_working_directory(tmp_path, monkeypatch):
    assert open_store(None).url == f"sqlite:///{tmp_path}/synapse.db"
    monkeypatch.setenv("SYNAPSE_RETRIEVERS_STORE", "memory:env")
    assert open_store().url == "memory:env"


def test_memory_without_a_name_is_private():
    store = open_store("memory:")
    assert isinstance(store, MemoryStore)
    assert store is not open_store("memory:")
    with pytest.raises(StoreError, match="name it"):
        pickle.dumps(store)


def test_memory_with_a_name_is_one_for_the_process():
    store = open_store("memory:mine")
    assert store is open_store("memory:mine")
    assert store is not open_store("memory:yours")
    assert pickle.loads(pickle.dumps(store)) is store


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("postgresql://host/db", "PostgreSQL"),
        ("redis://host", "'redis'"),
        ("sqlite:x.db", "three slashes"),
        ("", "no file"),
        ("a\0b", "no file"),
        ("sqlite:///", "no file"),
    ],
)
def test_what_is_no_store_says_what_to_give(where, said, tmp_path):
    with pytest.raises(StoreError, match=said):
        open_store(where)
    assert list(tmp_path.iterdir()) == []


def test_a_colon_in_a_file_name_is_no_scheme(tmp_path):
    assert open_store("notes:today.db").url == f"sqlite:///{tmp_path}/notes:today.db"


def test_odd_characters_in_a_path_are_its_own(tmp_path):
    for name in ("a b?mode=ro#x%20.db", "\u00e4'\".db"):
        open_store(name).close()
        assert (tmp_path / name).exists()


def test_copies_and_pickles_are_the_same_object():
    store = open_store("x.db")
    assert copy.copy(store) is store
    assert copy.deepcopy([store])[0] is store
    assert pickle.loads(pickle.dumps(store)) is store


def test_an_unused_store_is_let_go_and_reopened(tmp_path):
    open_store("x.db").claim("personal", "id", "docs")
    gc.collect()
    assert not (tmp_path / "x.db-wal").exists()
    assert open_store("x.db").stats().namespaces["personal"].collection == "docs"


def test_threads_that_open_at_once_get_one_object():
    found = []
    threads = [threading.Thread(target=lambda: found.append(open_store("x.db"))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(store) for store in found}) == 1
