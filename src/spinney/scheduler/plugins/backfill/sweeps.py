"""Sweeps: jobs of one queue and size that were submitted within a minute of each other run about as long.

People submit the same program many times with other parameters. On Philly's traces the run times of two such jobs
correlate with 0.8 to 0.99 in most queues, far more than those of other jobs of their queue and size. A job is therefore
compared with its own sweep first: with those that have ended, and with those that still run, which run longer than they
have.
"""

from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from spinney.gangs.book import GangMembers

_MINUTE: Final = 60.0
_SWEEPS: Final = 512
"""So many are kept of which no job runs."""
_ENDED: Final = 128
"""Run times of each."""


class SweepKind(NamedTuple):
    """Which jobs a job is compared with: those of its queue, with as many GPUs, and submitted in its minute."""

    queue: str
    gpus: int
    minute: int


def kind_of(members: GangMembers) -> SweepKind:
    """Return which jobs a job is compared with."""
    created = members.gang.created
    minute = int(created.timestamp() // _MINUTE) if created is not None else 0
    return SweepKind(members.gang.queue, sum(record.request.gpus for _, record in members.pods.values()), minute)


class Typical(NamedTuple):
    """How long the jobs of a sweep run: half of them no longer than ``seconds``; at least so long if not ``known``."""

    seconds: float
    known: bool


@dataclass(slots=True)
class _Sweep:
    """Those of a sweep that run, with when they started, and how long others ran. Mutable."""

    running: dict[Hashable, float] = field(default_factory=dict)
    ended: deque[float] = field(default_factory=lambda: deque(maxlen=_ENDED))


class Sweeps:
    """Jobs that were submitted together. Mutable. Moments are in seconds of any one clock."""

    def __init__(self) -> None:
        self._by_kind: dict[SweepKind, _Sweep] = {}

    def start(self, kind: SweepKind, key: Hashable, moment: float) -> None:
        """Note that a job runs."""
        self._by_kind.setdefault(kind, _Sweep()).running[key] = moment

    def end(self, kind: SweepKind, key: Hashable, seconds: float | None) -> None:
        """Note that a job does not run any more, and how long it ran; ``None`` if it was not done."""
        sweep = self._by_kind.pop(kind, None)
        if sweep is None:
            return
        sweep.running.pop(key, None)
        if seconds is not None:
            sweep.ended.append(seconds)
        self._by_kind[kind] = sweep  # the newest last
        if len(self._by_kind) > _SWEEPS:
            idle = (each for each, kept in self._by_kind.items() if not kept.running)
            if (oldest := next(idle, None)) is not None:
                del self._by_kind[oldest]

    def typical(self, kind: SweepKind, moment: float, *, beyond: float = 0.0) -> Typical | None:
        """Return how long those run that run longer than ``beyond``: the median by Kaplan and Meier's estimator."""
        near = [self._by_kind.get(kind._replace(minute=kind.minute + step)) for step in (-1, 0, 1)]
        times: list[tuple[float, bool]] = []
        for sweep in near:
            if sweep is not None:
                times += [(seconds, True) for seconds in sweep.ended if seconds > beyond]
                times += [(moment - since, False) for since in sweep.running.values() if moment - since > beyond]
        times.sort()
        longer = 1.0
        for place, (seconds, ended) in enumerate(times):
            if ended:
                longer *= 1.0 - 1.0 / (len(times) - place)
                if longer <= 0.5 + 1e-9:
                    return Typical(seconds, known=True)
        return Typical(times[-1][0], known=False) if times else None
