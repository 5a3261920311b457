"""The last trace as the asking context sees it."""

import asyncio
import contextvars
import gc
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor

from synapse_retrievers import LastTrace, Trace


def trace(name):
    return Trace(name, "personal", 1)


def told(last):
    found = last.get()
    return None if found is None else found.query


def in_new_context(action):
    return contextvars.Context().run(action)


def test_before_the_first_recall_there_is_none():
    assert in_new_context(LastTrace().get) is None


def test_threads_see_their_own():
    last, ready = LastTrace(), threading.Barrier(8)

    def ask(name):
        last.set(trace(name))
        ready.wait()
        return told(last)

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(ask, map(str, range(8)))) == list(map(str, range(8)))


def test_tasks_see_their_own():
    last = LastTrace()

    async def ask(name, turn):
        last.set(trace(name))
        for _ in range(turn):
            await asyncio.sleep(0)
        return told(last)

    async def everyone():
        last.set(trace("outer"))
        return await asyncio.gather(*(ask(str(n), 8 - n) for n in range(8)))

    assert asyncio.run(everyone()) == list(map(str, range(8)))


def test_who_started_the_asking_context_sees_its_trace():
    last = LastTrace()

    def chain():
        last.set(trace("before"))
        contextvars.copy_context().run(lambda: last.set(trace("step")))
        with ThreadPoolExecutor(1) as pool:
            pool.submit(contextvars.copy_context().run, last.set, trace("thread")).result()
        return told(last)

    assert in_new_context(chain) == "thread"


def test_a_context_that_never_asked_sees_the_newest_of_all():
    last = LastTrace()
    in_new_context(lambda: last.set(trace("one")))
    in_new_context(lambda: last.set(trace("two")))
    assert in_new_context(lambda: told(last)) == "two"


def test_two_retrievers_in_one_context_keep_their_own():
    first, second = LastTrace(), LastTrace()

    def both():
        first.set(trace("one"))
        second.set(trace("two"))
        return told(first), told(second)

    assert in_new_context(both) == ("one", "two")


def test_a_context_keeps_no_dead_retriever_alive():
    def ask():
        last = LastTrace()
        last.set(trace("one"))
        watched = weakref.ref(last)
        del last
        gc.collect()
        return watched()

    assert in_new_context(ask) is None


def test_tasks_that_start_their_successors_for_ever_hold_a_bounded_chain():
    last = LastTrace()

    async def generation(left):
        last.set(trace(str(left)))
        if left:
            await asyncio.create_task(generation(left - 1))

    asyncio.run(generation(200))
    assert in_new_context(lambda: told(last)) == "0"
