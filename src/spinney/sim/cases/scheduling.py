"""The session scheduler in front of a case's cluster.

The cluster is put into an inventory as the objects a watch would deliver, so a case runs through the same code as a
real cluster. Binds are counted, not carried out; a case may have all of them fail.
"""

import random
from collections.abc import Iterator, Mapping, Sequence

import msgspec
import structlog

from spinney.cluster.devices import DEVICE
from spinney.cluster.dra.book import ClaimKey
from spinney.cluster.pods import PodKey
from spinney.cluster.statuses import ACTIVE_USED, PodStatus
from spinney.gangs.sources.kai import SOURCE
from spinney.gangs.tree import GangKey
from spinney.runtime import InlineExecutor, Runtime
from spinney.scheduler.config import PluginOption, SchedulerConfig
from spinney.scheduler.cycle.scheduler import Scheduler
from spinney.scheduler.framework import results as fit
from spinney.scheduler.framework.session import Session
from spinney.scheduler.framework.tasks import PodInfo
from spinney.scheduler.intake.inventory import Inventory
from spinney.scheduler.plugins import default_registry
from spinney.scheduler.plugins.topology.subsetting import TopologyRefusal
from spinney.sim.cases import format as cases
from spinney.sim.cases import objects
from spinney.sim.cases.comparing import JobOutcome, NodeOutcome, SessionOutcome, TaskOutcome
from spinney.sim.cases.format import Case, Claim, DomainFit, Task
from spinney.sim.engine import SteppedClock

log = structlog.get_logger()

_NOTHING_TO_ACT_ON = frozenset(
    {"snapshot", "kubeflow", "ray", "nominatednode", "sg-nodelocalgreedy", "sg-multinodegang"}
)
"""Plugins of the original that have nothing to do in a case; left out where we have none of that name."""


class UnknownProfile(ValueError):
    """A scheduler profile that does not exist."""


class SessionScheduler:
    """Runs sessions on cases in one of the scheduler's profiles: ``kai-compat``, or ``default``."""

    def __init__(self, profile: str = "kai-compat", *, verbosity: int = 0) -> None:
        if profile not in {"kai-compat", "default"}:
            raise UnknownProfile(f"profile {profile!r} does not exist; there are kai-compat and default")
        self._profile = profile
        self._verbosity = verbosity
        self._registry = default_registry()

    def run(self, case: Case, actions: Sequence[str]) -> SessionOutcome:
        """Open a session on the cluster of ``case``, run ``actions`` in order, and say what came of it."""
        runtime = Runtime(clock=SteppedClock(objects.NOW), random=random.Random(0), executor=InlineExecutor())
        config = self._config(case, actions)
        scheduler = Scheduler(config, inventory_of(case), runtime=runtime, registry=self._registry)
        session = scheduler.open_session()
        try:
            _restore_promises(case, session)
            scheduler.run_actions(session)
        finally:
            session.close()
        return _outcome(case, session)

    def _config(self, case: Case, actions: Sequence[str]) -> SchedulerConfig:
        config = case.config
        names = [name for name in config.plugins if name in self._registry]
        unknown = sorted(set(config.plugins) - set(names) - _NOTHING_TO_ACT_ON)
        if unknown:
            log.warning("plugins that do not exist here are left out, as KAI does", case=case.id, plugins=unknown)
        arguments = _arguments(case)
        victims = config.max_consolidation_victims
        depth = config.jobs_per_queue_per_action_limit
        if isinstance(depth, int):
            depth = dict.fromkeys(actions, depth)
        changes = {
            "plugins": tuple(PluginOption(name, arguments.get(name, {})) for name in names),
            "actions": tuple(actions),
            "max_consolidation_preemptees": -1 if victims is None else victims,
            "allow_consolidating_reclaim": config.allow_consolidating_reclaim,
            "default_staleness_grace_seconds": config.stale_gang_grace_seconds,
            "queue_depth_per_action": dict(depth or {}),
            "verbosity": self._verbosity,
            "refuse_unhonoured": False,  # a case says itself which rules there are
        }
        if self._profile != "kai-compat":
            if "gpupack" in names:
                changes["plugins"] = tuple(_with_packing(names, arguments))
            return msgspec.structs.replace(SchedulerConfig(), **changes)
        # The cases are of a KAI that did not do these two things yet.
        return SchedulerConfig.kai_compat(spare_within_share=False, victims_across_nodes=False, **changes)


def _with_packing(names: Sequence[str], arguments: Mapping[str, Mapping[str, str]]) -> Iterator[PluginOption]:
    """Return the plugins with the one that packs by default here in the place of KAI's three."""
    for name in names:
        if name == "gpupack":
            yield PluginOption("packing")
        elif name not in {"gpusharingorder", "nodeplacement"}:
            yield PluginOption(name, dict(arguments.get(name, {})))


def inventory_of(case: Case) -> Inventory:
    """Return an inventory that holds the cluster of a case."""
    inventory = Inventory((objects.SCHEDULER_NAME,))
    for queue in objects.queues_of(case):
        inventory.put_queue(queue)
    for node in case.nodes:
        inventory.apply(objects.node_object(node))
    for topology in objects.topology_objects(case):
        inventory.apply(topology)
    if case.dra is not None:
        for found in (*objects.class_objects(case.dra), *objects.slice_objects(case.dra)):
            inventory.apply(found)
        for claim in objects.claim_objects(case.dra):
            inventory.apply(claim)
    for job in case.jobs:
        inventory.put_gang(objects.gang_of(job, staleness_grace=case.config.stale_gang_grace_seconds))
        for task in job.tasks:
            inventory.apply(objects.pod_object(job, task))
            if task.state == "Binding":
                key = PodKey(objects.namespace(job), task.name)
                inventory.cluster.assume(key, task.node or "", task.gpu_groups)
    return inventory


