"""The columns of pods and nodes."""

from datetime import datetime

from spinney.api.struct import JSON
from spinney.server.rest.tables.columns import AGE, NAME, Column, at, field

_ROLE = "node-role.kubernetes.io/"


def pod_status(pod: JSON, _: datetime) -> str:
    """Return the one word that says how a pod is doing."""
    status = pod.get("status") or {}
    if "deletionTimestamp" in pod["metadata"]:
        return "Terminating"
    for condition in status.get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("reason") == "SchedulingGated":
            return "SchedulingGated"
    init = _init_status(pod, status)
    if init:
        return init
    for container in reversed(status.get("containerStatuses") or ()):
        state = container.get("state") or {}
        waiting, terminated = state.get("waiting") or {}, state.get("terminated") or {}
        if waiting.get("reason"):
            return str(waiting["reason"])
        if terminated.get("reason"):
            return str(terminated["reason"])
        if terminated:
            return f"ExitCode:{terminated.get('exitCode')}"
    return str(status.get("reason") or status.get("phase") or "Unknown")


def _init_status(pod: JSON, status: JSON) -> str:
    total = len(at(pod, "spec.initContainers", ()))
    for index, container in enumerate(status.get("initContainerStatuses") or ()):
        state = container.get("state") or {}
        terminated, waiting = state.get("terminated"), state.get("waiting") or {}
        if (terminated and terminated.get("exitCode") == 0) or container.get("started"):
            continue
        if terminated:
            return f"Init:{terminated.get('reason') or 'Error'}"
        if waiting.get("reason") not in {None, "PodInitializing"}:
            return f"Init:{waiting['reason']}"
        return f"Init:{index}/{total}"
    return ""


def _ready(pod: JSON, _: datetime) -> str:
    total = len(at(pod, "spec.containers", ()))
    return f"{sum(bool(each.get('ready')) for each in at(pod, 'status.containerStatuses', ()))}/{total}"


def _restarts(pod: JSON, _: datetime) -> str:
    return str(sum(each.get("restartCount", 0) for each in at(pod, "status.containerStatuses", ())))


def _readiness_gates(pod: JSON, _: datetime) -> str:
    gates = at(pod, "spec.readinessGates", ())
    if not gates:
        return "<none>"
    met = {each.get("type") for each in at(pod, "status.conditions", ()) if each.get("status") == "True"}
    return f"{sum(gate.get('conditionType') in met for gate in gates)}/{len(gates)}"


def _node_status(node: JSON, _: datetime) -> str:
    conditions = {each.get("type"): each.get("status") for each in at(node, "status.conditions", ())}
    ready = {"True": "Ready", None: "Unknown"}.get(conditions.get("Ready"), "NotReady")
    return ready + (",SchedulingDisabled" if at(node, "spec.unschedulable") else "")


def _roles(node: JSON, _: datetime) -> str:
    labels = at(node, "metadata.labels", {})
    roles = sorted(label.removeprefix(_ROLE) for label in labels if label.startswith(_ROLE))
    return ",".join(roles) or "<none>"


def _internal_address(node: JSON, _: datetime) -> str:
    addresses = at(node, "status.addresses", ())
    return next((str(each.get("address")) for each in addresses if each.get("type") == "InternalIP"), "<none>")


POD = (
    NAME,
    Column("Ready", _ready),
    Column("Status", pod_status),
    Column("Restarts", _restarts),
    AGE,
    field("IP", "status.podIP", priority=1),
    field("Node", "spec.nodeName", priority=1),
    field("Nominated Node", "status.nominatedNodeName", priority=1),
    Column("Readiness Gates", _readiness_gates, priority=1),
)
NODE = (
    NAME,
    Column("Status", _node_status),
    Column("Roles", _roles),
    AGE,
    field("Version", "status.nodeInfo.kubeletVersion", ""),
    Column("Internal-IP", _internal_address, priority=1),
    field("OS-Image", "status.nodeInfo.osImage", "<unknown>", priority=1),
    field("Container-Runtime", "status.nodeInfo.containerRuntimeVersion", "<unknown>", priority=1),
)
