"""The events that Spinney's processes record: the table behind docs/reference/events.md, and what the code records.

:func:`recorded` reads the source for calls of ``EventRecorder.event`` and finds the reason each passes. A test compares
it with the table, so that an event nobody described, or one that is no longer recorded, is noticed.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Final

SOURCE: Final = Path(__file__).resolve().parent.parent / "src"
OPERATOR, SCHEDULER, COSCHEDULER, GROUPER = "operator", "scheduler", "coscheduler", "grouper"
EMBEDDED: Final = "embedded cluster"


@dataclass(frozen=True)
class Event:
    """One reason: who records it about what, what it means, and what to do about it."""

    reason: str
    type: str
    by: str
    about: str
    meaning: str


EVENTS: Final = (
    Event(
        "FailedCreate",
        "Warning",
        EMBEDDED,
        "ReplicaSet, StatefulSet, Job",
        "The API server refused a pod of the workload (quota, admission, an invalid template) with this message, as "
        "kube-controller-manager says it elsewhere; it is tried again.",
    ),
    Event(
        "Scheduled",
        "Normal",
        f"{SCHEDULER}, {COSCHEDULER}",
        "Pod, PodGang, PodGroup",
        "The pod is bound to the node named; a gang or group has its minimum placed.",
    ),
    Event(
        "Unschedulable",
        "Warning",
        SCHEDULER,
        "Pod, PodGang",
        "Not placed; the message says why, as in the condition. `spinney why` says it at length.",
    ),
    Event(
        "ConstraintNotHonoured",
        "Warning",
        SCHEDULER,
        "PodGang",
        "The gang requires what no loaded plugin of the scheduler keeps; the message names the plugin to add.",
    ),
    Event(
        "SchedulerError",
        "Warning",
        f"{SCHEDULER}, {COSCHEDULER}",
        "Pod, PodGang, PodGroup",
        "Trying to place it failed: the message names plugin, extension point and error. It is tried again.",
    ),
    Event(
        "FailedScheduling",
        "Warning",
        COSCHEDULER,
        "Pod, PodGroup",
        "Not placed, in kube-scheduler's words: counts of nodes by reason.",
    ),
    Event(
        "FailedBinding",
        "Warning",
        f"{SCHEDULER}, {COSCHEDULER}",
        "Pod",
        "The API server refused the binding, or a volume or claim could not be bound; it is tried again.",
    ),
    Event(
        "Evict",
        "Warning on victims, Normal on the beneficiary",
        f"{SCHEDULER}",
        "Pod, PodGang",
        "The pod had to go for the gang named; the event on the beneficiary says what its place cost.",
    ),
    Event(
        "CheckpointRequested",
        "Warning",
        SCHEDULER,
        "Pod",
        "The pod is going to be evicted for the job named; its gang checkpoints, and is given the time for it.",
    ),
    Event(
        "CheckpointRequestWithdrawn",
        "Normal",
        SCHEDULER,
        "Pod",
        "The pod need not go after all: the job it was asked for is gone, or has found another place.",
    ),
    Event(
        "EvictRefused",
        "Warning",
        f"{SCHEDULER}",
        "PodGang",
        "A disruption budget or the API server did not let victims go; nothing was evicted, and it is planned anew.",
    ),
    Event(
        "GangReleased",
        "Warning",
        SCHEDULER,
        "Pod",
        "The gang could not be completed in time after a failure; its pods were evicted rather than left in part.",
    ),
    Event(
        "Preempted",
        "Normal",
        COSCHEDULER,
        "Pod",
        "The pod had to go for a pod or group of higher priority.",
    ),
    Event(
        "OccupiedByAnother",
        "Warning",
        COSCHEDULER,
        "PodGroup (scheduling.x-k8s.io)",
        "Pods of several owners name one group; give each workload a group of its own.",
    ),
    Event(
        "Preempting",
        "Normal",
        COSCHEDULER,
        "PodGroup",
        "Pods of lower priority make room for the group on the node named.",
    ),
    Event(
        "Running",
        "Normal",
        COSCHEDULER,
        "PodGroup (scheduling.x-k8s.io)",
        "The group's minimum of pods runs.",
    ),
    Event(
        "Finished",
        "Normal",
        COSCHEDULER,
        "PodGroup (scheduling.x-k8s.io)",
        "The group's minimum of pods has succeeded.",
    ),
    Event(
        "Failed",
        "Warning",
        COSCHEDULER,
        "PodGroup (scheduling.x-k8s.io)",
        "A pod of the group failed; the message names it.",
    ),
    Event(
        "PodCreateFailed",
        "Warning",
        OPERATOR,
        "PodClique",
        "The API server refused a pod (quota, admission, an invalid template) with this message; it is tried again.",
    ),
    Event(
        "PodAltered",
        "Warning",
        OPERATOR,
        "PodClique",
        "A mutating webhook or policy changes what the operator finds pods by; the message names it. No pod is kept.",
    ),
    Event(
        "AllScheduledReplicasLost",
        "Warning",
        OPERATOR,
        "PodClique",
        "A clique that had scheduled pods has none left; its gang may be terminated after `terminationDelay`.",
    ),
    Event(
        "PodCliqueSetReplicaDeleteSuccessful",
        "Warning",
        OPERATOR,
        "PodCliqueSet",
        "A replica was below its minimum for longer than `terminationDelay`, and was deleted to be made anew.",
    ),
    Event(
        "PodCliqueScalingGroupReplicaDeleteSuccessful",
        "Warning",
        OPERATOR,
        "PodCliqueScalingGroup",
        "The same, for one replica of a scaling group.",
    ),
    Event(
        "ReplicasKept",
        "Warning",
        OPERATOR,
        "PodCliqueSet",
        "`replicas` was changed in the template of a clique or scaling group: what exists keeps its size; scale that.",
    ),
    Event(
        "BackendFailed",
        "Warning",
        OPERATOR,
        "PodCliqueSet",
        "A backend failed, or answered what it may not, about a pod of the set; the message names both. Tried again.",
    ),
    Event(
        "BackendNotEnabled",
        "Warning",
        OPERATOR,
        "PodCliqueSet, PodGang",
        "The scheduler the workload was made for is not among the profiles; enable it again, or delete the workload.",
    ),
    Event(
        "SyncFailed",
        "Warning",
        f"{OPERATOR}, {GROUPER}",
        "PodGang, PodCliqueSet",
        "A backend could not write what its scheduler needs; the message is the backend's, and it is tried again.",
    ),
    Event(
        "CleanupFailed",
        "Warning",
        OPERATOR,
        "PodGang, PodCliqueSet",
        "A backend could not clean up after a gang, which stays until it can; the message is the backend's.",
    ),
    Event(
        "NameTaken",
        "Warning",
        OPERATOR,
        "PodCliqueSet",
        "An object of a name the operator needs exists and belongs to another owner; it is not touched. Rename either.",
    ),
    Event(
        "TooLarge",
        "Warning",
        OPERATOR,
        "PodCliqueSet, PodCliqueScalingGroup, PodClique",
        "The set would exceed limits.podsPerSet or limits.gangsPerSet; it keeps what it has. Ask for fewer replicas.",
    ),
    Event(
        "MissingTemplate",
        "Warning",
        OPERATOR,
        "PodCliqueSet",
        "A ResourceClaimTemplate that the workload names does not exist; create it.",
    ),
    Event(
        "TopologyDriftDetected",
        "Warning",
        OPERATOR,
        "ClusterTopologyBinding",
        "A scheduler's own topology object differs from the binding, and is not ours to change.",
    ),
    Event(
        "TopologyInSync",
        "Normal",
        OPERATOR,
        "ClusterTopologyBinding",
        "It no longer differs.",
    ),
    Event(
        "GroupingRefused",
        "Warning",
        GROUPER,
        "Pod",
        "The rule of the workload's kind cannot be applied; the message names the field, and what happens to the pod.",
    ),
    Event(
        "ForeignPodGang",
        "Warning",
        GROUPER,
        "Pod",
        "A PodGang of the name the workload needs exists and is not the grouper's; it is not touched. Rename either.",
    ),
    Event(
        "CannotJoin",
        "Warning",
        GROUPER,
        "Pod",
        "kube-scheduler learns the group of a pod only when the pod is made; one that exists is scheduled on its own.",
    ),
    Event(
        "NodesRequested",
        "Normal",
        SCHEDULER,
        "PodGang, PodGroup",
        "A ProvisioningRequest was made for the nodes that the gang lacks; the message names it.",
    ),
    Event(
        "NodesRequestFailed",
        "Warning",
        SCHEDULER,
        "PodGang, PodGroup",
        "The autoscaler could not provide the nodes of the gang, or took them back; they are asked for again later.",
    ),
    Event(
        "WaitingInQueue",
        "Normal",
        SCHEDULER,
        "Job, JobSet, TrainJob",
        "A suspended workload waits in its queue; the message says why its gang would not start now.",
    ),
    Event(
        "Admitted",
        "Normal",
        SCHEDULER,
        "Job, JobSet, TrainJob",
        "A suspended workload was resumed: there is room for its gang, which is kept until its pods have come.",
    ),
    Event(
        "NotQueueable",
        "Warning",
        SCHEDULER,
        "Job, JobSet, TrainJob",
        "A suspended workload stays suspended, because it cannot be said what its gang would be; the message says why.",
    ),
    Event(
        "SuspendedAgain",
        "Warning",
        SCHEDULER,
        "Job, JobSet, TrainJob",
        "Others needed the nodes kept for a resumed workload before its pods had come; it waits in its queue again.",
    ),
)
"""Every reason, as the reference lists it."""

COMPUTED: Final = {
    "spinney.reporting.pods": {"Unschedulable", "FailedScheduling", "SchedulerError"},  # the verdict's word
    "spinney.reporting.pod_gangs": {  # the verdict's word
        "Unschedulable",
        "FailedScheduling",
        "SchedulerError",
        "ConstraintNotHonoured",
    },
    "spinney.reporting.kai_groups": {"Unschedulable", "SchedulerError"},  # the verdict's word
    "spinney.queueing.admission": {"WaitingInQueue", "NotQueueable"},  # given by the caller
    "spinney.binding.evicting": {"Evict", "GangReleased"},  # the disruption's word
    "spinney.reporting.pod_groups": {"Scheduled"},  # the verdict's word
    "spinney.coscheduling.process.group_status": {"Preempting"},  # what the process tells about
    "spinney.operator.status.last_errors": {"NameTaken", "MissingTemplate", "PodAltered", "TooLarge"},  # its name
    "spinney.operator.controllers.podcliqueset": {"NameTaken", "MissingTemplate", "TooLarge"},  # the error's name
    "spinney.operator.controllers.podgang": {"BackendNotEnabled", "CleanupFailed", "SyncFailed"},  # given by the caller
}
"""The reasons that a module records under a name which is not a constant."""


def recorded() -> dict[str, set[str]]:
    """Return the reasons that the source records, each with the modules that do; a computed one as the table says."""
    found: dict[str, set[str]] = {}
    for path in sorted((SOURCE / "spinney").rglob("*.py")):
        name = ".".join(path.relative_to(SOURCE).with_suffix("").parts)
        if name.startswith("spinney.server."):
            continue  # its events are those of watches
        for reason in _reasons(path, name):
            found.setdefault(reason, set()).add(name)
    return found


def _reasons(path: Path, name: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.Call):
            continue
        if isinstance(node.func, ast.Attribute) and node.func.attr == "event" and len(node.args) > 2:
            reason = node.args[2]
        elif isinstance(node.func, ast.Name) and node.func.id == "ObjectEvent":
            reason = node.args[1]
        else:
            continue
        constant = _constant(reason, import_module(name))
        if constant is not None:
            yield constant
        elif name in COMPUTED:
            yield from COMPUTED[name]
        else:
            yield f"computed in {name}: say in hack/events.py what it can be"


def _constant(node: ast.expr, module: ModuleType) -> str | None:
    """Return the text an expression stands for, if that can be read from the module's constants."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    value: object = None
    if isinstance(node, ast.Name):
        value = getattr(module, node.id, None)
    elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        value = getattr(getattr(module, node.value.id, None), node.attr, None)
    return value if isinstance(value, str) else None