def _arguments(case: Case) -> dict[str, dict[str, str]]:
    config = case.config
    placement, runtimes = config.node_placement, config.min_runtime_seconds
    return {
        "dynamicresources": {} if case.dra is None else {"maxConsumersPerClaim": str(case.dra.max_consumers_per_claim)},
        "nodeplacement": {} if placement is None else {"gpu": placement.gpu, "cpu": placement.cpu},
        "proportion": {
            "kValue": str(config.fair_share_k),
            "reclaimerSaturationMultiplier": str(config.reclaimer_saturation_multiplier),
        },
        "minruntime": {
            "defaultPreemptMinRuntime": f"{runtimes.preempt:g}s",
            "defaultReclaimMinRuntime": f"{runtimes.reclaim:g}s",
        },
    }


def _restore_promises(case: Case, session: Session) -> None:
    """Promise again what an earlier session promised: a cluster does not remember that by itself."""
    for job in case.jobs:
        for task in job.tasks:
            if task.state == "Pipelined" and task.node is not None:
                statement = session.statement()
                statement.pipeline(_tasks(job, session)[task.name], session.node(task.node), task.gpu_groups)
                statement.commit()
    session.pipelines.clear()


def _tasks(job: cases.Job, session: Session) -> Mapping[str, PodInfo]:
    return {task.name: task for task in session.job(_gang_key(job)).tasks}


def _gang_key(job: cases.Job) -> GangKey:
    return GangKey(SOURCE, objects.namespace(job), job.name)


def _outcome(case: Case, session: Session) -> SessionOutcome:
    fails = case.faults.every_bind_fails
    tasks: dict[str, TaskOutcome] = {}
    jobs: dict[str, JobOutcome] = {}
    for job in case.jobs:
        found = _tasks(job, session)
        for task in job.tasks:
            tasks[task.name] = _task_outcome(task, found.get(task.name), session, binds_fail=fails)
        started = session.job(_gang_key(job)).last_start
        jobs[job.name] = JobOutcome(
            started_seconds_ago=None if started is None else (session.now - started).total_seconds(),
            fit_error=_fit_error(session.fit_errors.get(_gang_key(job), ())),
        )
    return SessionOutcome(
        tasks=tasks,
        jobs=jobs,
        nodes={
            node.name: NodeOutcome(
                idle_gpus=session.node(node.name).idle_gpus, releasing_gpus=session.node(node.name).releasing_gpus
            )
            for node in case.nodes
        },
        claims=tuple(_claim(claim, case, session) for claim in case.dra.claims) if case.dra is not None else (),
        binds=0 if fails else len(session.binds),
        evictions=len(session.evictions),
        pipelines=len(session.pipelines),
    )


def _task_outcome(task: Task, found: PodInfo | None, session: Session, *, binds_fail: bool) -> TaskOutcome:
    if found is None:  # a pod of a pod set the gang does not have is nobody's to place
        return TaskOutcome(status=task.state, node=task.node)
    share = found.request.share
    requested = found.record.request.gpus + (share.parts * share.devices / DEVICE if share is not None else 0)
    placed = found.status in ACTIVE_USED
    outcome = TaskOutcome(
        status=found.status.value,
        node=found.node_name or None,
        gpu_groups=found.gpu_groups if placed else (),
        gpus_accepted=session.charges.of(found).gpu / DEVICE if placed else 0,
        gpus_requested=round(requested, 2),
        cpu_milli_requested=session.charges.of(found).cpu,
        memory_bytes_requested=session.charges.of(found).memory,
    )
    if binds_fail and found.status is PodStatus.BINDING:
        return msgspec.structs.replace(outcome, status="Pending", node=None, gpu_groups=(), gpus_accepted=0)
    return outcome


def _fit_error(errors: Sequence[fit.FitError]) -> cases.FitError | None:
    """Return the reason a topology gives, if that is the only reason there is."""
    refusal = errors[0].details if errors else None
    if not isinstance(refusal, TopologyRefusal) or any(error.details != refusal for error in errors):
        return None
    return cases.FitError(
        kind="topology_unsatisfied",
        topology=refusal.topology,
        required_level=refusal.required_level,
        domains={
            domain: DomainFit(pods_fit=fits, pods_required=refusal.needed) for domain, fits in refusal.domains.items()
        },
        cluster_lacks_resources=refusal.cluster_lacks_resources,
    )


def _claim(claim: Claim, case: Case, session: Session) -> Claim:
    names = {task.name for job in case.jobs for task in job.tasks}
    after = session.claims.claims[ClaimKey(claim.namespace or objects.DEFAULT_NAMESPACE, claim.name)]
    return msgspec.structs.replace(
        claim,
        allocated_devices=tuple(cases.Device(pool=held.pool, device=held.name) for held in after.devices),
        reserved_for_tasks=tuple(sorted(consumer for consumer in after.consumers if consumer in names)),
    )
