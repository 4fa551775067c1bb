"""Who else waits: the gangs whose turn comes after a gang's, as far as it is certain what they will take.

Pods of one kind can be counted against each other, so a plan is for gangs of one kind. A gang of another kind, or one
of which it cannot be told what it will take, ends the list, for a plan might take its place; it is passed over where
it certainly finds no room, with what is terminating gone as well. Where the turns are not known, because several queues
take theirs by what they hold, the list has everybody or is none.
"""

from collections.abc import Callable, Collection, Iterable
from operator import attrgetter
from typing import Final, NamedTuple

import numpy as np

from spinney.cluster.classes import RequestClass
from spinney.cluster.fitting import pods_per_node
from spinney.cluster.pods import PodRecord
from spinney.cluster.resources import Vector
from spinney.gangs.book import GangMembers
from spinney.gangs.tree import GangKey, TopologyConstraintInfo
from spinney.scheduler.framework.extension_points import Predicate
from spinney.scheduler.framework.jobs import PodGroupInfo
from spinney.scheduler.framework.session import Session
from spinney.scheduler.framework.tasks import PodInfo
from spinney.scheduler.topology.domains import Domains, Numbers, Sums
from spinney.scheduler.topology.planning import GangSize

_LOOKED_AT: Final = 256
"""How many of those who come next are looked at: most of those who wait long find no room."""
NOW, LATER = 0, 1
"""The columns of :meth:`Company.room`."""
_POD: Final = attrgetter("pod")

Locate = Callable[[TopologyConstraintInfo], tuple[Domains, int] | None]
"""Finds the domains and the depth of the level that a gang requires, if it requires one that exists."""


class AlikePods(NamedTuple):
    """What pods must have in common to be counted against each other."""

    domains: Domains
    request: RequestClass
    rules: tuple[Predicate, ...]
    """Which nodes they may go to, for the whole session."""


class Following(NamedTuple):
    """Gangs of one kind that come after one, by turn; if ``ordered`` is false their turns are not known."""

    gangs: dict[GangKey, GangSize]
    ordered: bool


