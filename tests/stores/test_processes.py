"""Real processes on one file: nothing acknowledged is lost, whoever dies."""

import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from synapse_retrievers.errors import StoreError
from synapse_retrievers.stores.sqlite import SQLiteStore
from synapse_retrievers.testing.store_probes import postings
from synapse_retrievers.testing.strategies import teaching
from synapse_retrievers.types import Episode, Use

WRITER = """
import sys
from synapse_retrievers.stores.sqlite import SQLiteStore
from synapse_retrievers.testing.strategies import teaching
from synapse_retrievers.types import Episode, Use
store = SQLiteStore(sys.argv[1], busy_seconds=30.0)
for turn in range(int(sys.argv[3])):
    query = f"{sys.argv[2]}/{turn}"
    episode = Episode("personal", query, {"x": 1.0}, {"a": Use(1.0)}, float(turn))
    nodes = ["a", "b", f"own{sys.argv[2]}", f"own{sys.argv[2]}/{turn % 50}"]
    store.update("personal", nodes, teaching(float(turn), episode=episode), query=query)
    print(turn, flush=True)
"""


def writer(path, name, updates):
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), name, str(updates)],
        stdout=subprocess.PIPE,
        text=True,
    )


def check(path):
    """What is stored fits together; how often a and b were reinforced."""
    with closing(sqlite3.connect(path)) as file:
        assert file.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    store = SQLiteStore(path)
    nodes = {node.id: node for node in store.nodes()}
    edges = {edge.pair: edge for edge in store.edges()}
    with store.reading(["personal"]) as reader:
        ids = list(nodes)
        found = reader.neighbors(reader.handles(ids))
        directed = {
            (ids[sender], neighbor): state
            for sender, neighbor, state in zip(
                found.sender, reader.ids(found.neighbor), found.state.tolist(), strict=True
            )
        }
        (standing,) = postings(reader, ["x"])
    assert len(directed) == 2 * len(edges)
    assert all(directed[b, a] == state for (a, b), state in directed.items())
    degrees = np.unique([a for a, _ in directed], return_counts=True)
    assert {key: node.degree for key, node in nodes.items()} == dict(
        zip(degrees[0].tolist(), degrees[1].tolist(), strict=True)
    )
    count = edges["a", "b"].activations
    assert nodes["a"].used == nodes["b"].used == count
    assert standing.episodes == standing.document_frequency[0] == len(standing.rows) == count
    queries = {episode.query for episode in store.episodes()}
    store.close()
    return count, queries


def test_four_processes_lose_nothing_when_one_is_killed(tmp_path):
    path = tmp_path / "synapse.db"
    running = [writer(path, str(number), 200) for number in range(4)]
    acknowledged = [running[0].stdout.readline() for _ in range(100)]
    running[0].send_signal(signal.SIGKILL)
    acknowledged += running[0].stdout.readlines()
    rest = [process.communicate()[0].split() for process in running[1:]]
    running[0].wait()
    running[0].stdout.close()
    assert [len(lines) for lines in rest] == [200] * 3
    count, queries = check(path)
    # The killed one may have committed one update that it could no longer tell of.
    assert len(acknowledged) + 600 <= count <= len(acknowledged) + 601
    assert {f"{name}/{turn}" for name in (1, 2, 3) for turn in range(200)} <= queries
    assert {f"0/{line.strip()}" for line in acknowledged if line.endswith("\n")} <= queries


def test_a_kill_at_any_moment_leaves_every_acknowledged_write(tmp_path):
    path = tmp_path / "synapse.db"
    moments = random.Random(7)
    least = most = 0
    for attempt in range(10):
        process = writer(path, str(attempt), 100_000)
        lines = [process.stdout.readline()]
        timer = threading.Timer(moments.uniform(0.01, 0.3), process.kill)
        timer.start()
        lines += process.stdout.readlines()
        process.wait()
        process.stdout.close()
        timer.cancel()
        least += len(lines)
        most += len(lines) + 1
        count, queries = check(path)
        assert least <= count <= most
        assert {f"{attempt}/{line.strip()}" for line in lines if line.endswith("\n")} <= queries


