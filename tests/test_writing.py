"""Writes that cannot be done now wait in order, bounded, and are counted when lost."""

import gc
import threading
import weakref

import pytest

from synapse_retrievers.errors import StoreBusyError, StoreError
from synapse_retrievers.stores.memory import MemoryStore
from synapse_retrievers.writing import AGAIN_SECONDS, WAITING, Writing

STORE = MemoryStore()


class Door:
    """A store that can be had only while the door is open."""

    def __init__(self):
        self.is_open = True

    def __call__(self):
        if not self.is_open:
            raise StoreBusyError("memory:", 1.0)
        return STORE


@pytest.fixture
def door():
    return Door()


@pytest.fixture
def writing(door):
    return Writing(door)


def noting(done, name):
    return lambda store: done.append(name) or 1


def test_what_waits_is_done_first_and_in_its_order(writing):
    done = []
    for name in "ab":
        writing.later(noting(done, name))
    assert writing.now(noting(done, "c")) == 1
    assert done == ["a", "b", "c"]
    assert writing.waiting == 0


def test_while_the_store_is_away_all_wait_on_and_the_caller_hears_of_it(writing, door):
    done = []
    writing.later(noting(done, "a"))
    door.is_open = False
    with pytest.raises(StoreBusyError):
        writing.now(noting(done, "b"))
    assert isinstance(writing.try_drain(), StoreError)
    assert (writing.waiting, done) == (1, [])
    door.is_open = True
    writing.drain()
    assert done == ["a"]


def test_a_job_that_fails_keeps_its_place_and_is_done_once_it_can(writing):
    done, fails = [], [True]

    def job(store):
        if fails.pop() if fails else False:
            raise StoreError("not now")
        done.append("a")
        return 1

    writing.later(job)
    writing.later(noting(done, "b"))
    with pytest.raises(StoreError):
        writing.drain()
    writing.drain()
    assert done == ["a", "b"]


def test_above_a_thousand_the_oldest_is_lost_and_counted(writing):
    done = []
    for number in range(WAITING + 3):
        writing.later(noting(done, number))
    assert (writing.waiting, writing.lost) == (1_000, 3)
    writing.drain()
    assert done == list(range(3, 1_003))


def test_a_forked_child_forgets_its_parents_jobs(writing):
    writing.later(noting([], "a"))
    writing.forget()
    assert writing.waiting == 0


def test_many_threads_do_each_waiting_job_once(writing):
    done = []
    for number in range(500):
        writing.later(noting(done, number))
    threads = [threading.Thread(target=writing.drain) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert done == list(range(500))


def test_nobody_waits_behind_a_thread_that_waits_for_the_lock(writing):
    done, is_waiting, is_over = [], threading.Event(), threading.Event()

    def waits(store):
        is_waiting.set()
        is_over.wait(10)
        return done.append("a") or 1

    writing.later(waits)
    thread = threading.Thread(target=writing.drain)
    thread.start()
    is_waiting.wait(10)
    assert writing.now(noting(done, "b")) == 1
    is_over.set()
    thread.join()
    assert done == ["b", "a"]
    assert writing.waiting == 0


def test_a_store_that_was_busy_is_so_for_a_second(door):
    now = [100.0]
    writing = Writing(door, lambda: now[0])
    assert not writing.is_busy
    door.is_open = False
    with pytest.raises(StoreBusyError):
        writing.now(noting([], "a"))
    assert writing.is_busy
    now[0] += AGAIN_SECONDS
    assert not writing.is_busy


def test_what_waits_keeps_its_queue_alive_until_it_is_written(door):
    writing, done = Writing(door), []
    watched = weakref.ref(writing)
    writing.later(noting(done, "a"))
    del writing
    gc.collect()
    watched().drain()
    gc.collect()
    assert (watched(), done) == (None, ["a"])
