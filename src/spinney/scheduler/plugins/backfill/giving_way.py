"""Jobs that run give way to much shorter ones that wait, if they lose little by it beside what they still have to run.

What giving way costs a job is what it has done since it started or last made a checkpoint, and the run time of the job
it lets pass. Its run must have several times that before it, together with all that it has lost so before: so a job
that is thrown out again and again is soon left alone. Only run times that are stated count, of both.
"""

import math

from spinney.scheduler.framework.events import Scenario
from spinney.scheduler.framework.jobs import PodGroupInfo
from spinney.scheduler.framework.session import Session
from spinney.scheduler.plugins.backfill.memory import Memory

TOO_DEAR = "those who would give way lose too much beside what they still have to run"


class GivingWay:
    """Who gives way in one session: whoever still has ``times`` as long to run as giving way costs."""

    def __init__(self, session: Session, memory: Memory, times: float) -> None:
        self._session, self._memory, self._times = session, memory, times

    def register(self) -> None:
        """Have running jobs give way to equals."""
        self._session.add_gives_way_fn(self._gives_way)
        self._session.add_preempt_scenario_validator_fn(self._is_cheap)
        self._session.add_job_distinction_fn(lambda job: (self._length(job),))

    def _gives_way(self, job: PodGroupInfo, victim: PodGroupInfo) -> bool:
        length, left = self._length(job), self._left(victim)
        return length is not None and left is not None and left >= self._times * (length + self._lost(victim))

    def _is_cheap(self, scenario: Scenario) -> bool | str:
        """All who give way together may cost no more than the one who has least to run may alone."""
        job = scenario.preemptor
        equals = [victim for victim in scenario.victims if victim.priority == job.priority]
        length = self._length(job)
        if not equals or length is None:
            return True
        cost = sum(length + self._lost(victim) for victim in equals)
        least = min(self._left(victim) or 0.0 for victim in equals)
        return True if least >= self._times * cost else TOO_DEAR

    def _length(self, job: PodGroupInfo) -> float | None:
        """Return how long a job says it will run, up to the next power of two: jobs about as long are alike."""
        stated = self._memory.stated(job.members)
        return None if stated is None else 2.0 ** math.ceil(math.log2(max(stated, 1.0)))

    def _left(self, victim: PodGroupInfo) -> float | None:
        """Return how long a job will still run, as it says."""
        if victim.key not in self._memory.running:
            return None
        left = self._memory.left(victim.key, self._session.now)
        return left.seconds if left is not None and left.stated else None

    def _lost(self, victim: PodGroupInfo) -> float:
        """Return the seconds of work that a job has to do again if it goes now, with those it had to before."""
        return self._memory.undone_by_eviction(victim, self._session.now) + self._memory.undone_before(victim)
