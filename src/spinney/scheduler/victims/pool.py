"""Who could be a victim in one action: the preemptible jobs that hold something, by queue, least important first.

The pool is made once per action and kept up to date by what the action commits, so that a search costs what it looks
at and not the number of running jobs. Sums over it, per node and per queue, answer most hopeless searches before a
single victim is looked at.
"""

from bisect import insort
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from itertools import compress
from typing import Any

import numpy as np

from spinney.cluster.resources import GPU, padded
from spinney.cluster.statuses import ACTIVE_ALLOCATED, PodStatus
from spinney.cluster.table import Mask, Matrix
from spinney.gangs.tree import Gang, GangKey
from spinney.scheduler.fairshare.amounts import Amounts, total_of
from spinney.scheduler.fairshare.bounds import Lot
from spinney.scheduler.framework.jobs import PodGroupInfo
from spinney.scheduler.framework.session import Session
from spinney.scheduler.framework.tasks import PodInfo
from spinney.scheduler.victims.own_runtime import CUT_SHORT, can_give, is_within_own_runtime


class VictimJob:
    """A job that could give something up. Sorts by importance, the least important first."""

    __slots__ = ("held", "job", "key", "places", "view")

    def __init__(self, session: Session, job: PodGroupInfo, view: PodGroupInfo, key: Any) -> None:
        self.job = job
        self.view = view
        """The job with the tasks that are still there to be given up."""
        self.key = key
        tasks = [task for task in view.tasks if task.status in ACTIVE_ALLOCATED]
        self.held: Amounts = session.charges.of_all(tasks)
        self.places = tasks

    def __lt__(self, other: "VictimJob") -> bool:
        return bool(other.key < self.key)


class _LeafQueue:
    """The preemptible gangs of a leaf queue, and what was found out about them. Mutable: found when it is asked for."""

    def __init__(self, session: Session, name: str, started: Mapping[GangKey, Gang], waiting: Mapping[GangKey, Gang]):
        self._session = session
        self._name = name
        self.started = started
        self._waiting = waiting
        self._lot: Lot | None = None

    @cached_property
    def preemptible(self) -> Mapping[GangKey, Gang]:
        inference = self._session.is_inference_preemptible()
        return {
            key: gang
            for gangs in (self.started, self._waiting)
            for key, gang in gangs.items()
            if gang.preemptible or (inference and self._session.job(key).is_preemptible_job(inference))
        }

    @cached_property
    def priorities(self) -> frozenset[int]:
        """Return the priorities of these gangs; every search asks."""
        return frozenset(gang.priority for gang in self.preemptible.values())

    @cached_property
    def pods(self) -> int:
        """Return how many pods could be given up; counted once, for the snapshot does not change."""
        inference, holdings = self._session.is_inference_preemptible(), self._session.snapshot.gangs.holdings
        return sum(
            count
            for kind, count in holdings.get(self._name, {}).items()
            if kind.charged and (kind.preemptible or inference)
        )

    @cached_property
    def victims(self) -> list[VictimJob]:
        """Return the possible victims, the least important first."""
        return sorted(_possible_victims(self._session, map(self._session.job, self.preemptible)))

    @cached_property
    def by_job(self) -> dict[GangKey, VictimJob]:
        """Return them by job: a commit may take hundreds, and looks for each."""
        return {victim.job.key: victim for victim in self.victims}

    def forget_victims(self) -> None:
        """Have them found anew."""
        self.__dict__.pop("victims", None)
        self.__dict__.pop("by_job", None)

    def look_again(self, job: PodGroupInfo) -> None:
        """Take in what became of a job, where victims were looked for."""
        if "victims" not in self.__dict__ or job.key not in self.preemptible:
            return
        old = self.by_job.pop(job.key, None)
        if old is not None:
            # Not by its place: a comparison may see by now what the scenario changed.
            self.victims.remove(old)
        for victim in _possible_victims(self._session, [job]):
            insort(self.victims, victim)
            self.by_job[job.key] = victim

    @property
    def lot(self) -> Lot | None:
        """Return what could be taken, as it was when there were victims first: never too little."""
        if self._lot is None and self.victims:
            pods = [self._session.charges.of(task) for victim in self.victims for task in victim.places]
            held = [victim.held for victim in self.victims]
            self._lot = Lot(
                total=total_of(held),
                smallest=Amounts(*map(min, zip(*(each.astuple() for each in pods), strict=True))),
                largest=Amounts(*map(max, zip(*(each.astuple() for each in held), strict=True))),
            )
        return self._lot

    @cached_property
    def freed(self) -> Matrix:
        """Return what victims held at first by node, ``[node, resource + row]``: the last column is the node's row."""
        width = self._session.nodes.table.axis.width
        by_row: dict[int, Matrix] = {}
        for victim in self.victims:
            for task in victim.places:
                amounts = by_row.get(task.row)
                if amounts is None:
                    amounts = by_row[task.row] = np.zeros(width + 1, dtype=np.int64)
                    amounts[-1] = task.row
                amounts[:-1] += most_freed(task, width)
        return np.array(list(by_row.values()), dtype=np.int64).reshape(len(by_row), width + 1)


