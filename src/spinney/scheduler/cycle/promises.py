"""Promises that outlive the cycle they were given in: who had others evicted, or was moved, gets the place found then.

A search for victims ends with all of these placed: the job it was for, and those that were moved for it. But victims
take their time to go and their successors to come, so the places are taken up in later cycles, in another order and
with other things free than when they were found. Left to itself, a moved job may come back to the very node it had to
leave, and the search begins anew. So the outcome is kept: until they have what they were promised, these jobs come
first in their queues, and each prefers the nodes where it was placed. It is a preference; where a node has no room any
more, another will do.

A promise counts from when the cluster shows that victims really go: an eviction that a budget refuses promises nothing.
One for which nobody has to go counts at once. It ends after as long as a terminating pod is counted on.
"""

from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

import msgspec
import numpy as np

from spinney.cluster.pods import PodKey
from spinney.cluster.statuses import ACTIVE_ALLOCATED, PodStatus
from spinney.gangs.tree import GangKey
from spinney.scheduler import scores
from spinney.scheduler.config import SchedulerConfig
from spinney.scheduler.framework.extension_points import with_jobs_first
from spinney.scheduler.framework.jobs import PodGroupInfo
from spinney.scheduler.framework.moves import Moves, workload_of
from spinney.scheduler.framework.nodes import NodeSet, Scores
from spinney.scheduler.framework.results import Eviction
from spinney.scheduler.framework.session import Session
from spinney.scheduler.framework.tasks import PodInfo
from spinney.scheduler.victims.requests import waiting_jobs

NAME: Final = "promises"

Kind = tuple[str, int]
"""A pod set and the number of a request class."""
Layout = Mapping[Kind, Counter[str]]
"""How many pods of each kind a job has on each node when its promise is kept."""

Victims = tuple[tuple[GangKey, PodKey, str], ...]
"""Pods that were to be evicted: the gang, name and uid of each."""


class Proposal(msgspec.Struct, frozen=True):
    """What a search of an earlier cycle found for a job, of which nothing has been seen to happen yet."""

    job: str
    workload: str
    victims: Victims
    moved: tuple[str, ...]
    """The workloads that were promised another place."""
    layouts: Mapping[GangKey, Layout]
    made: datetime


class Promise(msgspec.Struct, frozen=True):
    """Where a job was placed, and until when that counts."""

    layout: Layout
    until: datetime

    def is_open(self, job: PodGroupInfo) -> bool:
        """Tell whether the job has less than it was promised."""
        placed = sum(map(job.count_in(ACTIVE_ALLOCATED), job.gang.pod_sets.values()))
        return placed < sum(nodes.total() for nodes in self.layout.values())


