"""How long an action may search: a limit for the action, and for each job a part of what is left of it.

A job never gets more than half of what is left, so a hard one cannot keep those behind it from their turn. Time is only
looked at between scenarios; on a clock that stands still nothing ever runs out.
"""

from collections.abc import Callable


class Budget:
    """The time of one action. Mutable: jobs begin one after the other."""

    def __init__(self, monotonic: Callable[[], float], *, action_seconds: float, job_seconds: float) -> None:
        self._monotonic = monotonic
        self._job_seconds = job_seconds
        self._end = monotonic() + action_seconds
        self._job_end = self._end

    @property
    def is_spent(self) -> bool:
        """Tell whether the action's time is over."""
        return self._monotonic() > self._end

    @property
    def is_job_spent(self) -> bool:
        """Tell whether the time of the job that began last is over."""
        return self._monotonic() > self._job_end

    def begin_job(self) -> None:
        """Give a job its time."""
        now = self._monotonic()
        self._job_end = now + min(self._job_seconds, max(self._end - now, 0.0) / 2)
