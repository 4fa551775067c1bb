"""How long jobs run: as they state themselves, or as those before them in their queue did.

A job states it with the annotation ``spinney.dev/expected-duration`` on its pods, or with ``activeDeadlineSeconds``,
after which Kubernetes ends them. Where nothing is stated, run times of jobs of the same queue and size that have ended
are looked at: of those that ran longer than this one has run already.
"""

from bisect import bisect_right, insort
from collections import deque
from typing import Final, NamedTuple

from spinney.api.core import Pod
from spinney.api.durations import parse_duration
from spinney.api.labels import EXPECTED_DURATION
from spinney.gangs.book import GangMembers
from spinney.scheduler.plugins.backfill.sweeps import SweepKind

_KEPT: Final = 512
"""Run times of each queue and size."""
FEWEST: Final = 10
"""Nothing is concluded from fewer run times."""


class RunTime(NamedTuple):
    """Seconds that a job is expected to run, and whether it said so itself."""

    seconds: float
    stated: bool


def stated(members: GangMembers) -> float | None:
    """Return the seconds that the pods of a gang say they will run: the longest of them, if all of them say so."""
    longest = 0.0
    for _, record in members.pods.values():
        seconds = stated_by(record.pod)
        if seconds is None:
            return None
        longest = max(longest, seconds)
    return longest if members.pods else None


def stated_by(pod: Pod) -> float | None:
    """Return the seconds that a pod says it will run; ``None`` if it says nothing, or nothing that can be read."""
    seconds, deadline = expected_of(pod), pod.spec.active_deadline_seconds
    if deadline is not None:
        seconds = float(deadline) if seconds is None else min(seconds, float(deadline))
    return seconds


def expected_of(pod: Pod) -> float | None:
    """Return the seconds that a pod's annotation says it will run; ``None`` if there is none that can be read."""
    text = pod.metadata.annotations.get(EXPECTED_DURATION)
    try:
        seconds = parse_duration(text).total_seconds() if text else None
    except ValueError:
        return None  # admission is not ours
    return seconds if seconds is not None and seconds >= 0 else None


class PastRunTimes:
    """Run times of jobs that have ended. Mutable."""

    def __init__(self) -> None:
        self._by_size: dict[tuple[str, int], tuple[deque[float], list[float]]] = {}

    def add(self, kind: SweepKind, seconds: float) -> None:
        """Remember how long a job ran."""
        order, values = self._by_size.setdefault((kind.queue, kind.gpus), (deque(), []))
        order.append(seconds)
        insort(values, seconds)
        if len(order) > _KEPT:
            del values[bisect_right(values, order.popleft()) - 1]

    def quantile(self, kind: SweepKind, share: float, *, beyond: float = 0.0) -> float | None:
        """Return the run time that ``share`` of those beyond ``beyond`` seconds did not exceed, if enough are known."""
        _, values = self._by_size.get((kind.queue, kind.gpus), ((), []))
        first = bisect_right(values, beyond)
        count = len(values) - first
        return values[first + min(int(share * count), count - 1)] if count >= FEWEST else None