def in_child(work):
    """The exit code of a fork that does the work; 0 = it returned true."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = 0 if work() else 2
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def teach(store, at=1.0):
    store.update("personal", ["a", "b"], teaching(at))


def activations(store):
    return [edge.activations for edge in store.edges()]


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_fork_reads_and_writes_by_a_connection_of_its_own(tmp_path):
    store = SQLiteStore(tmp_path / "synapse.db")
    teach(store)

    def work():
        teach(store)
        store.close()
        teach(store)
        return activations(store) == [3]

    assert in_child(work) == 0
    teach(store)
    assert activations(store) == [4]


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_what_a_fork_writes_outlives_its_parents_store(tmp_path):
    store = SQLiteStore(tmp_path / "synapse.db")
    teach(store)
    to_child, from_parent = os.pipe()

    def work():
        teach(store)
        os.read(to_child, 1)
        teach(store)
        return activations(store) == [3]

    child = os.fork()
    if child == 0:
        os._exit(0 if work() else 1)
    while activations(store) != [2]:
        pass
    # The last connection of a process would take the log away, if it saw nobody else's locks.
    store.close()
    os.write(from_parent, b"x")
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    os.close(to_child)
    os.close(from_parent)
    assert activations(store) == [3]


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_fork_inside_a_transaction_leaves_it_to_the_parent(tmp_path):
    store = SQLiteStore(tmp_path / "synapse.db")
    teach(store)

    def leaves_the_block():
        raise KeyError

    with store.batch():
        teach(store)
        assert in_child(leaves_the_block) == 1
        assert in_child(lambda: refuses(tmp_path / "synapse.db")) == 0
        teach(store)
    with store.reading(["personal"]) as reader:
        assert in_child(lambda: refuses(tmp_path / "synapse.db")) == 0
        found = reader.neighbors(reader.handles(["a"]))
        assert found.state["activations"].tolist() == [3]


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_fork_while_another_thread_writes_is_not_stuck(tmp_path):
    store = SQLiteStore(tmp_path / "synapse.db", busy_seconds=5.0)
    stop = threading.Event()

    def work():
        while not stop.is_set():
            teach(store)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        codes = [in_child(lambda: teach(store) is None) for _ in range(10)]
    finally:
        stop.set()
        thread.join()
    assert codes == [0] * 10
    with closing(sqlite3.connect(tmp_path / "synapse.db")) as file:
        assert file.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def as_nobody(work):
    def drop():
        if os.getuid() == 0:
            os.setgid(65534)
            os.setuid(65534)
        return work()

    return in_child(drop)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_read_only_file_is_read_and_refuses_writes():
    with tempfile.TemporaryDirectory() as name:
        folder, path = Path(name), Path(name) / "synapse.db"
        store = SQLiteStore(path)
        episode = Episode("personal", "how", {"x": 1.0}, {"a": Use(1.0)}, 1.0)
        store.update("personal", ["a", "b"], teaching(1.0, episode=episode))
        store.close()
        path.chmod(0o444)
        folder.chmod(0o555)

        def work():
            own = SQLiteStore(path)
            try:
                teach(own)
            except StoreError as error:
                return activations(own) == [1] and "read-only" in str(error)
            return False

        assert as_nobody(work) == 0
        path.chmod(0o000)
        assert as_nobody(lambda: refuses(path)) == 0
        folder.chmod(0o755)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_who_may_only_read_sees_what_another_user_writes():
    with tempfile.TemporaryDirectory() as name:
        folder, path = Path(name), Path(name) / "synapse.db"
        teach(SQLiteStore(path))
        SQLiteStore(path).close()
        path.chmod(0o444)
        folder.chmod(0o555)
        to_child, from_parent = os.pipe()
        to_parent, from_child = os.pipe()

        def work():
            own = SQLiteStore(path)
            before = activations(own)
            os.write(from_child, b"x")
            os.read(to_child, 1)
            return (before, activations(own)) == ([1], [2])

        child = os.fork()
        if child == 0:
            code = 1
            try:
                if os.getuid() == 0:
                    os.setgid(65534)
                    os.setuid(65534)
                code = 0 if work() else 2
            finally:
                os._exit(code)
        os.read(to_parent, 1)
        folder.chmod(0o755)
        path.chmod(0o644)
        store = SQLiteStore(path)
        teach(store)
        store.close()
        path.chmod(0o444)
        folder.chmod(0o555)
        os.write(from_parent, b"x")
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        for end in (to_child, from_parent, to_parent, from_child):
            os.close(end)
        folder.chmod(0o755)


def refuses(path):
    try:
        SQLiteStore(path)
    except StoreError:
        return True
    return False
