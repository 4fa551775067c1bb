"""Plain jobs, placed without making tasks of their pods: where those like them left off, or on the best nodes.

What was found for one serves those that follow: which nodes come next
(:mod:`~spinney.scheduler.evaluation.kept_ranking`), which domain they are in, and that nothing keeps such pods off all
nodes. So a job costs what differs: whether its queue has room, and booking; jobs that
come one after the other, with nobody to be asked or told in between, are booked together. The outcome is that of
:mod:`~spinney.scheduler.placement.placing`, to which everything is left that is not certain: all jobs, where a plugin
promises too little.
"""

from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import Final, NamedTuple

import numpy as np

from spinney.cluster.journal import Rows
from spinney.cluster.table import Holding
from spinney.gangs.tree import GroupSet
from spinney.runtime.faults import raised
from spinney.scheduler.evaluation.questions import SubsettingFailed
from spinney.scheduler.evaluation.rule_sets import TaskRules
from spinney.scheduler.evaluation.turns import JobTurns
from spinney.scheduler.framework.jobs import PodGroupInfo
from spinney.scheduler.framework.nodes import FirstChoice, NodeSet
from spinney.scheduler.framework.plain_jobs import Places, PlainPods, TaskRun
from spinney.scheduler.framework.session import Session
from spinney.scheduler.framework.statement import UnsoundSession
from spinney.scheduler.framework.tasks import PodInfo
from spinney.scheduler.placement.devices import choose_devices
from spinney.scheduler.placement.filling import best_places, may_fill, may_follow, next_places

_POD: Final = attrgetter("pod")
_LOUD: Final = 4
"""From this verbosity on every division of nodes is logged."""
_MOST_AT_ONCE: Final = 256
"""Jobs that are placed together; the time of an action is looked at in between."""


_BY_THEMSELVES: Final = -1
"""Stands for no ranking: the best node is looked for each time."""


class _Leader(NamedTuple):
    """The first of alike jobs: a task of it, the rules about it, and the ranking that holds for those that follow."""

    task: PodInfo
    rules: TaskRules
    ranking: int