class VictimPool:
    """Possible victims of one action. Mutable: jobs that a committed scenario touched are looked at again."""

    def __init__(self, session: Session) -> None:
        self._session = session
        snapshot, queues = session.snapshot.gangs, session.queues
        # A job that is pending now may be given a place before this action ends, and may then have to give it up again.
        waiting: dict[str, dict[GangKey, Gang]] = {}
        for key in snapshot.pending:
            gang = snapshot.gangs[key].gang
            waiting.setdefault(gang.queue, {})[key] = gang
        self._leaves = {
            queue: _LeafQueue(session, queue, snapshot.started.get(queue, {}), waiting.get(queue, {}))
            for queue in dict.fromkeys((*snapshot.started, *waiting))
            if (position := queues.index.get(queue)) is not None and queues.is_leaf(position)
        }
        self._version = session.ask.job_order_version()
        # A comparison is made when two are compared, of jobs as they are by then: no place found before need hold.
        self._keeps_order = all(order.compare is None for order in session.hooks.job_order)

    @property
    def queues(self) -> Iterable[str]:
        """Return the leaf queues that have preemptible jobs."""
        return [queue for queue, leaf in self._leaves.items() if leaf.preemptible]

    def of_queue(self, queue: str) -> list[VictimJob]:
        """Return the possible victims of a leaf queue, the least important first. Not to be written to."""
        self._follow_order()
        return self._leaves[queue].victims

    def holds(self, job: PodGroupInfo) -> bool:
        """Tell whether a job could be a victim now."""
        self._follow_order()
        return job.key in self._leaves[job.queue].by_job

    def has_any(
        self, queues: Iterable[str], may_be: Callable[[int], bool], admits: Callable[[PodGroupInfo], bool]
    ) -> bool:
        """Tell whether a job of these queues is admitted; none of their pods is looked at for that.

        ``may_be`` rules out all jobs of a priority before one of them is looked at.
        """
        for leaf in map(self._leaves.__getitem__, queues):
            wanted = set(filter(may_be, leaf.priorities))
            gangs = leaf.preemptible.items() if wanted else ()
            if any(admits(self._session.job(key)) for key, gang in gangs if gang.priority in wanted):
                return True
        return False

    def holding(self, queues: Iterable[str], may_be: Callable[[int], bool]) -> Iterator[PodGroupInfo]:
        """Yield the preemptible jobs of these queues that held something before this cycle, of the priorities wanted.

        They may be few where many wait.
        """
        for leaf in map(self._leaves.__getitem__, queues):
            started = leaf.started.items()
            kept = (key for key, gang in started if key in leaf.preemptible and may_be(gang.priority))
            yield from map(self._session.job, kept)

    def pods(self, queues: Iterable[str]) -> int:
        """Return how many pods the jobs of these queues could give up at most."""
        return sum(self._leaves[queue].pods for queue in queues)

    def lots(self, queues: Iterable[str]) -> dict[str, Lot]:
        """Return what could be taken from each of these queues, in sums that are never too small."""
        self._follow_order()
        found = {queue: self._leaves[queue].lot for queue in queues}
        return {queue: lot for queue, lot in found.items() if lot is not None}

    def present(self, queues: Iterable[str], here: Mask) -> Iterator[PodGroupInfo]:
        """Yield the jobs of these queues that have pods on the nodes ``here``; pods of the others are not looked at."""
        session = self._session
        names = set(compress(session.nodes.table.names, here.tolist()))
        gangs = session.snapshot.gangs.gangs
        for queue in queues:
            for key in self._leaves[queue].preemptible:
                members = gangs[key]
                if members.pending:  # what was placed in this session is not in the snapshot
                    job = session.job(key)
                    if any(_is_on(task, here) for task in job.tasks):
                        yield job
                elif any(record.node in names for _, record in members.pods.values()):
                    yield session.job(key)

    def leaving(self, queues: Iterable[str], here: Mask) -> Iterator[Amounts]:
        """Yield what each pod of these queues on the nodes ``here`` holds that may ever go to another node."""
        session = self._session
        elsewhere = np.zeros_like(here)
        elsewhere[session.nodes.all.rows] = True
        elsewhere &= ~here
        rules, alike = session.ask.node_rules, session.hooks.place_alike and not session.nodes.rule_carriers
        may_leave: dict[int, bool] = {}
        for job in self.present(queues, here):
            for task in job.tasks:
                if not _is_on(task, here):
                    continue
                known = may_leave.get(task.request.number) if alike else None
                if known is None:
                    known = may_leave[task.request.number] = bool((rules.suits(task) & elsewhere).any())
                if known:
                    yield session.charges.of(task)

    def freed(self, queues: Iterable[str]) -> Matrix:
        """Return what the jobs of these queues hold on each node, ``[node, resource]``; never too small.

        Every pod that shares a device counts as if its leaving freed the whole device.
        """
        self._follow_order()
        total = np.zeros_like(self._session.nodes.table.idle)
        for queue in queues:
            known = self._leaves[queue].freed
            if len(known):
                total[known[:, -1]] += known[:, :-1]
        return total

    def look_again(self, jobs: Iterable[PodGroupInfo]) -> None:
        """Take in what a committed scenario did to ``jobs``."""
        for job in jobs:
            leaf = self._leaves.get(job.queue)
            if leaf is None:
                continue
            if self._keeps_order:
                leaf.look_again(job)
            elif job.key in leaf.preemptible:
                leaf.forget_victims()

    def _follow_order(self) -> None:
        """Forget every order that may have changed."""
        version = self._session.ask.job_order_version()
        if version != self._version:
            self._version = version
            for leaf in self._leaves.values():
                leaf.forget_victims()


