"""An event loop on virtual time.

The loop's selector never waits for the outside world. When nothing is ready to run, the loop asks the selector to
wait until the next timer; the selector moves the clock there instead and returns. So ``asyncio.sleep``, timeouts and
``call_later`` all work unchanged, an hour takes as long as its events, and the order of events is a function of the
program alone. Sockets and threads have no place on such a loop: components talk in process.
"""

import asyncio
import selectors
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import Context
from typing import Any, Final, TypeVar, TypeVarTuple

T = TypeVar("T")
Ts = TypeVarTuple("Ts")
_SHORTEST_WAIT: Final = 1e-6


class Deadlock(RuntimeError):
    """Every task waits, and no timer is pending that could wake one."""


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """An asyncio event loop whose time jumps to the next timer as soon as nothing is ready."""

    def __init__(self) -> None:
        self._virtual_time = 0.0
        super().__init__(_JumpingSelector(self.pass_time))

    def time(self) -> float:
        return self._virtual_time

    def call_at(
        self, when: float, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        # A timer that is due within the clock's resolution runs at once. Who then finds that its time has not quite
        # come, and waits for the rest, would do so for ever: time only passes when nothing is ready.
        if when > self._virtual_time:
            when = max(when, self._virtual_time + _SHORTEST_WAIT)
        return super().call_at(when, callback, *args, context=context)

    def pass_time(self, seconds: float) -> None:
        """Move the clock, as a function does that takes so long."""
        self._virtual_time += seconds


class _JumpingSelector(selectors.BaseSelector):
    """A selector that reports no file ready, ever, and passes the time it was asked to wait to ``jump``."""

    def __init__(self, jump: Callable[[float], None]) -> None:
        self._jump = jump
        self._keys: dict[int, selectors.SelectorKey] = {}

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise Deadlock("nothing is scheduled: every task waits for another, or for input that cannot come")
        if timeout > 0:
            self._jump(timeout)
        return []

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        key = selectors.SelectorKey(fileobj, _descriptor(fileobj), events, data)
        self._keys[key.fd] = key
        return key

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._keys.pop(_descriptor(fileobj))

    def get_key(self, fileobj: Any) -> selectors.SelectorKey:
        return self._keys[_descriptor(fileobj)]

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._keys


def _descriptor(fileobj: Any) -> int:
    return fileobj if isinstance(fileobj, int) else int(fileobj.fileno())


def run_virtual(main: Coroutine[Any, Any, T]) -> T:
    """Run ``main`` to its end on a new :class:`VirtualTimeLoop` and return its result."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(main)


def run_virtual_within(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run as :func:`run_virtual` does, also inside an event loop, which stands still meanwhile.

    A thread has one running loop at most. Where there is one, this takes a thread of its own and waits for it: nothing
    runs beside the caller.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return run_virtual(main())
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(lambda: run_virtual(main())).result()
