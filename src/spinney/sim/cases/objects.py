"""The cluster of a case as the objects a scheduler watches: nodes, pods, gangs, queues, topologies, device claims.

Each kind is translated on its own and without loss of what the case says; nothing here knows a scheduler. The case's
clock stands still at :data:`NOW`.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from spinney.api import affinity, core, kai, labels, resource_claims
from spinney.api.meta import Metadata
from spinney.api.struct import JSON, convert
from spinney.cluster.classes import LEGACY_MIG_ANNOTATION
from spinney.cluster.devices import GPU_COUNT_LABEL, GPU_MEMORY_LABEL, MIG_ENABLED_LABEL, MIG_STRATEGY_LABEL
from spinney.cluster.pods import GPU_GROUP_LABEL
from spinney.cluster.resources import CPU_NAME, GPU_NAME, MEMORY_NAME, MIG_PREFIX, PODS_NAME
from spinney.gangs.sources.kai import SOURCE
from spinney.gangs.tree import Gang, GangKey, GroupSet, Member, PodSet, TopologyConstraintInfo
from spinney.scheduler.fairshare import GPU, UNLIMITED, Amounts, QueueInfo, Weights
from spinney.scheduler.plugins.taskorder import TASK_PRIORITY_LABEL
from spinney.sim.cases import format as cases

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
DEFAULT_NAMESPACE = "default"
SCHEDULER_NAME = "kai-scheduler"

_PHASES = {"Running": "Running", "Releasing": "Running", "Succeeded": "Succeeded", "Failed": "Failed"}
_ON_NODE = frozenset({"Running", "Releasing", "Bound", "Binding", "Failed", "Succeeded"})


def node_object(node: cases.Node) -> core.Node:
    """Return a ready node; devices that only claims can reach are not part of its allocatable."""
    offered = node.allocatable
    node_labels = {GPU_MEMORY_LABEL: str(node.gpu_memory), GPU_COUNT_LABEL: str(node.physical_gpus), **node.labels}
    if node.mig_strategy is not None:
        node_labels[MIG_STRATEGY_LABEL] = node.mig_strategy
    if node.mig_enabled:
        node_labels[MIG_ENABLED_LABEL] = "true"
    allocatable: dict[str, str | int | float] = {
        CPU_NAME: f"{offered.cpu_milli}m",
        MEMORY_NAME: offered.memory_bytes,
        PODS_NAME: offered.pods,
        GPU_NAME: node.gpus_device_plugin,
        **{_mig_resource(profile): count for profile, count in offered.mig.items()},
    }
    return core.Node(
        metadata=Metadata(name=node.name, labels=node_labels),
        spec=core.NodeSpec(
            taints=tuple(affinity.Taint(key=taint.key, value=taint.value, effect=taint.effect) for taint in node.taints)
        ),
        status=core.NodeStatus(
            capacity=allocatable,
            allocatable=allocatable,
            conditions=(core.NodeCondition(type="Ready", status="True"),),
        ),
    )


def pod_object(job: cases.Job, task: cases.Task) -> core.Pod:
    """Return the pod of a task. One that was promised a node is pending: promises are no part of a cluster."""
    placed = task.state in _ON_NODE
    annotations = {labels.KAI_POD_GROUP: job.name}
    pod_labels = {labels.KAI_SUB_GROUP: task.pod_set, labels.KAI_QUEUE: job.queue, **task.pod_labels}
    requests = task.requests
    if requests.gpu_kind == "fraction":
        annotations[labels.GPU_FRACTION] = f"{requests.gpu_fraction:g}"
    if requests.gpu_kind == "gpu_memory":
        annotations[labels.GPU_MEMORY] = str(requests.gpu_memory)
    if task.legacy_mig:
        annotations[LEGACY_MIG_ANNOTATION] = "true"
    if task.task_priority is not None:
        pod_labels[TASK_PRIORITY_LABEL] = str(task.task_priority)
    if placed and len(task.gpu_groups) == 1:
        pod_labels[GPU_GROUP_LABEL] = task.gpu_groups[0]
    elif placed:
        pod_labels.update({f"{GPU_GROUP_LABEL}/{group}": group for group in task.gpu_groups})
    return core.Pod(
        metadata=Metadata(
            name=task.name,
            namespace=namespace(job),
            uid=task.name,
            creation_timestamp=_created(job),
            deletion_timestamp=NOW if task.state == "Releasing" else None,
            labels=pod_labels,
            annotations=annotations,
        ),
        spec=core.PodSpec(
            node_name=(task.node or "") if placed else "",
            scheduler_name=SCHEDULER_NAME,
            priority=job.priority,
            affinity=_affinity(task),
            containers=(core.Container(name="main", resources=_requirements(requests)),),
            resource_claims=tuple(
                core.PodResourceClaim(name=claim, resource_claim_name=claim) for claim in requests.dra_claims
            ),
        ),
        status=core.PodStatus(phase=_PHASES.get(task.state, "Pending")),
    )


def gang_of(job: cases.Job, *, staleness_grace: float) -> Gang:
    started, stale = job.started_minutes_ago, job.stale_for_seconds
    return Gang(
        key=GangKey(SOURCE, namespace(job), job.name),
        root=_group(job.root_group, is_root=True),
        uid=job.name,
        queue=job.queue,
        priority=job.priority,
        preemptible=job.preemptible,
        created=_created(job),
        last_start=None if started is None else NOW - timedelta(minutes=started),
        stale_since=None if stale is None else NOW - timedelta(seconds=stale),
        staleness_grace=timedelta(seconds=staleness_grace),
    )


def queues_of(case: cases.Case) -> tuple[QueueInfo, ...]:
    """Return departments and queues as one tree."""
    return tuple(_queue(queue) for queue in (*case.departments, *case.queues))


def topology_objects(case: cases.Case) -> list[kai.Topology]:
    return [
        convert(
            kai.Topology,
            {"metadata": {"name": each.name}, "spec": {"levels": [{"nodeLabel": level} for level in each.levels]}},
        )
        for each in case.topologies
    ]


def slice_objects(dra: cases.DynamicResources) -> Iterator[resource_claims.ResourceSlice]:
    """Yield the devices drivers offer."""
    for each in dra.slices:
        devices = [{"name": device} for device in each.devices]
        spec = {"driver": each.driver, "pool": {"name": each.pool}, "nodeName": each.node, "devices": devices}
        yield convert(resource_claims.ResourceSlice, {"metadata": {"name": each.name}, "spec": spec})


def class_objects(dra: cases.DynamicResources) -> Iterator[resource_claims.DeviceClass]:
    """Yield the device classes; they select any device."""
    for name in dra.device_classes:
        yield resource_claims.DeviceClass(metadata=Metadata(name=name))


def claim_objects(dra: cases.DynamicResources) -> Iterator[resource_claims.ResourceClaim]:
    """Yield the claims with what they hold; consumers that are no task of the case are made up."""
    drivers = {each.pool: each.driver for each in dra.slices}
    for claim in dra.claims:
        name = claim.name
        exactly = {"deviceClassName": claim.device_class, "allocationMode": "ExactCount", "count": claim.count}
        results = [
            {"request": "devices", "driver": drivers.get(held.pool, ""), "pool": held.pool, "device": held.device}
            for held in claim.allocated_devices
        ]
        foreign = [f"foreign-{name}-{number}" for number in range(claim.reserved_for_foreign_count)]
        users = [{"resource": "pods", "name": user, "uid": user} for user in (*claim.reserved_for_tasks, *foreign)]
        manifest = {
            "metadata": {
                "name": name,
                "namespace": claim.namespace or DEFAULT_NAMESPACE,
                "uid": name,
                "labels": claim.labels,
            },
            "spec": {"devices": {"requests": [{"name": "devices", "exactly": exactly}]}},
            "status": {"allocation": {"devices": {"results": results}} if results else None, "reservedFor": users},
        }
        yield convert(resource_claims.ResourceClaim, manifest)


def namespace(job: cases.Job) -> str:
    return job.namespace or DEFAULT_NAMESPACE


def _created(job: cases.Job) -> datetime:
    # The rank only decides between jobs of equal age.
    return NOW - timedelta(minutes=job.created_minutes_ago) + timedelta(microseconds=job.creation_rank)


def _requirements(requests: cases.Requests) -> core.ResourceRequirements:
    amounts: dict[str, str | int | float] = {}
    if requests.cpu_milli:
        amounts[CPU_NAME] = f"{requests.cpu_milli}m"
    if requests.memory_bytes:
        amounts[MEMORY_NAME] = requests.memory_bytes
    if requests.gpu_kind == "whole" and requests.gpus:
        amounts[GPU_NAME] = int(requests.gpus)
    amounts.update({_mig_resource(profile): count for profile, count in requests.mig.items()})
    return core.ResourceRequirements(requests=amounts)


def _mig_resource(profile: str) -> str:
    return profile if profile.startswith(MIG_PREFIX) else f"nvidia.com/{profile}"


def _affinity(task: cases.Task) -> affinity.Affinity | None:
    wanted, with_pods, away = task.node_affinity, task.pod_affinity, task.pod_anti_affinity
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    found: JSON = {}
    if wanted is not None:
        expression = {"key": wanted.key, "operator": "In", "values": wanted.values}
        found["nodeAffinity"] = {required: {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}
    for field, pods in (("podAffinity", with_pods), ("podAntiAffinity", away)):
        if pods is not None:
            term = {"topologyKey": pods.topology_key, "labelSelector": {"matchLabels": pods.match_labels}}
            found[field] = {required: [term]}
    return convert(affinity.Affinity, found) if found else None


def _group(group: cases.Group, *, is_root: bool = False) -> GroupSet:
    members: tuple[Member, ...] = (
        *(_group(inner) for inner in group.groups),
        *(PodSet(each.name, each.min_member, _constraint(each.topology_constraint)) for each in group.pod_sets),
    )
    return GroupSet("" if is_root else group.name, members, topology=_constraint(group.topology_constraint))


def _constraint(found: cases.TopologyConstraint | None) -> TopologyConstraintInfo | None:
    if found is None or not (found.required_level or found.preferred_level):
        return None
    return TopologyConstraintInfo(found.topology, found.required_level or "", found.preferred_level or "")


def _queue(queue: cases.Queue) -> QueueInfo:
    cpu, memory, gpu = queue.cpu_milli, queue.memory_bytes, queue.gpu
    return QueueInfo(
        name=queue.name,
        parent=queue.parent,
        priority=queue.priority,
        quota=Amounts(_bound(cpu.quota), _bound(memory.quota), _bound(gpu.quota, GPU)),
        limit=Amounts(_bound(cpu.limit), _bound(memory.limit), _bound(gpu.limit, GPU)),
        weight=Weights(cpu.over_quota_weight, memory.over_quota_weight, gpu.over_quota_weight),
        created=float(queue.creation_rank),
    )


def _bound(amount: float, unit: int = 1) -> int:
    return UNLIMITED if amount < 0 else round(amount * unit)