class Promises:
    """Promises of earlier cycles, and who was moved for whom. Mutable; passed from one session to the next."""

    def __init__(self, config: SchedulerConfig) -> None:
        self.moves = Moves(timedelta(seconds=config.move_again_seconds))
        self._keeps = config.keep_promises
        self._grace = timedelta(seconds=config.stuck_in_releasing_seconds)
        self._proposals: dict[tuple[GangKey, Victims], Proposal] = {}
        """A later cycle may find something else for a job while the evictions of the first are on their way."""
        self._kept: dict[GangKey, Promise] = {}

    def begin(self, session: Session) -> None:
        """Take in what has happened since the last cycle, and have ``session`` keep what is still to be kept."""
        now = session.now
        self.moves.forget_old(now)
        session.moves = self.moves
        for key, proposal in list(self._proposals.items()):
            if _has_begun(session, proposal):
                self._take_in(proposal, now)
                del self._proposals[key]
            elif now - proposal.made >= self._grace and not _is_asked(session, proposal):
                del self._proposals[key]
        gangs = session.snapshot.gangs.gangs
        self._kept = {key: promise for key, promise in self._kept.items() if promise.until > now and key in gangs}
        waiting = waiting_jobs(session)
        if self._kept or waiting:
            session.promised = waiting | self._kept.keys()
            _keep(session, self._kept, waiting)

    def end(self, session: Session) -> None:
        """Remember what searches of ``session`` have found."""
        by_job: dict[GangKey, list[Eviction]] = {}
        for eviction in session.evictions:
            if eviction.beneficiary is not None:
                by_job.setdefault(eviction.beneficiary, []).append(eviction)
        for key, evictions in by_job.items():
            job = session.job(key)
            moved = dict.fromkeys(eviction.gang for eviction in evictions if eviction.moves_to)
            victims = tuple((each.gang, each.pod, each.uid) for each in evictions)
            self._proposals[key, victims] = Proposal(
                job=job.uid,
                workload=workload_of(job),
                victims=victims,
                moved=tuple(dict.fromkeys(workload_of(session.job(gang)) for gang in moved)),
                layouts={gang: _layout(session.job(gang)) for gang in (key, *moved)},
                made=session.now,
            )
        if self._keeps:
            until = session.now + self._grace
            self._kept.update((key, Promise(_layout(session.job(key)), until)) for key in session.free_places)

    def _take_in(self, proposal: Proposal, now: datetime) -> None:
        for moved in proposal.moved:
            self.moves.note(proposal.job, proposal.workload, moved, now)
        if self._keeps:
            until = now + self._grace
            self._kept.update((gang, Promise(layout, until)) for gang, layout in proposal.layouts.items())


def _keep(session: Session, promises: Mapping[GangKey, Promise], waiting: frozenset[GangKey]) -> None:
    """Have a session keep promises, by an order of jobs and queues and a score of nodes.

    That is registered before any plugin does: orders are asked in turn. ``waiting`` are jobs whose victims were asked
    to go, as the victims say: known after a restart, too.
    """

    def is_open(job: PodGroupInfo) -> bool:
        promise = promises.get(job.key)
        return job.key in waiting or (promise is not None and promise.is_open(job))

    def score(task: PodInfo, job: PodGroupInfo, nodes: NodeSet) -> Scores:
        kind = _kind(task)
        promised = promises[job.key].layout.get(kind, Counter())
        missing = promised - Counter(
            each.node_name
            for each in job.by_pod_set[task.pod_set.name]
            if each.status in ACTIVE_ALLOCATED and _kind(each) == kind
        )
        rows = [row for name in missing if (row := session.nodes.table.find(name)) is not None]
        return np.where(np.isin(nodes.rows, rows), scores.NOMINATED_NODE, 0.0)

    with session.hooks.attributed_to(NAME, alike=True):
        session.add_job_order_key(lambda job: 0 if is_open(job) else 1)
        session.add_queue_order_fn(with_jobs_first(is_open))
        session.add_node_order_columns(score, stateful=True, applies_to=lambda task: task.job.key in promises)


def _layout(job: PodGroupInfo) -> Layout:
    """Return where the tasks of a job are, or are going to be."""
    layout: dict[Kind, Counter[str]] = {}
    for task in job.tasks:
        if task.status in ACTIVE_ALLOCATED:
            layout.setdefault(_kind(task), Counter())[task.node_name] += 1
    return layout


def _kind(task: PodInfo) -> Kind:
    return (task.pod_set.name, task.request.number)


def _has_begun(session: Session, proposal: Proposal) -> bool:
    """Tell whether a pod that was to be evicted is going, or gone."""
    gangs = session.snapshot.gangs.gangs
    for gang, pod, uid in proposal.victims:
        members = gangs.get(gang)
        found = members.pods.get(pod) if members is not None else None
        if found is None or found[1].uid != uid or found[1].status is PodStatus.RELEASING:
            return True
    return False


def _is_asked(session: Session, proposal: Proposal) -> bool:
    """Tell whether a pod that was to be evicted has been asked, and may take its time."""
    asked = session.snapshot.asked
    return any(pod in asked.get(gang, ()) for gang, pod, _ in proposal.victims)
