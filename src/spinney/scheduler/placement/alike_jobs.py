"""Plain jobs that are like the one before, placed where it left off.

What was found for the first of them serves those that follow: which nodes come next
(:mod:`~spinney.scheduler.evaluation.kept_ranking`), which domain they are in, and that nothing keeps such pods off all
nodes. So a job costs what differs: whether its queue has room, and booking. The outcome is that of
:mod:`~spinney.scheduler.placement.placing`, to which everything is left that is not certain: all jobs, where a plugin
promises too little.
"""

import numpy as np

from spinney.cluster.journal import Rows
from spinney.cluster.table import Holding
from spinney.scheduler.evaluation.kept_ranking import Leader
from spinney.scheduler.framework.jobs import PodGroupInfo
from spinney.scheduler.framework.nodes import FirstChoice
from spinney.scheduler.framework.plain_jobs import Places, PlainPods, TaskRun
from spinney.scheduler.framework.session import Session
from spinney.scheduler.framework.statement import UnsoundSession

_LOUD = 4
"""From this verbosity on every division of nodes is logged."""


class AlikeJobs:
    """Places jobs that follow others like them. Mutable: it remembers whom they follow."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._kept = session.ask.kept_ranking
        self._usable = _keeps_promises(session)
        self._leader: Leader | None = None
        self._followed = False
        self._unbounded = False
        """Whether nothing bounds what jobs like that of the leader may be given."""

    def place(self, job: PodGroupInfo) -> bool:
        """Place a job for good; ``False`` if it has to be tried as any other."""
        leader, session = self._kept.leader, self._session
        if leader is None or not self._usable or session.nodes.rule_carriers:
            return False
        if leader is not self._leader:
            self._leader, self._followed = leader, self._can_be_followed(leader)
            self._unbounded = session.ask.has_lasting_capacity(leader.task.job)
        if not self._followed:
            return False
        pods = job.plain
        if pods is None or pods.request is not leader.task.request or not _are_alike(job, leader.task.job):
            return False
        places = self._kept.following(len(pods.records))
        if places is None or session.ask.pre_predicates.depend_on_job(leader.task):
            return False
        if session.ask.node_rules.rules(leader.task) is not leader.rules or not self._has_capacity(job, places[0][0]):
            return False
        self._book(job, pods, places)
        self._kept.took(places)
        return True

    def _can_be_followed(self, leader: Leader) -> bool:
        """Tell whether where jobs like that of ``leader`` go depends on nothing but what is kept."""
        task, nodes = leader.task, leader.nodes
        root, constraints = task.job.root, task.request.constraints
        if task.job.gang.anchor is not None or constraints.looks_at_pods or constraints.volumes:
            return False
        dividing = sum(
            hook.applies(group) for hook in self._session.hooks.subset_nodes for group in (root, *root.members)
        )
        return dividing == 1 if isinstance(nodes, FirstChoice) else dividing == 0

    def _has_capacity(self, job: PodGroupInfo, row: int) -> bool:
        if self._unbounded:
            return True
        ask = self._session.ask
        tasks = job.tasks_to_allocate()
        if not ask.is_job_over_capacity(job, tasks).ok:
            return False
        return ask.is_task_allocation_on_node_over_capacity(tasks[0], self._session.nodes.info(row)).ok

    def _book(self, job: PodGroupInfo, pods: PlainPods, places: list[tuple[int, int]]) -> None:
        session, names = self._session, self._session.nodes.table.names
        try:
            if len(places) == 1:
                ((row, count),) = places
                rows, node_names = [row] * count, [names[row]] * count
            else:
                rows = [row for row, count in places for _ in range(count)]
                node_names = [names[row] for row in rows]
            if len(rows) == 1:
                session.ledger.add(rows[0], pods.request, Holding.ACTIVE, ())
            else:
                session.ledger.add_many(_column(places, 0), _column(places, 1), pods.request)
            session.nodes.put_records(pods.records, rows)
            given = Places(pods, rows, node_names)
            job.put_all(given)
            session.ask.announce_allocation(TaskRun(job, pods))
            session.record_plain(job, given)
        except Exception as error:
            raise UnsoundSession("booking", error) from error


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
        and mine.root == others.root
        and mine.priority == others.priority
        and mine.preemptible is others.preemptible
        and mine.priority_class == others.priority_class
        and mine.key.namespace == others.key.namespace
        and mine.anchor is None
    )
