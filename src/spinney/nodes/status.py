"""What stands in a pod's status: a run, written as a kubelet writes it.

The result is a strategic merge patch: conditions merge by type, so those that schedulers and controllers own stay.
"""

from datetime import datetime

from spinney.api.struct import JSON
from spinney.api.time import timestamp
from spinney.nodes.admission import Rejection
from spinney.nodes.lifecycle import Exit, PodRun, PodStage
from spinney.nodes.pods import BoundPod, ContainerSpec


def running_patch(pod: BoundPod, run: PodRun, *, host_ip: str) -> JSON:
    """Return the patch that makes the pod's status show ``run``."""
    ip = host_ip if pod.spec.host_network else run.ip
    status: JSON = {
        "phase": run.phase,
        "hostIP": host_ip,
        "hostIPs": [{"ip": host_ip}],
        "podIP": ip,
        "podIPs": [{"ip": ip}],
        "startTime": timestamp(run.admitted),
        "conditions": _conditions(run),
        "containerStatuses": [_container(container, pod, run) for container in pod.spec.containers],
    }
    if pod.spec.init_containers:
        status["initContainerStatuses"] = [
            _init_container(container, number, run) for number, container in enumerate(pod.spec.init_containers)
        ]
    return _patch(pod, status)


def rejected_patch(pod: BoundPod, rejection: Rejection, *, now: datetime) -> JSON:
    """Return the patch that fails a pod its node refused."""
    return _failed_patch(pod, rejection.reason, f"Pod was rejected: {rejection.message}", now=now)


def unready_patch(pod: BoundPod, *, now: datetime) -> JSON:
    """Return the patch that calls a pod unready because its node has failed."""
    return _patch(pod, {"conditions": [_condition("Ready", ok=False, since=timestamp(now), reason="NodeNotReady")]})


def stopped_patch(pod: BoundPod, *, now: datetime) -> JSON:
    """Return the patch that ends a pod whose removal waits for a finalizer."""
    return _failed_patch(pod, "", "", now=now)


def _failed_patch(pod: BoundPod, reason: str, message: str, *, now: datetime) -> JSON:
    moment = timestamp(now)
    status: JSON = {
        "phase": "Failed",
        "startTime": timestamp(pod.status.start_time or now),
        "conditions": [_condition(kind, ok=False, since=moment, reason="PodFailed") for kind in _READINESS],
    }
    if reason:
        status |= {"reason": reason, "message": message}
    return _patch(pod, status)


def _patch(pod: BoundPod, status: JSON) -> JSON:
    return {"metadata": {"uid": pod.metadata.uid}, "status": status}  # the uid makes it this incarnation or a conflict


# -- conditions -------------------------------------------------------------------------------------------------------

_READINESS = ("ContainersReady", "Ready")


def _conditions(run: PodRun) -> list[JSON]:
    reason = "" if run.stage is not PodStage.ENDED else "PodCompleted" if run.phase == "Succeeded" else "PodFailed"
    unready = reason or "ContainersNotReady"
    return [
        _condition(
            "PodReadyToStartContainers", run.stage is not PodStage.ENDED, timestamp(run.sandboxed or run.admitted)
        ),
        _condition(
            "Initialized",
            run.initialised is not None,
            timestamp(run.initialised or run.admitted),
            reason="" if run.initialised is not None else "ContainersNotInitialized",
        ),
        _condition(
            "ContainersReady",
            run.containers_ready,
            timestamp(run.containers_ready_changed or run.admitted),
            reason="" if run.containers_ready else unready,
        ),
        _condition(
            "Ready",
            run.ready,
            timestamp(run.ready_changed or run.admitted),
            reason="" if run.ready else "ReadinessGatesNotReady" if run.containers_ready else unready,
        ),
    ]


def _condition(kind: str, ok: bool, since: str, *, reason: str = "") -> JSON:
    condition: JSON = {"type": kind, "status": "True" if ok else "False", "lastTransitionTime": since}
    return condition | {"reason": reason} if reason else condition | {"reason": None, "message": None}


# -- containers -------------------------------------------------------------------------------------------------------


def _container(container: ContainerSpec, pod: BoundPod, run: PodRun) -> JSON:
    match run.stage:
        case PodStage.CREATING | PodStage.INITIALISING:
            waiting = "PodInitializing" if pod.spec.init_containers else "ContainerCreating"
            return _status(container, {"waiting": {"reason": waiting}})
        case PodStage.RUNNING:
            last = {"terminated": _terminated(run.exit)} if run.exit is not None else {}
            state = {"running": {"startedAt": timestamp(run.since)}}
            return _status(container, state, last=last, ready=run.containers_ready, started=True, restarts=run.restarts)
        case PodStage.BACK_OFF:
            last = {"terminated": _terminated(run.exit)} if run.exit is not None else {}
            return _status(container, {"waiting": {"reason": "CrashLoopBackOff"}}, last=last, restarts=run.restarts)
        case PodStage.ENDED:
            return _status(container, {"terminated": _terminated(run.exit)}, restarts=run.restarts)


def _init_container(container: ContainerSpec, number: int, run: PodRun) -> JSON:
    began = run.init_finished[number - 1] if 0 < number <= len(run.init_finished) else run.sandboxed or run.admitted
    if number < len(run.init_finished):
        if container.sidecar and run.stage is not PodStage.ENDED:
            return _status(container, {"running": {"startedAt": timestamp(began)}}, ready=True, started=True)
        done = Exit(0, started=began, finished=run.init_finished[number])
        return _status(container, {"terminated": _terminated(done)}, ready=True)
    if number == len(run.init_finished) and run.stage is PodStage.INITIALISING:
        return _status(container, {"running": {"startedAt": timestamp(began)}}, started=True)
    return _status(container, {"waiting": {"reason": "PodInitializing"}})


def _status(
    container: ContainerSpec,
    state: JSON,
    *,
    last: JSON | None = None,
    ready: bool = False,
    started: bool = False,
    restarts: int = 0,
) -> JSON:
    return {
        "name": container.name,
        "image": container.image,
        "imageID": "",
        "ready": ready,
        "started": started,
        "restartCount": restarts,
        "state": state,
        "lastState": last or {},
    }


def _terminated(exit_: Exit | None) -> JSON:
    if exit_ is None:
        return {"exitCode": 0, "reason": "Completed"}
    return {
        "exitCode": exit_.code,
        "reason": "Completed" if exit_.code == 0 else "Error",
        "startedAt": timestamp(exit_.started),
        "finishedAt": timestamp(exit_.finished),
    }
