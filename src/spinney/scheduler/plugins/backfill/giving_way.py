"""Jobs that run give way to much shorter ones that wait, if that costs all together less than it saves.

A job that gives way has to do again what it has done since it started or last made a checkpoint, and comes after those
that wait in the line of the job it lets pass. Each job that waits for other room is later by the time in which all
nodes together do again what was lost. All in that line save something, since each moves up
(:mod:`~spinney.scheduler.plugins.backfill.lines`): that must be no less than what all others lose.

Whoever gives way must still have as long to run as it will be later, and several times as long as the job that passes,
with what it does again and all that it has lost so before: so a job that is thrown out again and again is soon left
alone. Only run times that are stated count, of both.
"""

import math
from collections.abc import Callable, Sequence
from functools import cached_property

from spinney.cluster.devices import DEVICE
from spinney.cluster.resources import CPU, GPU
from spinney.cluster.statuses import ACTIVE_ALLOCATED
from spinney.gangs.tree import GangKey
from spinney.scheduler.fairshare.amounts import ZERO, Amounts
from spinney.scheduler.framework.events import Scenario
from spinney.scheduler.framework.jobs import PodGroupInfo
from spinney.scheduler.framework.session import Session
from spinney.scheduler.framework.tasks import PodInfo
from spinney.scheduler.plugins.backfill.lines import WaitingLine
from spinney.scheduler.plugins.backfill.memory import Memory

TOO_DEAR = "giving way would cost more than it saves, or much of what those who would go still have to run"
BELOW_QUOTA = "giving way would leave a queue less than it is guaranteed"


class GivingWay:
    """Who gives way in one session: who still has ``times`` as long to run as it loses, where a line saves as much.

    ``across_queues``: jobs of other queues, too, that hold more than they are guaranteed. ``lacking_room`` tells how
    many jobs wait for room, ``line_of`` who waits like one, beginning with it. Mutable: that is asked once of each.
    """

    def __init__(
        self,
        session: Session,
        memory: Memory,
        times: float,
        lacking_room: Callable[[], int],
        line_of: Callable[[PodGroupInfo], WaitingLine],
        *,
        across_queues: bool,
    ) -> None:
        self._session, self._memory, self._times = session, memory, times
        self._across_queues = across_queues
        self._lacking_room, self._line_of = lacking_room, line_of
        self._lines: dict[GangKey, WaitingLine] = {}

    def register(self) -> None:
        """Have running jobs give way to equals."""
        self._session.add_gives_way_fn(self._gives_way, across_queues=self._across_queues)
        self._session.add_preempt_scenario_validator_fn(self._is_cheap)
        self._session.add_job_distinction_fn(lambda job: (self._length(job),))

    def _gives_way(self, job: PodGroupInfo, victim: PodGroupInfo) -> bool:
        if victim.queue != job.queue:
            holds = [task for task in victim.tasks if task.status in ACTIVE_ALLOCATED]
            if not self._keeps_quota(job, victim.queue, holds, still_held=True):
                return False
        return self._pays(job, [victim])

    def _is_cheap(self, scenario: Scenario) -> bool | str:
        """All who give way together may cost no more than the one who has least to run may alone."""
        job = scenario.preemptor
        polite = [each for each in scenario.victims if each.queue != job.queue or each.priority == job.priority]
        if not polite or self._length(job) is None:
            return True
        for queue in dict.fromkeys(victim.queue for victim in polite if victim.queue != job.queue):
            gone = [task for victim in polite if victim.queue == queue for task in scenario.victims[victim]]
            if not self._keeps_quota(job, queue, gone, still_held=False):
                return BELOW_QUOTA
        return self._pays(job, polite) or TOO_DEAR

    def _keeps_quota(self, job: PodGroupInfo, queue: str, tasks: Sequence[PodInfo], *, still_held: bool) -> bool:
        """Tell whether a queue and all above it that do not hold ``job`` are left their quotas without ``tasks``.

        ``still_held``: nothing has been taken yet. A queue that is guaranteed without bound what is scarce, or of which
        nobody knows what it holds, gives nothing: GPUs are scarce, for jobs that have none anything.
        """
        tree, lost = self._session.queues, self._session.charges.of_all(tasks)
        spared = tree.path(job.queue)
        return all(
            self._is_left_quota(tree.queues[position].name, lost, lost if still_held else ZERO)
            for position in tree.path(queue)
            if position not in spared
        )

    def _is_left_quota(self, queue: str, lost: Amounts, taken: Amounts) -> bool:
        held, quota = self._session.ask.queue_allocated(queue), self._session.ask.queue_deserved(queue)
        if held is None or quota is None or (lost.gpu and quota.gpu < 0):
            return False
        figures = zip(lost.astuple(), (held - taken).astuple(), quota.astuple(), strict=True)
        bounded = [(left, guaranteed) for given, left, guaranteed in figures if given and guaranteed >= 0]
        return bool(bounded) and all(left >= guaranteed for left, guaranteed in bounded)

    def _pays(self, job: PodGroupInfo, victims: Sequence[PodGroupInfo]) -> bool:
        """Tell whether victims have long enough to run, and all who wait save what it costs that they give way."""
        length = self._length(job)
        least = min(self._left(victim) or 0.0 for victim in victims)
        if length is None or least < self._times * length:
            return False
        now = self._session.now
        undone = [self._memory.undone_by_eviction(victim, now) for victim in victims]
        lost = sum(undone) + sum(map(self._memory.undone_before, victims))
        if least < self._times * (length * len(victims) + lost):
            return False
        gain = self._line(job).gain(self._places(job, victims), least)
        later = gain.back * len(victims) + lost
        again = sum(work * self._part(victim) for work, victim in zip(undone, victims, strict=True))
        others = max(self._lacking_room() - gain.jobs, 0)
        return later <= least and gain.saved >= later + others * again

    def _places(self, job: PodGroupInfo, victims: Sequence[PodGroupInfo]) -> int:
        """Return how many jobs like one have room where victims run: by GPUs if it has any, else by CPUs."""
        cpus, gpus = self._held(job)
        held = [self._held(victim) for victim in victims]
        if gpus:
            return max(sum(each[1] for each in held) // gpus, 1)
        return max(sum(each[0] for each in held) // max(cpus, 1), 1)

    def _part(self, victim: PodGroupInfo) -> float:
        """Return the part of all nodes that a job holds: of their GPUs if it has any, else of their CPUs."""
        all_cpus, all_gpus, _ = self._offered
        cpus, gpus = self._held(victim)
        return gpus / all_gpus if gpus else cpus / all_cpus

    def _held(self, job: PodGroupInfo) -> tuple[int, int]:
        """Return what the pods of a job ask for: CPUs, and parts of GPUs."""
        memory = self._offered[2]
        requests = [record.request for _, record in job.members.pods.values()]
        cpus = sum(int(request.requests[CPU]) for request in requests)
        return cpus, sum(request.gpu_parts(memory) for request in requests)

    @cached_property
    def _offered(self) -> tuple[float, float, int]:
        """Return what all nodes have: CPUs, parts of GPUs, and the memory of the smallest GPU."""
        table, rows = self._session.nodes.table, self._session.nodes.all.rows
        amounts = table.allocatable[rows].sum(axis=0)
        return max(float(amounts[CPU]), 1.0), max(DEVICE * float(amounts[GPU]), 1.0), int(table.gpu_memory[rows].min())

    def _line(self, job: PodGroupInfo) -> WaitingLine:
        known = self._lines.get(job.key)
        if known is None:
            known = self._lines[job.key] = self._line_of(job)
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
