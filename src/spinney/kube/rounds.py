"""Rounds of work: a loop whose rounds may fail goes on, more slowly, and says so.

A round that raises is logged and counted, and the next one waits, longer each time. While rounds fail, or one is stuck,
the process is not ready, and the answer of ``/readyz`` says why. After so many failures in a row, or when a round is
stuck for too long, a process that holds a lease gives it away: another replica may fare better.
"""

from collections.abc import Awaitable, Callable
from typing import Final

import structlog

from spinney.kube.lease import LeaseGivenAway
from spinney.kube.manager import Manager
from spinney.kube.retrying import exponential
from spinney.runtime.faults import raised_later, told

log = structlog.get_logger()

MOST_IN_A_ROW: Final = 10
"""After so many rounds that failed the lease is given away."""
_FIRST_REST, _LONGEST_REST = 0.1, 30.0


class Rounds:
    """How the rounds of one loop go. Mutable."""

    def __init__(
        self, manager: Manager, name: str, *, slow_seconds: float = 30.0, stuck_seconds: float = 120.0
    ) -> None:
        self._manager = manager
        self._name = name
        self._slow_seconds = slow_seconds
        self._stuck_seconds = stuck_seconds
        self._failed = 0
        self._problem: str | None = None
        self._slow: str | None = None
        self._failures = manager.metrics.failed_rounds.labels(name)
        self._in_a_row = manager.metrics.failed_in_a_row.labels(name)
        manager.check_ready(name, self.problem)

    def problem(self) -> str | None:
        """Return what is wrong, if anything is."""
        return self._slow or self._problem

    async def attempt(self, work: Callable[[], Awaitable[None]]) -> bool:
        """Run one round and return whether it went well; after one that failed this returns when it is time for more.

        Raises :class:`~spinney.kube.lease.LeaseGivenAway` where another replica should go on.
        """
        try:
            await work()
        except LeaseGivenAway:
            raise
        except raised_later() as error:
            self._failed += 1
            self._failures.inc()
            self._in_a_row.set(self._failed)
            self._problem = f"failed {self._failed} time(s) in a row, last with {told(error)}"
            rest = exponential(self._failed - 1, first=_FIRST_REST, longest=_LONGEST_REST)
            log.exception("round failed", loop=self._name, in_a_row=self._failed, rest=rest)
            if self._failed >= MOST_IN_A_ROW and self._manager.elected:
                self._failed = 0
                raise LeaseGivenAway(f"{self._name} {self._problem}") from error
            await self._manager.runtime.clock.sleep(rest)
            return False
        else:
            self._failed, self._problem = 0, None
            self._in_a_row.set(0)
            return True
        finally:
            self._slow = None

    def takes(self, seconds: float, where: str) -> None:
        """Note how long the round under way has taken, and where it is now; raises when that is too long."""
        if seconds < self._slow_seconds:
            return
        if self._slow is None:
            log.warning("round is slow", loop=self._name, seconds=round(seconds), where=where)
        self._slow = f"busy for {seconds:.0f} s with {where}"
        if seconds >= self._stuck_seconds and self._manager.elected:
            raise LeaseGivenAway(f"{self._name} {self._slow}")