class Company:
    """The gangs of a session that wait beside each other. Mutable: it remembers what it found out about them."""

    def __init__(self, session: Session, locate: Locate) -> None:
        self._session = session
        self._locate = locate
        self._sizes: dict[tuple[Domains, RequestClass], set[GangSize]] | None = None
        self._without_room: set[GangKey] = set()
        """For good: in the action that places gangs on what is free there is never more of it."""

    def has_several_sizes(self, domains: Domains, request: RequestClass) -> bool:
        """Tell whether gangs of like pods may spoil each other's places: those of one size do not."""
        if self._sizes is None:
            self._sizes = {}
            for key in self._session.snapshot.gangs.pending:
                members = self._session.snapshot.gangs.gangs[key]
                found = self._wanted(members)
                if found is not None:
                    where, asked, wanted = found
                    self._sizes.setdefault((where, asked), set()).add(wanted)
        return len(self._sizes.get((domains, request), ())) > 1

    def kind_of(self, job: PodGroupInfo) -> tuple[AlikePods, GangSize] | None:
        """Return what a gang asks for, if nothing else decides where it may go; ``None`` if that cannot be told."""
        found = self._wanted(job.members)
        if found is None or self._session.nodes.have_rules_about(map(_POD, _records(job.members))):
            return None
        ask, task = self._session.ask, first_task(job)
        rules = ask.node_rules.rules(task)
        if rules.usage[0] or rules.job[0] or rules.asked[0] or ask.pre_predicates.depend_on_job(task):
            return None
        if ask.pre_predicates.refusal_of_class(task) is not None:
            return None
        domains, request, wanted = found
        return AlikePods(domains, request, tuple(rules.fixed[0])), wanted

    def room(self, kind: AlikePods, task: PodInfo) -> Sums:
        """Return how many pods of a kind fit where they may go, now and once what is terminating is gone."""
        table, request = self._session.nodes.table, kind.request

        def count(rows: Vector) -> Vector:
            now = pods_per_node(table.idle_at(request.columns, rows), request.amounts)
            later = pods_per_node(table.free_at(request.columns, rows), request.amounts) if table.may_release else now
            return np.vstack((now, later)).T * suited[rows, None]

        suited = self._session.ask.node_rules.suits(task)
        return kind.domains.sums(("exact", request.number, tuple(map(id, kind.rules))), count)

    def following(self, kind: AlikePods, wanted: GangSize, room: Sums, most: int) -> Following | None:
        """Return up to ``most`` gangs to plan for beside one whose turn it is; ``None`` if nothing is certain."""
        waiting = self._session.waiting
        if waiting is None:
            return None
        jobs: Collection[PodGroupInfo] = waiting.upcoming(_LOOKED_AT)
        ordered = bool(jobs) or not waiting.missed
        if not ordered:
            jobs = waiting.missed
            if len(jobs) > _LOOKED_AT:
                return None
        found: dict[GangKey, GangSize] = {}
        pods = wanted.pods
        for job in jobs:
            if job.key in self._without_room:
                continue
            asked = self.kind_of(job)
            counted = room.of_level(asked[1].depth) if asked is not None and asked[0] == kind else None
            if self._finds_no_room(job, counted):
                self._without_room.add(job.key)
                continue
            if len(found) == most or asked is None or asked[0] != kind or not self._has_capacity(job, pods):
                if ordered:
                    break
                return None
            found[job.key] = asked[1]
            pods += asked[1].pods
        return Following(found, ordered)

    def _finds_no_room(self, job: PodGroupInfo, counted: Numbers | None) -> bool:
        """Tell whether a gang will certainly be refused in its turn; ``counted`` is the room of its kind, if known."""
        if counted is not None:
            lacks_room = counted[:, LATER].max(initial=0) < len(job.members.pods)
        else:
            lacks_room = any(self._lacks_room(job, request, count) for request, count in job.asked.items())
        return bool(lacks_room) or not self._may_hold(job)

    def _may_hold(self, job: PodGroupInfo) -> bool:
        """Tell whether the gang's queue may be given what it asks for, as things are."""
        ask = self._session.ask
        return ask.has_lasting_capacity(job) or ask.is_job_over_capacity(job, job.tasks_to_allocate()).ok

    def _has_capacity(self, job: PodGroupInfo, before: int) -> bool:
        """Tell whether the queue may be given as much when so many pods of the same kind were placed."""
        ask, task = self._session.ask, first_task(job)
        if ask.has_lasting_capacity(job):
            return True
        return ask.is_job_over_capacity(job, [task] * (before + len(job.members.pods))).ok

    def _lacks_room(self, job: PodGroupInfo, request: RequestClass, count: int) -> bool:
        """Tell whether so many pods of a gang find too little room, wherever they may go."""
        plain, session = job.plain, self._session
        like = plain.first_task(job) if plain is not None else _one_of(job, request)
        (rows,) = session.ask.node_rules.suits(like).nonzero()
        fits = pods_per_node(session.nodes.table.free_at(request.columns, rows), request.amounts, count)
        where = self._locate(job.root.topology) if job.root.topology is not None else None
        if where is None:
            return bool(fits.sum() < count)
        of_row = where[0].levels[where[1]].of_row[rows]
        inside = np.bincount(of_row[of_row >= 0], fits[of_row >= 0])
        return bool(inside.max(initial=0) < count)

    def _wanted(self, members: GangMembers) -> tuple[Domains, RequestClass, GangSize] | None:
        """Return what a gang asks for that goes as a whole to one domain of the level that it requires."""
        constraint = members.gang.root.topology
        if constraint is None or constraint.preferred or members.gang.root.divided:
            return None
        where = self._locate(constraint)
        request = _only_request(members) if where is not None else None
        if where is None or request is None or request.share is not None or request.looks_around:
            return None
        return where[0], request, GangSize(where[1], len(members.pods))


def first_task(job: PodGroupInfo) -> PodInfo:
    """Return the first task of a gang that waits, to ask about."""
    plain = job.plain
    return plain.first_task(job) if plain is not None else job.tasks_to_allocate()[0]


def _one_of(job: PodGroupInfo, request: RequestClass) -> PodInfo:
    return next(task for task in job.tasks_to_allocate() if task.record.request is request)


def _records(members: GangMembers) -> Iterable[PodRecord]:
    return (record for _, record in members.pods.values())


def _only_request(members: GangMembers) -> RequestClass | None:
    """Return what all pods of a gang ask for, if all wait and have to start together; ``None`` if not."""
    needed = sum(pod_set.min_member for pod_set in members.gang.root.pod_sets())
    if members.pending != len(members.pods) or needed != len(members.pods) or members.gang.anchor is not None:
        return None
    asked = {record.request.number: record.request for _, record in members.pods.values()}
    return next(iter(asked.values())) if len(asked) == 1 else None
