"""Time as it would pass if this process had a processor to itself: its own processor time, and its waiting.

On a busy machine the clock also counts what others do. In a process of one thread, which either computes or waits for
its next timer, leaving that out is exact but for what sharing caches and cores costs. Timers and time-outs of the event
loop go by the same time, so that no delay ends early only because the machine is slow.
"""

import asyncio
import selectors
import time
from collections.abc import Sequence

from spinney.runtime import SystemClock


class Selector(selectors.DefaultSelector):
    """Waits as ever, and adds up for how long. Mutable."""

    def __init__(self) -> None:
        super().__init__()
        self.waited = 0.0

    def select(self, timeout: float | None = None) -> Sequence[tuple[selectors.SelectorKey, int]]:
        """Wait; no more counts than was asked for, however late this process is woken."""
        began = self.now()
        clock = time.perf_counter()
        found = super().select(timeout)
        if timeout is None or timeout > 0:
            waited = time.perf_counter() - clock - (self.now() - began)
            self.waited += max(0.0, waited if timeout is None else min(waited, timeout))
        return found

    def now(self) -> float:
        """Return the seconds that this process has computed or waited."""
        return time.process_time() + self.waited


class Loop(asyncio.SelectorEventLoop):
    """An event loop on that time."""

    def __init__(self) -> None:
        self.selector = Selector()
        super().__init__(self.selector)

    def time(self) -> float:
        """Return the loop's time."""
        return self.selector.now()


class LoopClock(SystemClock):
    """The machine's clock for timestamps, and the running loop's time for durations."""

    def monotonic(self) -> float:  # type: ignore[override]
        """Return the loop's time."""
        return asyncio.get_running_loop().time()
