"""The life of a pod on its node, as a pure function of the pod, what has happened so far, and the time.

A :class:`PodRun` is what the node remembers of a pod. :func:`advance` moves it through all that is due by ``now``
and says when to look again; steps that are due together are taken together, so a pod with no latencies goes from bound
to ready in one go and one write. Each step happens at the moment it was due, not when it was noticed, so a busy
process does not stretch the life of its pods.

::

    CREATING -> INITIALISING -> RUNNING -> ENDED
                                 |   ^
                                 v   |
                               BACK_OFF
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum

from spinney.nodes.behaviour import PodTimings
from spinney.nodes.pods import BoundPod
from spinney.nodes.startup import Parent, ReadyPods, is_startup, unmet

_LONGEST_BACK_OFF = timedelta(minutes=5)
_SHORTEST_BACK_OFF = timedelta(seconds=1)  # a pod that ends at once must not be restarted for ever in one instant


class PodStage(Enum):
    """Where a pod is in its life."""

    CREATING = "creating"
    INITIALISING = "initialising"
    RUNNING = "running"
    BACK_OFF = "back-off"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class Exit:
    """How and when the containers ended last."""

    code: int
    started: datetime
    finished: datetime


@dataclass(frozen=True, slots=True)
class PodRun:
    """What a node remembers of a pod it took."""

    behaviour: PodTimings
    ip: str
    admitted: datetime
    since: datetime  # when the stage began; while initialising, when the current init container began
    stage: PodStage = PodStage.CREATING
    sandboxed: datetime | None = None  # when the first container could be created
    init_finished: tuple[datetime, ...] = ()
    initialised: datetime | None = None
    containers_ready: bool = False
    containers_ready_changed: datetime | None = None
    ready: bool = False  # the containers are, and the readiness gates are open
    ready_changed: datetime | None = None
    restarts: int = 0
    exit: Exit | None = None
    stopping_since: datetime | None = None  # when the node learnt that the deletion was asked for

    @property
    def appearance(self) -> tuple[object, ...]:
        """Return what the pod's status shows of this run; equal appearances need no new write."""
        return (self.stage, len(self.init_finished), self.restarts, self.containers_ready, self.ready)

    @property
    def phase(self) -> str:
        """Return the phase of the pod."""
        if self.stage is PodStage.ENDED:
            return "Succeeded" if self.exit is not None and self.exit.code == 0 else "Failed"
        return "Running" if self.stage in {PodStage.RUNNING, PodStage.BACK_OFF} else "Pending"


@dataclass(frozen=True, slots=True)
class NextStep:
    """The run as it is now; when to look again; whose readiness it waits for; whether the pod is to be removed."""

    run: PodRun
    wake: datetime | None = None
    waits: tuple[Parent, ...] = ()
    remove: bool = False


def begin(behaviour: PodTimings, *, ip: str, now: datetime) -> PodRun:
    """Return the run of a pod that the node has just taken."""
    return PodRun(behaviour, ip, admitted=now, since=now)


def adopt(pod: BoundPod, behaviour: PodTimings, *, ip: str, now: datetime) -> PodRun:
    """Return the run of a pod that was on the node already, from what its status says."""
    admitted = pod.status.start_time or now
    run = PodRun(behaviour, pod.status.pod_ip or ip, admitted=admitted, since=admitted)
    finished = tuple(
        status.state.terminated.finished_at or now
        for status in pod.status.init_container_statuses
        if status.state.terminated is not None
    )
    if pod.status.phase != "Running":
        return replace(run, init_finished=finished)
    statuses = pod.status.container_statuses
    started = next((s.state.running.started_at for s in statuses if s.state.running is not None), None) or admitted
    ready = pod.is_true("Ready")
    return replace(
        run,
        stage=PodStage.RUNNING,
        since=started,
        sandboxed=admitted,
        initialised=admitted,
        init_finished=tuple(admitted for _ in pod.spec.init_containers),
        restarts=max((status.restart_count for status in statuses), default=0),
        containers_ready=pod.is_true("ContainersReady"),
        containers_ready_changed=started,
        ready=ready,
        ready_changed=started,
    )


def lose_touch(run: PodRun, *, now: datetime) -> PodRun:
    """Return the run as the cluster sees it once its node has failed: whatever it does, it does not count as ready."""
    return replace(run, ready=False, ready_changed=now) if run.ready else run


def advance(pod: BoundPod, run: PodRun, *, now: datetime, ready_pods: ReadyPods) -> NextStep:
    """Take every step that is due and say what comes next."""
    if pod.metadata.deletion_timestamp is not None:
        return _stop(pod, run, now)
    while True:
        decision = _step(pod, run, now, ready_pods)
        if decision.run is run:
            return decision
        run = decision.run


