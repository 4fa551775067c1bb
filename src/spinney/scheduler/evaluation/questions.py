"""What a session asks its plugins (``session.ask``), and how several answers become one."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cached_property, cmp_to_key, partial
from itertools import count
from operator import attrgetter
from typing import Any, Final, Literal, TypeVar

import structlog

from spinney.cluster.classes import RequestClass
from spinney.cluster.fitting import MANY
from spinney.cluster.pods import PodRecord
from spinney.gangs.tree import GangKey, GroupSet, Member
from spinney.runtime.faults import raised
from spinney.scheduler.evaluation.kept_ranking import KeptRanking
from spinney.scheduler.evaluation.node_rules import NodeRules
from spinney.scheduler.evaluation.ordering import Ordering, sort_by, three_way
from spinney.scheduler.evaluation.pre_predicates import PrePredicates
from spinney.scheduler.fairshare import Amounts
from spinney.scheduler.fairshare.bounds import Lot, least_of
from spinney.scheduler.framework import validation
from spinney.scheduler.framework.events import (
    WITHIN_CAPACITY,
    BatchEvent,
    CapacityVerdict,
    Event,
    EventHandler,
    Scenario,
)
from spinney.scheduler.framework.extension_points import Hook, Order, QueueTurn, Taking
from spinney.scheduler.framework.jobs import PodGroupInfo
from spinney.scheduler.framework.nodes import NodeInfo, NodeSet
from spinney.scheduler.framework.plain_jobs import TaskRun
from spinney.scheduler.framework.session import Session
from spinney.scheduler.framework.tasks import PodInfo
from spinney.scheduler.knowledge.recording import JobView
from spinney.scheduler.knowledge.steadiness import View, task_view

T = TypeVar("T")
log = structlog.get_logger()

_EPOCH = datetime.min.replace(tzinfo=UTC)
_CREATED = attrgetter("record.pod.metadata.creation_timestamp")
_UID = attrgetter("record.uid")
_WITHOUT_REASON: str | None = ""
_VICTIM_FILTERS: Final[Mapping[Taking, str]] = {
    "reclaim": "reclaim_victim_filter",
    "preempt": "preempt_victim_filter",
}


class SubsettingFailed(Exception):
    """A plugin raised while dividing nodes; the job fails for this cycle."""

    def __init__(self, plugin: str, said: str) -> None:
        super().__init__(f"plugin {plugin} could not divide the nodes: {said}")
        self.plugin = plugin


class Questions:
    """Asks the plugins of a session and makes one answer of theirs. Mutable: it remembers answers."""

    def __init__(self, session: Session) -> None:
        self.hooks = session.hooks
        self.queues = session.queues
        self.timings = session.timings
        self.failures = session.failures
        self.verbosity = session.config.verbosity
        self._weighs_lost_work = session.config.weigh_lost_work
        self.moment = 0
        """Counts what was announced to event handlers: what a plugin that listens has answered holds until the next."""
        self.kept_ranking = KeptRanking(session.nodes.table.usage)
        self._lasting: dict[tuple[str, str, bool, str], CapacityVerdict] = {}
        """What was said about the capacity of queues that holds for the session."""
        self._unbounded: set[tuple[str, bool, str]] = set()
        """The queues, and kinds of jobs in them, of which it was said that they have room whatever is placed."""
        self.dividers: dict[GangKey, dict[str, None]] = {}
        """The plugins that divided the nodes for a gang, or for a part of it."""
        self._nodes = session.nodes
        self._numbers = count(1 << 32)
        self._held_back: list[PodInfo] | None = None
        """Placed tasks that handlers which look ahead have not been told of; ``None`` while they are told at once."""
        self._ahead = 0

    # -- nodes -------------------------------------------------------------------------------------------------------

    @cached_property
    def node_rules(self) -> NodeRules:
        """Return what filters and scores nodes for tasks; plugins must have registered by then."""
        return NodeRules(self._nodes, self.hooks, self.timings, self.failures, lambda: self.moment)

    @cached_property
    def pre_predicates(self) -> PrePredicates:
        """Return what asks what keeps tasks off all nodes; plugins must have registered by then."""
        return PrePredicates(self._nodes, self.hooks, self.timings, self.failures, lambda: self.moment)

    # -- order -------------------------------------------------------------------------------------------------------

    @cached_property
    def _job_order(self) -> Ordering[PodGroupInfo]:
        return self._ordering(self.hooks.job_order, "job_order", JobView)

    @cached_property
    def _job_key(self) -> Callable[[PodGroupInfo], Any]:
        return self._job_order.key(_job_age)

    @cached_property
    def _victim_age(self) -> Callable[[PodGroupInfo], tuple[Any, ...]]:
        return (lambda job: (-job.lost_work, *_job_age(job))) if self._weighs_lost_work else _job_age

    @cached_property
    def _victim_key(self) -> Callable[[PodGroupInfo], Any]:
        return self._job_order.key(self._victim_age)

    @cached_property
    def _task_order(self) -> Ordering[PodInfo]:
        return self._ordering(self.hooks.task_order, "task_order", task_view)

    @cached_property
    def _compares_queues_alike(self) -> bool:
        return all(hook.alike for hook in self.hooks.queue_order)

    @cached_property
    def _orders_members_alike(self) -> bool:
        return all(hook.alike for hook in self.hooks.sub_group_order)

    def _ordering(self, orders: Sequence[Order[Any]], hook: str, view: View) -> Ordering[Any]:
        return Ordering(orders, hook, self.timings, self.failures, view=view, listeners=self.hooks.listeners)

    def _next_number(self) -> int:
        return next(self._numbers)

    def job_key(self, job: PodGroupInfo) -> Any:
        """Return what orders jobs of one queue, smallest first: plugins, then age, then uid."""
        return self._job_key(job)

    def job_keys(self, jobs: Sequence[PodGroupInfo]) -> Sequence[Any]:
        """Return the same of many jobs."""
        return self._job_order.keys(jobs, _job_age)

    def victim_key(self, job: PodGroupInfo) -> Any:
        """Return the same for jobs that may have to go, largest first: before age, how much work each would lose."""
        return self._victim_key(job)

    def victim_keys(self, jobs: Sequence[PodGroupInfo]) -> Sequence[Any]:
        """Return the same of many jobs."""
        return self._job_order.keys(jobs, self._victim_age)

    def job_order_version(self) -> int:
        """Return a number for the order of jobs: an order that was kept holds while the number is the same."""
        orders = self._job_order.version.number()
        return orders if self._compares_queues_alike else self._next_number()

    def job_order_is_fixed(self) -> bool:
        """Tell whether no placement changes the order of jobs, but for that of queues."""
        return self._compares_queues_alike and self._job_order.is_fixed

    def task_order_version(self) -> int:
        """Return a number for the order of tasks and of the members of group sets."""
        orders = self._task_order.version.number()
        return orders if self._orders_members_alike else self._next_number()

    def sort_tasks(self, tasks: list[PodInfo]) -> None:
        """Put tasks of one job in order: plugins, then age, then uid."""
        if len(tasks) < 2:
            return
        self._task_order.sort(tasks, lambda: _labels_of(tasks), (_ages, _uids))

    def sort_records(self, records: list[PodRecord]) -> bool:
        """Put pods of one job into task order; ``False`` if plugins have to be asked about tasks for that."""
        if len(records) < 2:
            return True
        if not self._task_order.is_silent_about([record.pod.metadata.labels for record in records]):
            return False
        sort_by(records, [record.uid for record in records])
        sort_by(records, [record.pod.metadata.creation_timestamp or _EPOCH for record in records])
        return True

    def compare_queues(self, left: QueueTurn, right: QueueTurn) -> int:
        """Return a negative number if the left queue goes first: plugins, then age."""
        for hook in self.hooks.queue_order:
            found = self._asked(hook, "queue_order", validation.sign, 0, left, right)
            if found:
                return found
        return three_way(left.queue.age_key, right.queue.age_key)

    def order_members(self, job: PodGroupInfo, group: GroupSet) -> Sequence[Member]:
        """Return the members of a group set: plugins, then name."""
        if len(group.members) <= 1:
            return group.members
        hooks = self.hooks.sub_group_order

        def compare(left: Member, right: Member) -> int:
            for hook in hooks:
                found = self._asked(hook, "sub_group_order", validation.sign, 0, job, left, right)
                if found:
                    return found
            return three_way(left.name, right.name)

        return sorted(group.members, key=cmp_to_key(compare))

    # -- filtering ---------------------------------------------------------------------------------------------------

    def victim_invariant_blocker(self, task: PodInfo) -> str | None:
        """Return what keeps ``task`` from being placed, also if pods are evicted, or ``None``."""
        for hook in self.hooks.invariants:
            found = self._asked(hook, "victim_invariant", validation.reason, None, task)
            if found is not None:
                return found
        return None

    def subset_nodes(
        self, job: PodGroupInfo, group: Member, tasks: Sequence[PodInfo], node_set: NodeSet
    ) -> Sequence[NodeSet]:
        """Return the node sets to try in order; raises :class:`SubsettingFailed`.

        Each plugin that applies divides every set of the one before; a plugin that answers ``None`` leaves it whole.
        """
        sets: Sequence[NodeSet] = [node_set]
        given = tasks if isinstance(tasks, TaskRun) else tuple(tasks)
        for hook in self.hooks.subset_nodes:
            if not hook.applies(group):
                continue
            if self.verbosity >= 4:
                log.info(f"Performing {hook.plugin} logic", v=4, job=str(job.key))
            divided: list[Sequence[NodeSet]] = []
            for each in sets:
                try:
                    with self.timings.measure(hook.plugin, "subset_nodes"):
                        answer = validation.node_sets(hook.fn(job, group, given, each))
                except raised() as error:
                    said = self._failed("plugin failed to divide nodes", hook, "subset_nodes", error)
                    raise SubsettingFailed(hook.plugin, said) from error
                if answer is not None:
                    self.dividers.setdefault(job.key, {})[hook.plugin] = None
                divided.append([each] if answer is None else answer)
            # A plugin may answer with sets it makes on demand: they stay so where there is nothing to join.
            sets = divided[0] if len(divided) == 1 else [each for answers in divided for each in answers]
            if self.verbosity >= 4:
                log.info(f"Result of {hook.plugin} logic is {len(sets)} subsets", v=4, job=str(job.key))
            if self.verbosity >= 7:
                names = ", ".join(f"[{', '.join(each.names)}]" for each in sets)
                log.info(f"Result of {hook.plugin} logic is {names}", v=7, job=str(job.key))
        return sets

    def prepare_scoring(self, task: PodInfo, nodes: NodeSet) -> None:
        """Let plugins prepare for scoring ``task`` on ``nodes``."""
        for hook in self.hooks.node_pre_order:
            self._told(hook, "node_pre_order", task, nodes)

    # -- jobs and queues ---------------------------------------------------------------------------------------------

    def pre_job_allocation(self, job: PodGroupInfo) -> None:
        """Tell plugins that a job is about to be tried."""
        for hook in self.hooks.pre_job_allocation:
            self._told(hook, "pre_job_allocation", job)

    def job_refused(self, job: PodGroupInfo) -> None:
        """Tell plugins that a job found no place on what is free."""
        for hook in self.hooks.job_refused:
            self._told(hook, "job_refused", job)

    def distinctions(self, job: PodGroupInfo) -> tuple[object, ...]:
        """Return what tells a job apart from those like it; one whose plugin failed is like no other."""
        alone: tuple[object, ...] = (object(),)
        asked = self.hooks.job_distinctions
        return tuple(self._asked(hook, "job_distinction", validation.distinction, alone, job) for hook in asked)

    def is_job_over_capacity(self, job: PodGroupInfo, tasks: Sequence[PodInfo]) -> CapacityVerdict:
        """Judge whether placing ``tasks`` would exceed what the job's queue allows."""
        return self._first_capacity(job, self.hooks.job_over_capacity, "job_over_capacity", job, tuple(tasks))

    def is_non_preemptible_job_over_queue_quota(self, job: PodGroupInfo, tasks: Sequence[PodInfo]) -> CapacityVerdict:
        """Judge whether placing ``tasks`` of a non-preemptible job would exceed a quota."""
        return self._first_capacity(job, self.hooks.non_preemptible_over_quota, "over_quota", job, tuple(tasks))

    def is_task_allocation_on_node_over_capacity(self, task: PodInfo, node: NodeInfo) -> CapacityVerdict:
        """Judge whether placing ``task`` on ``node`` would exceed what its queue allows."""
        job, hooks = task.job, self.hooks.task_on_node_over_capacity
        return self._first_capacity(job, hooks, "node_over_capacity", task, job, node)

    def has_lasting_capacity(self, job: PodGroupInfo) -> bool:
        """Tell whether nothing bounds what the job's queue may be given for it, as far as was said so far."""
        gang = job.gang
        kind = (gang.queue, gang.preemptible, gang.priority_class)
        if kind in self._unbounded:
            return True
        for what, hooks in (
            ("job_over_capacity", self.hooks.job_over_capacity),
            ("node_over_capacity", self.hooks.task_on_node_over_capacity),
        ):
            found = self._lasting.get((what, *kind)) if hooks else WITHIN_CAPACITY
            if found is None or not found.ok:
                return False
        self._unbounded.add(kind)
        return True

    def can_reclaim_resources(self, job: PodGroupInfo) -> bool:
        """Tell whether a job may take from other queues; without a plugin that says so it may not."""
        return any(
            self._asked(hook, "can_reclaim", validation.truth, False, job) for hook in self.hooks.can_reclaim[:1]
        )

    def is_victim(self, taking: Taking, job: PodGroupInfo, victim: PodGroupInfo) -> bool:
        """Tell whether all plugins let ``victim`` be taken for a job."""
        what = _VICTIM_FILTERS[taking]
        hooks = self.hooks.victim_filters[taking]
        return all(self._asked(hook, what, validation.truth, False, job, victim) for hook in hooks)

    def protection(self, taking: Taking, job: PodGroupInfo, victim: PodGroupInfo) -> str | None:
        """Return which plugin keeps ``victim`` from being taken for a job, as a sentence, if one does."""
        what = _VICTIM_FILTERS[taking]
        for hook in self.hooks.victim_filters[taking]:
            if not self._asked(hook, what, validation.truth, False, job, victim):
                return f"{victim.key} is protected by plugin {hook.plugin}"
        return None

    def gives_way(self, preemptor: PodGroupInfo, victim: PodGroupInfo) -> bool:
        """Tell whether a plugin has ``victim`` give way to a job of the same priority."""
        return any(
            self._asked(hook, "gives_way", validation.truth, False, preemptor, victim)
            for hook in self.hooks.gives_way
            if hook.across_queues or victim.queue == preemptor.queue
        )

    def scenario_refusal(self, taking: Taking, scenario: Scenario) -> str | None:
        """Return why a plugin refuses a scenario, or ``None`` if all agree."""
        for hook in self.hooks.scenario_validators[taking]:
            refusal = self._asked(hook, f"{taking}_validator", validation.refusal, _WITHOUT_REASON, scenario)
            if refusal is not None:
                return refusal or f"refused by plugin {hook.plugin}"
        return None

    def reclaim_bound(self, reclaimer: PodGroupInfo, lots: Mapping[str, Lot]) -> Amounts | None:
        """Return the most that may be taken for good from the ``lots`` of other queues; ``None`` is unbounded."""
        bounds: list[Amounts] = []
        for hook in self.hooks.reclaim_bounds:
            bound = self._asked(hook, "reclaim_bound", validation.bound, None, reclaimer, lots)
            if bound is not None:
                bounds.append(bound)
        return least_of(bounds)

    def job_solution_start(self) -> None:
        """Tell plugins that a search for victims begins."""
        for hook in self.hooks.on_job_solution_start:
            self._told(hook, "job_solution_start")

    def queue_allocated(self, queue: str) -> Amounts | None:
        """Return what a queue holds, if a plugin knows."""
        self._announce_held_back()
        return self._first_amounts(self.hooks.queue_allocated, "queue_allocated", queue)

    def queue_deserved(self, queue: str) -> Amounts | None:
        """Return what a queue is guaranteed, if a plugin knows."""
        return self._first_amounts(self.hooks.queue_deserved, "queue_deserved", queue)

    def queue_fair_share(self, queue: str) -> Amounts | None:
        """Return a queue's fair share, if a plugin knows."""
        return self._first_amounts(self.hooks.queue_fair_share, "queue_fair_share", queue)

    def bind_annotations(self, task: PodInfo) -> dict[str, str]:
        """Return what plugins add to the bind of a task."""
        annotations: dict[str, str] = {}
        for hook in self.hooks.bind_mutations:
            nothing: Mapping[str, str] = {}
            read = partial(validation.annotations, present={**task.annotations, **annotations})
            annotations.update(self._asked(hook, "bind_request_mutate", read, nothing, task, task.node_name))
        return annotations

    # -- events ------------------------------------------------------------------------------------------------------

    def announce_allocation(self, tasks: Sequence[PodInfo]) -> None:
        """Tell handlers that ``tasks``, all of one job, or of plain jobs that are alike, were virtually placed."""
        self.moment += 1
        if isinstance(tasks, TaskRun):
            run = BatchEvent(tasks.jobs[0], tasks, tasks.pods.request, len(tasks))
            self._announce(self.hooks.events, "allocate", run)
            return
        held = self._held_back
        self._announce(self.hooks.events if held is None else self._told_at_once, "allocate", _together(tasks))
        if held is not None:
            held += tasks
            if len(held) >= self._ahead:
                self._announce_held_back()

    @contextmanager
    def announcing_later(self, request: RequestClass) -> Iterator[None]:
        """Announce placements of tasks that make a request, all of one job, to handlers that look ahead together.

        That is when the block is left, or as soon as one of them has to be told.
        """
        self._held_back, self._ahead = [], self._least_ahead(request)
        try:
            yield
        finally:
            self._announce_held_back()
            self._held_back = None

    def _announce_held_back(self) -> None:
        held = self._held_back
        if held:
            self.moment += 1
            self._held_back = []
            self._announce(self._told_later, "allocate", _together(held))
            self._ahead = self._least_ahead(held[0].request)

    def most_ahead(self, request: RequestClass) -> int:
        """Return how many pods with a request may be placed, job after job, before a handler has to be called."""
        handlers = [hook.fn for hook in self._told_at_once]
        if any(each.allocate is not None or each.allocate_many is not None for each in handlers):
            return 0
        return self._least_ahead(request)

    def _least_ahead(self, request: RequestClass) -> int:
        """Return the same as far as handlers look ahead."""
        most = MANY
        for hook in self._told_later:
            if hook.fn.ahead is not None:
                asked = Hook(hook.plugin, hook.fn.ahead)
                most = min(most, self._asked(asked, "ahead", validation.count, 0, request))
        return most

    @cached_property
    def _told_at_once(self) -> Sequence[Hook[EventHandler]]:
        return [hook for hook in self.hooks.events if hook.fn.ahead is None]

    @cached_property
    def _told_later(self) -> Sequence[Hook[EventHandler]]:
        return [hook for hook in self.hooks.events if hook.fn.ahead is not None]

    def announce_deallocation(self, tasks: Sequence[PodInfo]) -> None:
        """Tell handlers that ``tasks``, all of one job, were virtually taken off their nodes."""
        self._announce_held_back()
        self.moment += 1
        self._announce(self.hooks.events, "deallocate", _together(tasks))

    # -- asking ------------------------------------------------------------------------------------------------------

    def _announce(
        self, hooks: Sequence[Hook[EventHandler]], what: Literal["allocate", "deallocate"], event: BatchEvent
    ) -> None:
        for hook in hooks:
            handler = hook.fn
            many, single = handler.allocate_many, handler.allocate
            if what == "deallocate":
                many, single = handler.deallocate_many, handler.deallocate
            try:
                if many is not None:
                    with self.timings.measure(hook.plugin, what):
                        many(event)
                elif single is not None:
                    with self.timings.measure(hook.plugin, what):
                        for task in event.tasks:
                            single(Event(task))
            except raised() as error:  # a handler that fails changes nothing
                said, told = "plugin event handler failed; the operation stands", many if many is not None else single
                assert told is not None, "it has failed"
                self.failures.add(said, hook.plugin, what, told, error)

    def _first_capacity(self, job: PodGroupInfo, hooks: Sequence[Hook[Any]], what: str, *args: Any) -> CapacityVerdict:
        if not hooks:
            return WITHIN_CAPACITY
        gang, hook = job.gang, hooks[0]
        kind = (what, gang.queue, gang.preemptible, gang.priority_class)
        lasting = self._lasting.get(kind)
        if lasting is not None:
            return lasting
        try:
            with self.timings.measure(hook.plugin, what):
                verdict = validation.verdict(hook.fn(*args))
        except raised() as error:  # a check that fails says no
            said = self._failed("plugin capacity check failed, so there is no capacity", hook, what, error)
            return CapacityVerdict(ok=False, reason="PluginError", message=f"plugin {hook.plugin} failed: {said}")
        if verdict.lasting:
            self._lasting[kind] = verdict
        return verdict

    def _first_amounts(self, hooks: Sequence[Hook[Any]], what: str, queue: str) -> Amounts | None:
        return self._asked(hooks[0], what, validation.amounts, None, queue) if hooks else None

    def _asked(self, hook: Hook[Any], what: str, read: Callable[[Any], T], careful: T, *args: Any) -> T:
        """Return what a plugin answers, read by ``read``; one that fails gives the careful answer."""
        try:
            with self.timings.measure(hook.plugin, what):
                return read(hook.fn(*args))
        except raised() as error:  # the caller goes on with the careful answer
            self._failed("plugin failed", hook, what, error, counted_as=careful)
            return careful

    def _told(self, hook: Hook[Any], what: str, *args: Any) -> None:
        """Tell a plugin something; what it answers means nothing."""
        self._asked(hook, what, lambda _: None, None, *args)

    def _failed(self, event: str, hook: Hook[Any], what: str, error: BaseException, **fields: Any) -> str:
        return self.failures.add(event, hook.plugin, what, hook.fn, error, **fields)


def _together(tasks: Sequence[PodInfo]) -> BatchEvent:
    """Return what became of identical tasks of one job."""
    return BatchEvent(tasks[0].job, tuple(tasks), tasks[0].request, len(tasks))


def _job_age(job: PodGroupInfo) -> tuple[datetime, str]:
    return (job.created or _EPOCH, job.uid)


def _labels_of(tasks: Sequence[PodInfo]) -> set[str]:
    """Return every label that one of the tasks has."""
    return set().union(*[task.record.pod.metadata.labels for task in tasks])


def _ages(tasks: Sequence[PodInfo]) -> list[datetime]:
    return [moment or _EPOCH for moment in map(_CREATED, tasks)]


def _uids(tasks: Sequence[PodInfo]) -> list[str]:
    return list(map(_UID, tasks))
