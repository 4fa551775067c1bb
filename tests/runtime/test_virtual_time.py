"""Virtual time: an hour passes in no time, in an order that the program alone decides."""

import asyncio
import time
from datetime import UTC, datetime, timedelta

import pytest

from spinney.runtime import Deadlock, Runtime, VirtualClock, run_virtual, run_virtual_within


def test_a_long_sleep_takes_no_real_time() -> None:
    """A day of sleep moves the clock by a day and returns at once."""

    async def main() -> float:
        clock = VirtualClock()
        await clock.sleep(86_400)
        return clock.monotonic()

    started = time.monotonic()
    assert run_virtual(main()) == pytest.approx(86_400)
    assert time.monotonic() - started < 60


def test_wall_time_follows_the_loop_from_its_epoch() -> None:
    """The virtual wall clock starts at its epoch and moves with the loop."""

    async def main() -> list[datetime]:
        clock = VirtualClock(epoch=datetime(2030, 5, 1, tzinfo=UTC))
        before = clock.now()
        await clock.sleep(90)
        return [before, clock.now()]

    assert run_virtual(main()) == [
        datetime(2030, 5, 1, tzinfo=UTC),
        datetime(2030, 5, 1, tzinfo=UTC) + timedelta(seconds=90),
    ]


def test_timers_fire_in_the_order_of_their_times() -> None:
    """Sleepers wake in the order of their deadlines, not of their start."""

    async def main() -> list[str]:
        woken: list[str] = []

        async def sleeper(name: str, seconds: float) -> None:
            await asyncio.sleep(seconds)
            woken.append(name)

        await asyncio.gather(sleeper("late", 30), sleeper("middle", 10), sleeper("soon", 0.5))
        return woken

    assert run_virtual(main()) == ["soon", "middle", "late"]


def test_timeouts_run_on_virtual_time() -> None:
    """Asyncio's own timeout fires on the virtual clock."""

    async def main() -> float:
        clock = VirtualClock()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(300):
                await asyncio.Event().wait()
        return clock.monotonic()

    assert run_virtual(main()) == pytest.approx(300)


def test_waiting_for_nothing_is_a_deadlock() -> None:
    """When every task waits and no timer is pending the loop says so instead of hanging."""

    async def main() -> None:
        await asyncio.Event().wait()

    with pytest.raises(Deadlock):
        run_virtual(main())


def test_a_seed_replays_a_run_exactly() -> None:
    """Two runs from one seed draw the same numbers and uids and interleave alike; another seed differs."""

    async def main(seed: int) -> list[tuple[float, str]]:
        runtime = Runtime.virtual(seed)
        trace: list[tuple[float, str]] = []

        async def worker(name: str) -> None:
            for _ in range(20):
                await runtime.clock.sleep(runtime.random.random())
                trace.append((runtime.clock.monotonic(), f"{name} {runtime.uid()}"))

        await asyncio.gather(*(worker(name) for name in "abc"))
        return trace

    assert run_virtual(main(7)) == run_virtual(main(7))
    assert run_virtual(main(7)) != run_virtual(main(8))


def test_many_small_sleeps_add_up() -> None:
    """A hundred thousand small steps reach the time they should, without drifting or stalling."""

    async def main() -> float:
        clock = VirtualClock()
        for _ in range(100_000):
            await clock.sleep(0.1)
        return clock.monotonic()

    assert run_virtual(main()) == pytest.approx(10_000)


def test_a_wait_shorter_than_the_clock_can_tell_passes() -> None:
    """Who waits for a moment that rounding puts a little ahead gets there, however often it looks."""

    async def story() -> int:
        loop = asyncio.get_running_loop()
        await asyncio.sleep(179.0)
        deadline, looks = loop.time() + 1e-13, 0
        while loop.time() < deadline and looks < 10:
            await asyncio.sleep(deadline - loop.time())
            looks += 1
        return looks

    assert run_virtual(story()) == 1


def test_virtual_time_within_an_event_loop() -> None:
    """A loop that runs something on virtual time stands still meanwhile, and gets its result."""

    async def inner() -> float:
        await asyncio.sleep(3600)
        return asyncio.get_running_loop().time()

    async def outer() -> tuple[float, float]:
        return run_virtual_within(inner), asyncio.get_running_loop().time()

    assert run_virtual_within(inner) == 3600
    assert run_virtual(outer()) == (3600, 0)
