"""A scheduling session: one snapshot of the cluster, the plugins opened on it, and what is being decided.

A session is private to one cycle and one thread. Plugins register with it when it opens; actions ask it for jobs in
order, try placements in statements, and commit them; what was committed is the session's result.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Final, Protocol

import msgspec
import structlog
from msgspec import structs
from prometheus_client import CollectorRegistry

from spinney.cluster.dra.book import ClaimBook
from spinney.cluster.ledger import Ledger
from spinney.cluster.statuses import PodStatus
from spinney.explain.reasons import VictimReport
from spinney.gangs.tree import GangKey
from spinney.runtime import Runtime
from spinney.runtime.faults import Stopping, raised, told
from spinney.scheduler.config import SchedulerConfig
from spinney.scheduler.fairshare import QueueTree
from spinney.scheduler.framework.bulkheads import Bulkhead
from spinney.scheduler.framework.charges import Charges
from spinney.scheduler.framework.device_claims import ClaimedDevices
from spinney.scheduler.framework.failures import Failures
from spinney.scheduler.framework.hooks import Hooks
from spinney.scheduler.framework.jobs import PodGroupInfo
from spinney.scheduler.framework.moves import Moves
from spinney.scheduler.framework.nodes import NodeInfo, Nodes
from spinney.scheduler.framework.plain_jobs import Places
from spinney.scheduler.framework.plugin import Constraint, Plugin, PluginRegistry, a_plugin
from spinney.scheduler.framework.registration import Registration
from spinney.scheduler.framework.results import PLUGIN_ERROR, Binding, Eviction, FitError, Pipeline
from spinney.scheduler.framework.setbacks import Setbacks
from spinney.scheduler.framework.snapshot import Snapshot
from spinney.scheduler.framework.statement import Statement
from spinney.scheduler.framework.task_lists import settle_stuck
from spinney.scheduler.framework.tasks import STATUS, PodInfo
from spinney.scheduler.framework.timing import Timings
from spinney.scheduler.topology.resolving import Topologies

if TYPE_CHECKING:
    from spinney.scheduler.evaluation.questions import Questions

log = structlog.get_logger()

OPEN: Final = "on_session_open"
CLOSE: Final = "on_session_close"
_GIVEN: Final = frozenset({PodStatus.ALLOCATED})


class WaitingJobs(Protocol):
    """The jobs that an action has not come to yet, for plugins that look ahead."""

    def upcoming(self, most: int) -> Sequence[PodGroupInfo]:
        """Return up to ``most`` jobs whose turn comes next, in order, as far as that is certain."""
        ...

    @property
    def missed(self) -> Collection[PodGroupInfo]:
        """Return all of them, in no order."""
        ...


class SessionAbandoned(Stopping):
    """Nobody waits for what a session decides: its process stops."""


class Session(Registration):
    """One scheduling cycle. Mutable; plugins register with it, actions decide in it."""

    fixed_names: ClassVar[frozenset[str]] = frozenset({"config", "is_inference_preemptible", "now", "uid"})
    """What a function may read of a session while it counts as depending on its arguments alone."""
    action = ""
    """The action that runs now."""
    abandoned = False
    """Whether it is of no use any more; another thread may say so, and actions stop before the next job."""
    waiting: WaitingJobs | None = None
    """Whose turn is still to come while jobs are placed in order on what is free; ``None`` at all other times."""
    promised: frozenset[GangKey] = frozenset()
    """Gangs that were promised a place in an earlier cycle: others were evicted for them, or they were moved."""
    free_places: frozenset[GangKey] = frozenset()
    """Jobs that a search for victims found places for which nobody has to go."""

    def __init__(
        self,
        snapshot: Snapshot,
        config: SchedulerConfig,
        registry: PluginRegistry,
        runtime: Runtime,
        *,
        ask: "Callable[[Session], Questions]",
        metrics: CollectorRegistry | None = None,
    ) -> None:
        self.timings = Timings(runtime.clock.monotonic)
        self.failures = Failures()
        """What plugins got wrong in this session."""
        self.hooks = Hooks(self.failures)
        self.next_moment: datetime | None = None
        """When time alone may change a decision, as far as plugins and actions have said."""
        self.uid = runtime.uid()
        self.now: datetime = runtime.clock.now()
        self.config = config
        self.metrics = metrics if metrics is not None else CollectorRegistry()
        """Where plugins register metrics of their own. It outlives the session: register once, look up after."""
        self.snapshot = snapshot
        self.nodes = Nodes(snapshot.ledger, snapshot.pods, snapshot.view, rule_carriers=snapshot.rule_carriers)
        self.queues: QueueTree = snapshot.queues
        self.topologies: Topologies = snapshot.topologies
        self.claims: ClaimBook = snapshot.claims
        self.binds: list[Binding] = []
        self.evictions: list[Eviction] = []
        self.pipelines: list[Pipeline] = []
        self.started: list[GangKey] = []
        self.fit_errors: dict[GangKey, list[FitError]] = {}
        self._keeps_reasons = True
        self.victim_reports: dict[GangKey, list[VictimReport]] = {}
        """What searches for victims found for the jobs they did not help, one report per action."""
        self.stale_since: dict[GangKey, datetime] = {}
        """When gangs were first seen below their minimum; it is passed from one cycle to the next."""
        self.moves = Moves(timedelta(0))
        """Who was moved for whom in earlier cycles, passed on likewise."""
        self.memory: dict[str, object] = {}
        """What plugins keep from one session to the next, by plugin; a cache: it may be empty at any time."""
        self.devices = ClaimedDevices(self.claims, self.nodes)
        self.setbacks = Setbacks()
        """Gangs that are left alone for a while because looking at them failed, passed on likewise."""
        self.overdue: dict[str, frozenset[GangKey]] = {}
        """Gangs that an action did not reach in the cycle before, by action, passed on likewise."""
        self.errors: Counter[str] = Counter()
        """How often looking at a gang failed, by what was being done."""
        self._statements: list[Statement] = []
        self.stuck = settle_stuck(self)
        """Pods that have been terminating for too long."""
        self._runtime = runtime
        self._registry = registry
        self._plugins: list[tuple[str, Plugin]] = []
        self.honoured: frozenset[Constraint] = frozenset()
        """What the opened plugins keep."""
        self.unopened: dict[str, str] = {}
        """Plugins that failed to open, and how. Nothing is placed or evicted in a session that lacks one."""
        self._jobs: dict[GangKey, PodGroupInfo] = {}
        self.ask = ask(self)
        """What actions ask plugins through."""

    # -- life --------------------------------------------------------------------------------------------------------

    def open(self) -> None:
        """Build and open the configured plugins in order.

        What a plugin that fails to open would have refused is not known: see :attr:`unopened`.
        """
        for option in self.config.plugins:
            if not option.enabled:
                continue
            builder = self._registry.builder(option.name)
            opening: Callable[..., object] = builder
            with self.timings.measure(option.name, OPEN):
                try:
                    plugin = a_plugin(builder(option.arguments))
                    opening = plugin.on_session_open
                    self._plugins.append((option.name, plugin))
                    with self.hooks.attributed_to(option.name, alike=plugin.treats_alike):
                        opening(self)
                    self.honoured |= plugin.honours
                except raised() as error:  # nothing is decided without it
                    said = self.failures.add("plugin failed to open", option.name, OPEN, opening, error)
                    self.unopened[option.name] = said

    def close(self) -> None:
        """Close every opened plugin in order; one that fails does not keep the others from closing."""
        for name, plugin in self._plugins:
            with self.timings.measure(name, CLOSE):
                try:
                    plugin.on_session_close(self)
                except raised() as error:  # the session is over
                    self.failures.add("plugin failed to close", name, CLOSE, plugin.on_session_close, error)
        self._plugins.clear()

    def release(self) -> None:
        """Let go of everything that refers back to the session, which is then freed at once and of no more use.

        Otherwise a session that is over is left to the garbage collector; for a process of thousands of cycles that is
        a fifth of the time.
        """
        for part in (*self._jobs.values(), self.ask, self.hooks):
            vars(part).clear()
        self._jobs.clear()

    # -- what there is -----------------------------------------------------------------------------------------------

    @property
    def ledger(self) -> Ledger:
        """Return the ledger over the nodes."""
        return self.nodes.ledger

    @property
    def jobs(self) -> Iterator[PodGroupInfo]:
        """Return all jobs. Their tasks are made when they are first read."""
        return map(self.job, self.snapshot.gangs.gangs)

    def job(self, key: GangKey) -> PodGroupInfo:
        """Return a job; raises ``KeyError``."""
        job = self._jobs.get(key)
        if job is None:
            job = self._jobs[key] = PodGroupInfo(self.snapshot.gangs.gangs[key], self)
        return job

    def pending_jobs(self) -> Iterator[PodGroupInfo]:
        """Return the jobs that have pods to place."""
        return (job for job in map(self.job, self.snapshot.gangs.pending) if job.pending)

    def statement(self) -> Statement:
        """Begin a transaction."""
        statement = Statement(self)
        self._statements.append(statement)
        return statement

    def bulkhead(self, gang: GangKey, doing: str) -> Bulkhead:
        """Keep what raises while one gang is looked at from all others.

        What was begun for the gang is undone, and the gang has an error that says so; it is left alone for a while,
        longer each time. Where undoing fails too, the session is of no use any more: :class:`UnsoundSession`.
        """
        return Bulkhead(self, self._statements, gang, doing)

    def go_on(self) -> None:
        """Raise :class:`SessionAbandoned` if nobody waits for the session any more."""
        if self.abandoned:
            raise SessionAbandoned

    def set_back(self, gang: GangKey, doing: str, error: BaseException) -> None:
        """Leave a gang alone for a while, because looking at it failed."""
        log.exception("gang set back", gang=str(gang), doing=doing)
        self.errors[doing] += 1
        said = f"the scheduler failed while {doing} it: {told(error)}"
        setback = self.setbacks.add(gang, said, self.now)
        self.fit_errors[gang] = [setback.error, *self.fit_errors.get(gang, ())]
        self.wake_at(setback.until)

    def is_inference_preemptible(self) -> bool:
        """Tell whether inference jobs may be preempted."""
        return self.config.inference_preemptible

    def wake_at(self, moment: datetime) -> None:
        """Say that at ``moment`` a decision may change though nothing happens in the cluster.

        A scheduler at rest runs no sessions; it opens one at the earliest moment that the last session was told. What
        is over already is no reason.
        """
        if moment > self.now and (self.next_moment is None or moment < self.next_moment):
            self.next_moment = moment

    def scores_changed(self) -> None:
        """Have all nodes scored again, though nothing has changed on them: for a plugin that has learned something."""
        self.ask.node_rules.look_again()
        self.ask.kept_ranking.forget()

    def monotonic(self) -> float:
        """Return seconds that never go back, for budgets."""
        self.go_on()
        return self._runtime.clock.monotonic()

    def new_gpu_group(self) -> str:
        """Return the id of a GPU that begins to be shared."""
        return self._runtime.uid()

    @property
    def are_counts_exact(self) -> bool:
        """Tell whether pods count as the book of gangs counts them: none is on a node that is gone."""
        return not self.snapshot.has_stranded_pods

    @cached_property
    def charges(self) -> Charges:
        """Return what queues pay for tasks."""
        return Charges(self.nodes.table)

    # -- results -----------------------------------------------------------------------------------------------------

    def record_placements(self, tasks: Sequence[PodInfo]) -> None:
        """Make virtual placements of one operation, so of one pod set, request and status, part of the result."""
        job, binds = tasks[0].job, self.binds
        gang, mutated, before = job.key, bool(self.hooks.bind_mutations), len(binds)
        if not mutated and not tasks[0].request.constraints.claims and set(map(STATUS, tasks)) == _GIVEN:
            for task in tasks:
                task.virtual = False
                task.status = PodStatus.BINDING
            binds += [
                Binding(task.record.key, task.record.uid, task.node_name, gang, task.gpu_groups) for task in tasks
            ]
            job.moved_many(tasks[0].pod_set, PodStatus.ALLOCATED, PodStatus.BINDING, len(tasks))
            return
        for task in tasks:
            task.virtual = False
            record = task.record
            if task.status is PodStatus.PIPELINED:
                self.pipelines.append(Pipeline(record.key, task.node_name, gang))
            elif task.status is PodStatus.ALLOCATED:
                task.status = PodStatus.BINDING
                bind = Binding(record.key, record.uid, task.node_name, gang, task.gpu_groups)
                if mutated or record.pod.spec.resource_claims:
                    bind = self._completed(bind, task)
                binds.append(bind)
        if len(binds) > before:
            job.moved_many(tasks[0].pod_set, PodStatus.ALLOCATED, PodStatus.BINDING, len(binds) - before)

    def record_plain(self, placed: Sequence[tuple[PodGroupInfo, Places]]) -> None:
        """Make the placement of plain jobs, which only wait to be bound now, part of the result."""
        for job, _ in placed:
            job.bind_all()
        self.binds += [
            Binding(record.key, record.uid, node, job.gang.key, places.gpu_groups)
            for job, places in placed
            for record, node in zip(places.pods.records, places.names, strict=True)
        ]

    def record_eviction(self, task: PodInfo, node: str, message: str, beneficiary: GangKey | None) -> None:
        """Make a virtual eviction part of the result."""
        moves_to = task.node_name if task.status is PodStatus.PIPELINED else ""
        self.evictions.append(
            Eviction.of(task, node, beneficiary, message=message, action=self.action, moves_to=moves_to)
        )

    def withdraw_pipelined(self, task: PodInfo) -> None:
        """Take a node back that a task was pipelined to as part of the result: there is no pod on it to evict."""
        self.pipelines = [each for each in self.pipelines if each.pod != task.key]
        self.evictions = [
            structs.replace(eviction, moves_to="") if eviction.pod == task.key else eviction
            for eviction in self.evictions
        ]

    def record_failures(self, job: PodGroupInfo, since: int) -> None:
        """Remember on a job what plugins got wrong while it was tried, since so many failures of the session."""
        if self.failures.total > since:
            for said in self.failures.since(since):
                error = FitError(PLUGIN_ERROR, said)
                if error not in self.fit_errors.get(job.key, ()):
                    self.record_fit_error(job, error)

    def record_fit_error(self, job: PodGroupInfo, error: FitError) -> None:
        """Remember why a job could not be placed, unless that was only imagined."""
        if self._keeps_reasons:
            self.fit_errors.setdefault(job.key, []).append(error)

    @contextmanager
    def keeping_no_reasons(self) -> Iterator[None]:
        """Imagine something for the time of the block: what is refused meanwhile, by plugins too, is not remembered."""
        before, self._keeps_reasons = self._keeps_reasons, False
        try:
            yield
        finally:
            self._keeps_reasons = before

    def node(self, name: str) -> NodeInfo:
        """Return a node by name; raises :class:`~spinney.cluster.table.NodeNotInTable`."""
        return self.nodes.named(name)

    def _completed(self, bind: Binding, task: PodInfo) -> Binding:
        """Return a bind with what plugins and claims add to it."""
        return msgspec.structs.replace(
            bind, annotations=self.ask.bind_annotations(task), claims=self.devices.of_task(task)
        )