def _possible_victims(session: Session, jobs: Iterable[PodGroupInfo]) -> Iterator[VictimJob]:
    looked_at = [job for job in jobs if job.members.pending < len(job.members.pods) or "by_pod_set" in job.__dict__]
    for job, key in zip(looked_at, session.ask.victim_keys(looked_at), strict=True):
        victim = VictimJob(session, job, job, key)
        spared = session.config.spare_just_bound and any(map(is_just_bound, victim.places))
        if victim.places and not spared and protection_of(session, job) is None:
            yield victim


def protection_of(session: Session, job: PodGroupInfo) -> str | None:
    """Return what keeps even the least from being taken from a job: a disruption budget, or its own runtime."""
    budgets = session.snapshot.budgets
    if budgets and (refusal := budgets.refusal(task.record for task in job.tasks_to_evict()[0])) is not None:
        return refusal
    return CUT_SHORT if is_within_own_runtime(session, job) and not can_give(job) else None


def _is_on(task: PodInfo, here: Mask) -> bool:
    """Tell whether a task holds a place on one of the nodes ``here``."""
    return task.status in ACTIVE_ALLOCATED and bool(here[task.row])


def is_just_bound(task: PodInfo) -> bool:
    """Tell whether a task was given its node in this session: its bind may be on its way, so it is left alone."""
    return task.status is PodStatus.BINDING and task.record.status is PodStatus.PENDING


def most_freed(task: PodInfo, width: int) -> Any:
    """Return the most that a task's leaving can free, ``[resource]``."""
    amounts = padded(task.request.requests, width)
    share = task.request.share
    if share is not None:
        amounts = amounts.copy()
        amounts[GPU] += share.devices
    return amounts
