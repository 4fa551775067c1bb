"""Jobs that run give way to much shorter ones that wait, if that costs all together less than it saves.

It costs a job that gives way what it has done since it started or last made a checkpoint, and the run time of the job
it lets pass; and it costs each job that waits for room the time in which all nodes together do again what was lost. The
job that passes saves what it would wait otherwise, which must be no less. And whoever gives way must have several times
the cost before it, together with all that it has lost so before: so a job that is thrown out again and again is soon
left alone. Only run times that are stated count, of both.
"""

import math
from collections.abc import Callable, Sequence
from functools import cached_property

from spinney.cluster.devices import DEVICE
from spinney.cluster.resources import CPU, GPU
from spinney.gangs.tree import GangKey
from spinney.scheduler.framework.events import Scenario
from spinney.scheduler.framework.jobs import PodGroupInfo
from spinney.scheduler.framework.session import Session
from spinney.scheduler.plugins.backfill.memory import Memory

TOO_DEAR = "giving way would cost more than it saves, or much of what those who would go still have to run"


class GivingWay:
    """Who gives way in one session: who still has ``times`` as long to run as that costs, to one who waits as long.

    ``lacking_room`` tells how many jobs wait for room, ``wait_of`` the seconds until one finds it otherwise; ``None``:
    nobody knows. Mutable: that is asked once of each.
    """

    def __init__(
        self,
        session: Session,
        memory: Memory,
        times: float,
        lacking_room: Callable[[], int],
        wait_of: Callable[[PodGroupInfo], float | None],
    ) -> None:
        self._session, self._memory, self._times = session, memory, times
        self._lacking_room, self._wait_of = lacking_room, wait_of
        self._waits: dict[GangKey, float] = {}

    def register(self) -> None:
        """Have running jobs give way to equals."""
        self._session.add_gives_way_fn(lambda job, victim: self._pays(job, [victim]))
        self._session.add_preempt_scenario_validator_fn(self._is_cheap)
        self._session.add_job_distinction_fn(lambda job: (self._length(job),))

    def _is_cheap(self, scenario: Scenario) -> bool | str:
        """All who give way together may cost no more than the one who has least to run may alone."""
        job = scenario.preemptor
        equals = [victim for victim in scenario.victims if victim.priority == job.priority]
        return True if not equals or self._length(job) is None or self._pays(job, equals) else TOO_DEAR

    def _pays(self, job: PodGroupInfo, victims: Sequence[PodGroupInfo]) -> bool:
        """Tell whether a job saves what it costs that victims give way, and each of them has long enough to run."""
        length = self._length(job)
        least = min(self._left(victim) or 0.0 for victim in victims)
        if length is None or least < self._times * length:
            return False
        cost = self._cost(length, victims)
        return least >= self._times * cost and self._wait(job) >= cost

    def _cost(self, length: float, victims: Sequence[PodGroupInfo]) -> float:
        """Return the seconds by which victims, and others who wait for room, are later in all."""
        now = self._session.now
        own = again = 0.0
        for victim in victims:
            undone = self._memory.undone_by_eviction(victim, now)
            own += length + undone + self._memory.undone_before(victim)
            again += undone * self._part(victim)
        return own + max(self._lacking_room() - 1, 0) * again

    def _part(self, victim: PodGroupInfo) -> float:
        """Return the part of all nodes that a job holds: of their GPUs if it has any, else of their CPUs."""
        cpus, gpus, memory = self._offered
        requests = [record.request for _, record in victim.members.pods.values()]
        parts = sum(request.gpu_parts(memory) for request in requests)
        return parts / gpus if parts else sum(int(request.requests[CPU]) for request in requests) / cpus

    @cached_property
    def _offered(self) -> tuple[float, float, int]:
        """Return what all nodes have: CPUs, parts of GPUs, and the memory of the smallest GPU."""
        table, rows = self._session.nodes.table, self._session.nodes.all.rows
        amounts = table.allocatable[rows].sum(axis=0)
        return max(float(amounts[CPU]), 1.0), max(DEVICE * float(amounts[GPU]), 1.0), int(table.gpu_memory[rows].min())

    def _wait(self, job: PodGroupInfo) -> float:
        known = self._waits.get(job.key)
        if known is None:
            found = self._wait_of(job)
            known = self._waits[job.key] = math.inf if found is None else found
        return known

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