def _stop(pod: BoundPod, run: PodRun, now: datetime) -> NextStep:
    """End a pod after its stop time, at most its grace period.

    As a kubelet does, the node counts from the moment it learns of the deletion: the time the API server writes down
    has no fractions of a second.
    """
    since = run.stopping_since or now
    grace = timedelta(seconds=pod.metadata.deletion_grace_period_seconds or 0)
    gone = since + min(grace, run.behaviour.stop)
    stopping = replace(run, stopping_since=since)
    return NextStep(stopping, remove=True) if gone <= now else NextStep(stopping, wake=gone)


def _step(pod: BoundPod, run: PodRun, now: datetime, ready_pods: ReadyPods) -> NextStep:
    """Take one step if one is due; the same run back means that none is."""
    match run.stage:
        case PodStage.CREATING:
            return _create(run, now)
        case PodStage.INITIALISING:
            return _initialise(pod, run, now, ready_pods)
        case PodStage.RUNNING:
            return _run(pod, run, now)
        case PodStage.BACK_OFF:
            due = run.since + _back_off(run)
            if now < due:
                return NextStep(run, wake=due)
            return NextStep(replace(run, stage=PodStage.RUNNING, since=due, restarts=run.restarts + 1))
        case PodStage.ENDED:
            return NextStep(run)


def _create(run: PodRun, now: datetime) -> NextStep:
    if run.behaviour.start is None:
        return NextStep(run)
    due = run.since + run.behaviour.start
    if now < due:
        return NextStep(run, wake=due)
    return NextStep(replace(run, stage=PodStage.INITIALISING, since=due, sandboxed=due))


def _initialise(pod: BoundPod, run: PodRun, now: datetime, ready_pods: ReadyPods) -> NextStep:
    number = len(run.init_finished)
    if number == len(pod.spec.init_containers):
        return NextStep(replace(run, stage=PodStage.RUNNING, initialised=run.since))
    container = pod.spec.init_containers[number]
    if is_startup(container):
        if waits := unmet(pod, container, ready_pods):
            return NextStep(run, waits=waits)
        due = now
    else:
        due = run.since if container.sidecar else run.since + run.behaviour.init
    if now < due:
        return NextStep(run, wake=due)
    return NextStep(replace(run, since=due, init_finished=(*run.init_finished, due)))


def _run(pod: BoundPod, run: PodRun, now: datetime) -> NextStep:
    behaviour = run.behaviour
    ends = run.since + behaviour.runs_for if behaviour.runs_for is not None else None
    if ends is not None and ends <= now:
        return NextStep(_ended(pod, run, ends))
    becomes_ready = run.since + behaviour.ready if behaviour.ready is not None else None
    if not run.containers_ready and becomes_ready is not None and becomes_ready <= now:
        return NextStep(replace(run, containers_ready=True, containers_ready_changed=becomes_ready))
    ready = run.containers_ready and all(pod.is_true(gate.condition_type) for gate in pod.spec.readiness_gates)
    if ready != run.ready:
        return NextStep(replace(run, ready=ready, ready_changed=_readiness_change(pod, run, now)))
    waking = [moment for moment in (ends, None if run.containers_ready else becomes_ready) if moment is not None]
    return NextStep(run, wake=min(waking, default=None))


def _readiness_change(pod: BoundPod, run: PodRun, now: datetime) -> datetime:
    """Return when readiness changed: with the containers, unless a gate or the node's recovery came later."""
    settled = run.containers_ready_changed
    if settled is None or pod.spec.readiness_gates or (run.ready_changed or settled) > settled:
        return now
    return settled


def _ended(pod: BoundPod, run: PodRun, moment: datetime) -> PodRun:
    code = run.behaviour.exit_code
    policy = pod.spec.restart_policy
    again = policy == "Always" or (policy == "OnFailure" and code != 0)
    return replace(
        run,
        stage=PodStage.BACK_OFF if again else PodStage.ENDED,
        since=moment,
        exit=Exit(code, started=run.since, finished=moment),
        containers_ready=False,
        containers_ready_changed=moment,
        ready=False,
        ready_changed=moment,
    )


def _back_off(run: PodRun) -> timedelta:
    """Return how long a pod waits before its next restart: not at all, then twice as long each time."""
    if run.restarts == 0:
        return timedelta()
    first = max(run.behaviour.restart_back_off, _SHORTEST_BACK_OFF)
    doublings = min(run.restarts - 1, 10)
    return min(first * (1 << doublings), _LONGEST_BACK_OFF)
