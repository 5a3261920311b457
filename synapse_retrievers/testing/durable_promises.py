"""Promise P11: nothing is lost, whoever dies."""

import asyncio
import signal
import subprocess
import sys
import threading
from pathlib import Path

from synapse_retrievers.errors import StoreError
from synapse_retrievers.stores.sqlite import SQLiteStore
from synapse_retrievers.synapse import Synapse
from synapse_retrievers.testing.broken import busy
from synapse_retrievers.testing.corpus import CORPUS, QUERY
from synapse_retrievers.testing.harness import RetrieverSuite, present_of
from synapse_retrievers.testing.learning_promises import said
from synapse_retrievers.testing.reins import ReinedStore
from synapse_retrievers.types import Use

_TEACH = """
import os, sys
from synapse_retrievers import Synapse
synapse = Synapse(sys.argv[1])
for number in range(1000):
    synapse.reinforce(["a", "b"], query=f"question {sys.argv[2]} {number}")
    with synapse.run(f"run {sys.argv[2]} {number}") as run:
        run.used(["a", "c"])
    synapse.feedback(query=f"said {sys.argv[2]} {number}", used=["a", "d"])
    print(number, flush=True)
    if not sys.stdin.readline():
        break
"""

_READ = """
import sys
from synapse_retrievers import Synapse
for edge in Synapse(sys.argv[1]).edges():
    print(*edge.pair, edge.activations)
"""


def teacher(path: Path, name: str) -> "subprocess.Popen[str]":
    """A process that teaches once more for every line that it is given."""
    return subprocess.Popen(  # noqa: S603 - our own text
        [sys.executable, "-c", _TEACH, str(path), name],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def read_elsewhere(path: Path) -> dict[tuple[str, str], int]:
    """Pair -> activations, as another process sees them."""
    told = subprocess.run(  # noqa: S603 - our own text
        [sys.executable, "-c", _READ, str(path)], capture_output=True, text=True, check=True
    ).stdout
    rows = (line.split() for line in told.splitlines())
    return {(first, second): int(count) for first, second, count in rows}


class DurablePromises(RetrieverSuite):
    """P11, for any adapter."""

    # P11, nothing lost.

    def test_p11_what_was_taught_is_there_for_another_process(self, tmp_path: Path) -> None:
        path = tmp_path / "synapse.db"
        harness = self.build(str(path))
        used = present_of(harness)[:2]
        harness.synapse.feedback(query="another", used=[used[0].id, CORPUS[-1].id])
        for run in harness.runs:
            harness.run_chain(f"{QUERY} {run}", said(*used), way=run)
        harness.synapse.flush()
        assert read_elsewhere(path) == {
            tuple(sorted(one.id for one in used)): len(harness.runs),
            tuple(sorted((used[0].id, CORPUS[-1].id))): 1,
        }

    def test_p11_an_explicit_call_survives_the_death_of_its_process(self, tmp_path: Path) -> None:
        path = tmp_path / "synapse.db"
        running = [teacher(path, name) for name in "xy"]
        for process in running:
            assert process.stdin is not None
            assert process.stdout is not None
            assert process.stdout.readline() == "0\n"
            process.stdin.write("\n")
            process.stdin.flush()
            assert process.stdout.readline() == "1\n"
        running[0].send_signal(signal.SIGKILL)
        running[0].communicate()
        after = running[1].communicate("\n" * 5)[0]
        assert after.splitlines()[:5] == ["2", "3", "4", "5", "6"]
        counts = read_elsewhere(path)
        least = 2 + 2 + len(after.splitlines())
        assert all(least <= counts["a", other] <= least + 2 for other in "bcd")

    def test_p11_a_busy_store_lets_what_was_noticed_wait(self, tmp_path: Path, way: str) -> None:
        path = tmp_path / "synapse.db"
        harness = self.build(Synapse(SQLiteStore(path, busy_seconds=0.01)))
        used = present_of(harness)[:2]
        harness.ask(QUERY)
        with busy(path):
            harness.run_chain(QUERY, said(*used), way=way)
            assert len(harness.ask(QUERY, way=way)) == len(harness.wrapped.lists[-1])
            assert harness.synapse.stats().waiting == 1
        assert harness.synapse.stats().lost == 0
        asyncio.run(harness.synapse.aflush())
        assert harness.synapse.stats().waiting == 0
        (edge,) = harness.synapse.edges()
        assert (edge.pair, edge.activations) == (tuple(sorted(one.id for one in used)), 1)

    def test_p11_the_next_write_takes_with_it_what_waits(self, tmp_path: Path, way: str) -> None:
        path = tmp_path / "synapse.db"
        harness = self.build(Synapse(SQLiteStore(path, busy_seconds=0.01)))
        used = present_of(harness)[:3]
        harness.ask(QUERY)
        with busy(path):
            harness.run_chain(QUERY, said(*used[:2]), way=way)
        harness.run_chain(f"{QUERY} again", said(*used[1:]), way=way)
        harness.ask(QUERY, way=way)  # what was handed over is written before the next recall
        assert harness.synapse.stats().waiting == 0
        assert len(list(harness.synapse.edges())) == 2

    def test_p11_what_finds_no_place_to_wait_is_counted(self) -> None:
        store = ReinedStore()
        harness = self.build(store)
        present = present_of(harness)
        harness.ask(QUERY)
        store.fault = StoreError("away")
        for number in range(1_003):
            with harness.synapse.run(f"q {number}") as run:
                harness.synapse.learn(run.run, {one.id: Use(1.0) for one in present[:2]})
        store.fault = None
        assert harness.synapse.stats().lost == 3
        harness.synapse.flush()
        assert len(list(harness.synapse.episodes())) == 1_000

    def test_p11_threads_lose_nothing(self, tmp_path: Path) -> None:
        harness = self.build(str(tmp_path / "synapse.db"))
        used = present_of(harness)[:2]

        def work(name: str) -> None:
            for number in range(5):
                harness.run_chain(f"{QUERY} {name} {number}", said(*used))

        threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        harness.synapse.flush()
        (edge,) = harness.synapse.edges()
        assert edge.activations == 20
        assert len(list(harness.synapse.episodes())) == 20
