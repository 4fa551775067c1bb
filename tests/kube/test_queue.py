"""The work queue: once per key, never twice at a time, fair between namespaces."""

import asyncio

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from spinney.kube.keys import Key
from spinney.kube.queue import Origin, QueueClosed, WorkQueue
from spinney.runtime import Runtime, VirtualTimeLoop
from tests.virtual_time import on_virtual_time

A, B, C = Key("x", "a"), Key("x", "b"), Key("x", "c")


async def drain(queue: WorkQueue, count: int) -> list[Key]:
    """Take and finish ``count`` keys."""
    taken = []
    for _ in range(count):
        work = await queue.get()
        taken.append(work.key)
        queue.done(work.key)
    return taken


@on_virtual_time
async def test_a_key_added_often_is_handed_out_once() -> None:
    """However often a key is added while it waits, it is handed out once."""
    queue = WorkQueue(Runtime.virtual())
    for key in (A, B, A, A, B):
        queue.add(key)
    assert len(queue) == 2
    assert await drain(queue, 2) == [A, B]
    assert queue.idle


@on_virtual_time
async def test_a_key_in_work_is_handed_out_again_only_after_done() -> None:
    """A key added while it is worked on waits until that work is done, then comes once more."""
    queue = WorkQueue(Runtime.virtual())
    queue.add(A)
    work = await queue.get()
    queue.add(A)
    queue.add(A)
    assert len(queue) == 0
    assert queue.done(work.key) is Origin.EVENT
    assert await drain(queue, 1) == [A]
    assert queue.idle


@on_virtual_time
async def test_namespaces_take_turns() -> None:
    """A namespace that floods the queue does not delay the one key of another."""
    queue = WorkQueue(Runtime.virtual())
    for number in range(50):
        queue.add(Key("noisy", str(number)))
    queue.add(Key("quiet", "one"))
    assert Key("quiet", "one") in await drain(queue, 2)


@on_virtual_time
async def test_the_earliest_of_several_delays_holds() -> None:
    """A key delayed twice comes once, when the shorter delay ends."""
    runtime = Runtime.virtual()
    queue = WorkQueue(runtime)
    queue.add_after(A, 60)
    queue.add_after(A, 5)
    queue.add_after(A, 30)
    await queue.get()
    assert runtime.clock.monotonic() == pytest.approx(5)
    queue.done(A)
    await runtime.clock.sleep(100)
    assert queue.idle


@on_virtual_time
async def test_back_off_doubles_and_is_forgotten() -> None:
    """Each failure doubles the wait up to a limit, and success starts afresh."""
    queue = WorkQueue(Runtime.virtual(), first_delay=1.0, longest_delay=8.0)
    delays = []
    for _ in range(5):
        delays.append(queue.add_backing_off(A))
        await queue.get()
        queue.done(A)
    for delay, expected in zip(delays, [1, 2, 4, 8, 8], strict=True):
        assert expected <= delay <= expected * 1.1
    queue.forget(A)
    assert queue.add_backing_off(A) <= 1.1


@on_virtual_time
async def test_shut_down_tells_the_workers_that_wait() -> None:
    """A worker waiting for a key learns that the queue was closed, and nothing is handed out afterwards."""
    queue = WorkQueue(Runtime.virtual())
    waiting = [asyncio.create_task(queue.get()) for _ in range(3)]
    await asyncio.sleep(1)
    queue.shut_down()
    for outcome in await asyncio.gather(*waiting, return_exceptions=True):
        assert isinstance(outcome, QueueClosed)
    queue.add(A)
    with pytest.raises(QueueClosed):
        await queue.get()


@on_virtual_time
async def test_a_cancelled_waiter_passes_its_wake_up_on() -> None:
    """If the woken worker is cancelled at that moment, another gets the key."""
    queue = WorkQueue(Runtime.virtual())
    first, second = asyncio.create_task(queue.get()), asyncio.create_task(queue.get())
    await asyncio.sleep(1)
    queue.add(A)
    first.cancel()
    assert (await second).key == A


@on_virtual_time
async def test_an_event_outweighs_a_resync() -> None:
    """A key that both a resync and an event ask for counts as asked for by the event."""
    queue = WorkQueue(Runtime.virtual())
    queue.add(A, Origin.RESYNC)
    queue.add(A, Origin.EVENT)
    queue.add(B, Origin.EVENT)
    queue.add(B, Origin.RESYNC)
    queue.add(C, Origin.RESYNC)
    origins = {}
    for _ in range(3):
        work = await queue.get()
        origins[work.key] = work.origin
    assert origins == {A: Origin.EVENT, B: Origin.EVENT, C: Origin.RESYNC}


keys = st.builds(Key, st.sampled_from(["x", "y"]), st.sampled_from(["a", "b", "c"]))


class QueueMachine(RuleBasedStateMachine):
    """Drives a queue at random beside a model: the set of keys that owe a hand-out, and those in work."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = VirtualTimeLoop()
        self.queue = WorkQueue(Runtime.virtual())
        self.waiting: set[Key] = set()
        self.working: set[Key] = set()
        self.again: set[Key] = set()

    @rule(key=keys)
    def add(self, key: Key) -> None:
        self.loop.run_until_complete(self._add(key))
        (self.again if key in self.working else self.waiting).add(key)

    @rule()
    def take(self) -> None:
        if self.waiting:
            work = self.loop.run_until_complete(self._get())
            assert work in self.waiting
            assert work not in self.working
            self.waiting.remove(work)
            self.working.add(work)

    async def _add(self, key: Key) -> None:
        self.queue.add(key)

    async def _finish(self, key: Key) -> None:
        self.queue.done(key)

    async def _get(self) -> Key:
        return (await self.queue.get()).key

    @rule(key=keys)
    def finish(self, key: Key) -> None:
        if key in self.working:
            self.loop.run_until_complete(self._finish(key))
            self.working.remove(key)
            if key in self.again:
                self.again.remove(key)
                self.waiting.add(key)

    @invariant()
    def agrees(self) -> None:
        assert len(self.queue) == len(self.waiting)
        assert self.queue.idle == (not self.waiting and not self.working)

    def teardown(self) -> None:
        self.loop.close()


TestQueueMachine = QueueMachine.TestCase
TestQueueMachine.settings = settings(max_examples=60, deadline=None)