class PlainJobs:
    """Places plain jobs. Mutable: it remembers whom others follow."""

    def __init__(self, session: Session, turns: JobTurns) -> None:
        self._session = session
        self._turns = turns
        self._kept = session.ask.kept_ranking
        self._usable = _keeps_promises(session)
        self._leaders: dict[tuple[str, int, int], _Leader] = {}
        """By queue, request and number of pods."""
        self._others: set[tuple[GroupSet, int]] = set()
        """Kinds of jobs, by tree and request, whose nodes are not judged by request alone: each is tried by itself."""

    def place(self, job: PodGroupInfo) -> Sequence[PodGroupInfo]:
        """Place a job for good, and those like it whose turn comes next; return them.

        None, if it has to be tried as any other.
        """
        if not self._usable or (self._others and self._is_one_of_others(job)):
            return ()
        pods = job.plain
        if pods is None or self._session.nodes.have_rules_about(map(_POD, pods.records)):
            return ()
        leader = self._leaders.get((job.gang.queue, pods.request.number, len(pods.records)))
        if leader is None or not _are_alike(job, leader.task.job):
            return (job,) if self._begin(job, pods) else ()
        ask, ranking = self._session.ask, leader.ranking
        if ask.node_rules.rules(leader.task) is not leader.rules or ranking not in (self._kept.number, _BY_THEMSELVES):
            return (job,) if self._begin(job, pods) else ()
        if ask.pre_predicates.depend_on_job(leader.task):
            return ()
        if ranking == _BY_THEMSELVES:
            return (job,) if self._place_one(job, pods, leader.task, self._session.nodes.all, leader.rules) else ()
        places = self._kept.following(len(pods.records))
        if places is None:
            return (job,) if self._begin(job, pods) else ()
        run = [(job, pods)]
        if ask.has_lasting_capacity(job):
            run += self._followers(pods, leader)
            places = self._kept.following(len(run) * len(pods.records))
            assert places is not None, "there is room for all who follow"
        elif not self._has_capacity(job, places[0][0]):
            return ()
        self._book(run, places)
        self._kept.took(places)
        jobs = [each for each, _ in run]
        self._turns.skip(jobs[1:])
        return jobs

    def _followers(self, first: PlainPods, leader: _Leader) -> Iterator[tuple[PodGroupInfo, PlainPods]]:
        """Yield jobs that come next, are like one with the pods ``first``, and change nothing for each other.

        Nothing bounds what such jobs may be given. They end where a handler must be called for the placements, and with
        the room on the nodes that are ranked.
        """
        size = len(first.records)
        ahead = -(-self._session.ask.most_ahead(first.request) // size)
        most = min(ahead, self._kept.room // size, _MOST_AT_ONCE) - 1
        if most <= 0:
            return
        like = leader.task.job
        for job in self._turns.upcoming(most):
            pods = _readable(job)
            if pods is None or pods.request is not first.request or len(pods.records) != size:
                return
            if not _are_alike(job, like) or self._session.nodes.have_rules_about(map(_POD, pods.records)):
                return
            yield job, pods

    def _begin(self, job: PodGroupInfo, pods: PlainPods) -> bool:
        """Place a job on the best nodes, to be followed by others if that is possible."""
        session, ask, request = self._session, self._session.ask, pods.request
        task = pods.first_task(job)
        if request.looks_around or ask.pre_predicates.depend_on_job(task):
            return False
        if ask.pre_predicates.refusal_of_class(task) is not None:
            return False
        unbounded = ask.has_lasting_capacity(job)
        if not unbounded and not ask.is_job_over_capacity(job, job.tasks_to_allocate()).ok:
            return False
        nodes = self._divided(job, pods)
        if nodes is None:
            return False
        rules = ask.node_rules.rules(task)
        size = len(pods.records)
        fills = request.share is None and may_fill(rules)
        if not fills and not (rules.by_class and size == 1):
            self._others.add((job.root, request.number))
            return False
        if not fills:
            if nodes is session.nodes.all:
                self._leaders[job.gang.queue, request.number, size] = _Leader(task, rules, _BY_THEMSELVES)
            return self._place_one(job, pods, task, nodes, rules)
        follows = may_follow(session, nodes, rules)
        places = (next_places if follows else best_places)(session, task, size, nodes, rules)
        if places is None or not (unbounded or self._has_capacity(job, places[0][0])):
            return False
        if follows:
            self._leaders[job.gang.queue, request.number, size] = _Leader(task, rules, self._kept.number)
        self._book([(job, pods)], places)
        if follows:
            self._kept.took(places)
        return True

    def _is_one_of_others(self, job: PodGroupInfo) -> bool:
        _, record = next(iter(job.members.pods.values()))
        return (job.root, self._session.devices.effective_request(record).number) in self._others

    def _place_one(self, job: PodGroupInfo, pods: PlainPods, like: PodInfo, nodes: NodeSet, rules: TaskRules) -> bool:
        """Place the only pod of a job on the best node, if it can go there now; ``rules`` are those about ``like``."""
        session = self._session
        row = session.ask.node_rules.best_now(like, nodes, rules)
        if row is None or not (session.ask.has_lasting_capacity(job) or self._has_capacity(job, row)):
            return False
        groups: tuple[str, ...] = ()
        if pods.request.share is not None:
            choice = choose_devices(session, pods.first_task(job), session.nodes.info(row))
            if choice is None or not choice.now:
                return False
            groups = choice.groups
        self._book([(job, pods)], [(row, 1)], groups)
        return True

    def _divided(self, job: PodGroupInfo, pods: PlainPods) -> NodeSet | None:
        """Return the nodes to try first; ``None`` if more than one plugin applies, or nothing fits."""
        session, root = self._session, job.root
        asked = [group for hook in session.hooks.subset_nodes for group in (root, pods.pod_set) if hook.applies(group)]
        if not asked:
            return session.nodes.all
        if len(asked) > 1 or asked[0] is not root:
            return None
        try:
            sets = session.ask.subset_nodes(job, root, TaskRun((job,), pods), session.nodes.all)
        except SubsettingFailed:
            return None
        first = next(iter(sets), None)
        return first if isinstance(first, FirstChoice) and job.gang.anchor is None else None

    def _has_capacity(self, job: PodGroupInfo, row: int) -> bool:
        ask, tasks = self._session.ask, job.tasks_to_allocate()
        if not ask.is_job_over_capacity(job, tasks).ok:
            return False
        return ask.is_task_allocation_on_node_over_capacity(tasks[0], self._session.nodes.info(row)).ok

    def _book(
        self,
        run: Sequence[tuple[PodGroupInfo, PlainPods]],
        places: list[tuple[int, int]],
        groups: tuple[str, ...] = (),
    ) -> None:
        """Book jobs that are alike, each after the other, on rows that hold so many of their pods each."""
        session, (job, first) = self._session, run[0]
        names, size = session.nodes.table.names, len(first.records)
        try:
            if size == len(places) == len(run) == 1:
                ((row, _),) = places
                rows = [row]
                session.ledger.add(row, first.request, Holding.ACTIVE, groups)
                placed = [(job, Places(first, rows, [names[row]], groups))]
            else:
                rows = [row for row, count in places for _ in range(count)]
                session.ledger.add_many(_column(places, 0), _column(places, 1), first.request)
                hosts = list(map(names.__getitem__, rows))
                placed = [
                    (job, Places(pods, rows[start : start + size], hosts[start : start + size], groups))
                    for start, (job, pods) in zip(range(0, len(rows), size), run, strict=True)
                ]
            records = first.records if len(run) == 1 else [record for _, pods in run for record in pods.records]
            session.nodes.put_records(records, rows)
            for job, given in placed:
                job.put_all(given)
            session.ask.announce_allocation(TaskRun([job for job, _ in run], first))
            session.record_plain(placed)
        except raised() as error:
            raise UnsoundSession("booking", error) from error


def _readable(job: PodGroupInfo) -> PlainPods | None:
    """Return the pods of a job whose turn has not come, if it is plain; what fails fails again in its turn."""
    try:
        return job.plain
    except Exception:  # noqa: BLE001 - it is told then, and about this job
        return None


def _column(places: list[tuple[int, int]], which: int) -> Rows:
    return np.array([place[which] for place in places], dtype=np.intp)


def _keeps_promises(session: Session) -> bool:
    """Tell whether all plugins promise what following others takes."""
    hooks = session.hooks
    if not hooks.place_alike or hooks.hears_of_each or hooks.bind_mutations or hooks.node_pre_order:
        return False
    if hooks.pre_job_allocation or hooks.job_distinctions or session.config.verbosity >= _LOUD:
        return False
    return all(hook.applies_to is not None for hook in hooks.subset_nodes)


def _are_alike(job: PodGroupInfo, other: PodGroupInfo) -> bool:
    """Tell whether plugins that treat alike jobs alike cannot tell two jobs apart that request the same."""
    mine, others = job.gang, other.gang
    return (
        mine.queue == others.queue
        and (mine.root is others.root or mine.root == others.root)
        and mine.priority == others.priority
        and mine.preemptible is others.preemptible
        and mine.priority_class == others.priority_class
        and mine.key.namespace == others.key.namespace
        and mine.anchor is None
    )
