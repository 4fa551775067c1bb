"""Machines and jobs of a trace as the objects that the scheduler reads."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from typing import Final

import msgspec

from spinney.api.affinity import Affinity, NodeAffinity, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from spinney.api.core import (
    Container,
    Node,
    NodeStatus,
    PersistentVolumeClaimVolume,
    Pod,
    PodResourceClaim,
    PodSpec,
    PodStatus,
    ResourceRequirements,
    Volume,
)
from spinney.api.labels import EXPECTED_DURATION, GPU_FRACTION, HOSTNAME, KAI_POD_GROUP, KAI_QUEUE, KAI_SUB_GROUP
from spinney.api.meta import Metadata
from spinney.api.struct import changed
from spinney.cluster.classes import DEVICES_ANNOTATION
from spinney.cluster.pods import PodKey
from spinney.gangs.sources import kai
from spinney.gangs.sources.context import SourceContext
from spinney.gangs.tree import DEFAULT_POD_SET, Gang, GangKey, PodSet, TopologyConstraintInfo, single
from spinney.scheduler.fairshare.amounts import GPU, NO_BOUND, Amounts
from spinney.scheduler.fairshare.queues import QueueInfo
from spinney.sim.replay.limits import APPLICATION, MOST_PER_NODE
from spinney.sim.replay.trace import WHOLE, Ask, Job, Machine, RecordedPod

NAMESPACE: Final = "replay"
SCHEDULER: Final = "spinney-scheduler"
MODEL: Final = "nvidia.com/gpu.product"
POOL: Final = "replay.spinney.dev/pool"
TOPOLOGY: Final = "replay"
_GPU: Final = "nvidia.com/gpu"
_PODS_PER_NODE: Final = 1001


def node_of(machine: Machine) -> Node:
    """Return a machine as a node that is ready."""
    labels = {HOSTNAME: machine.name, **machine.labels}
    if machine.model:
        labels[MODEL] = machine.model
    if machine.pool:
        labels[POOL] = machine.pool
    amounts = {"cpu": f"{machine.cpu}m", "memory": f"{machine.memory}Mi", "pods": str(_PODS_PER_NODE)}
    if machine.gpus:
        amounts[_GPU] = str(machine.gpus)
    amounts |= {name: str(amount) for name, amount in machine.others.items()}
    return Node(
        metadata=Metadata(name=machine.name, labels=labels),
        status=NodeStatus(allocatable=amounts),
    )


def closed(node: Node) -> Node:
    """Return a node that takes no new pods but those that tolerate it."""
    return changed(node, spec={"unschedulable": True})


def pod_name(job: Job, number: int) -> str:
    """Return the name of a pod of a job."""
    return job.name if job.pods == 1 else f"{job.name}-{number}"


def pods_of(job: Job, moment: datetime, attempt: int) -> list[Pod]:
    """Return the pods of a job, created at ``moment``; each attempt at running it has pods of its own."""
    if job.recorded is not None:
        return [_as_recorded(job, number, each, moment, attempt) for number, each in enumerate(job.recorded.pods)]
    annotations, labels = _annotations(job.ask), {KAI_QUEUE: job.queue}
    if job.application:
        labels[APPLICATION] = job.application
    if job.pods > 1:
        annotations = {**annotations, KAI_POD_GROUP: job.name}
    annotations |= _stated(job)
    spec = _spec(job.ask)
    found = []
    for number in range(job.pods):
        name = pod_name(job, number)
        metadata = Metadata(
            name=name,
            namespace=NAMESPACE,
            uid=f"{name}/{attempt}",
            labels=labels,
            annotations=annotations,
            creation_timestamp=moment,
        )
        found.append(Pod(metadata=metadata, spec=spec, status=PodStatus(phase="Pending")))
    return found


def _as_recorded(job: Job, number: int, recorded: RecordedPod, moment: datetime, attempt: int) -> Pod:
    """Return a pod that is in the gang of its job, whatever object its cluster had for that."""
    pod, key = recorded.pod, pod_key(job, number)
    metadata = msgspec.structs.replace(
        pod.metadata,
        name=key.name,
        uid=f"{key.name}/{attempt}",
        labels={**pod.metadata.labels, KAI_QUEUE: job.queue, KAI_SUB_GROUP: recorded.pod_set},
        annotations={**pod.metadata.annotations, KAI_POD_GROUP: job.name, **_stated(job)},
        creation_timestamp=moment,
    )
    if not recorded.claims and not recorded.volumes:
        return msgspec.structs.replace(pod, metadata=metadata)
    spec = msgspec.structs.replace(
        pod.spec,
        resource_claims=tuple(PodResourceClaim(name=name, resource_claim_name=name) for name in recorded.claims),
        volumes=tuple(
            Volume(name=use.name, persistent_volume_claim=PersistentVolumeClaimVolume(claim_name=use.name))
            for use in recorded.volumes
        ),
    )
    return msgspec.structs.replace(pod, metadata=metadata, spec=spec)


def gang_of(job: Job, moment: datetime, attempt: int) -> Gang | None:
    """Return the gang of a job; a single pod of which nothing more is known is a gang by itself."""
    if (recorded := job.recorded) is not None:
        return replace(
            recorded.gang,
            key=gang_key(job),
            uid=f"{job.name}/{attempt}",
            queue=job.queue,
            created=moment,
            anchor=GangKey(kai.SOURCE, namespace_of(job), recorded.anchor) if recorded.anchor else None,
        )
    if job.pods == 1:
        return None
    topology = TopologyConstraintInfo(TOPOLOGY, required=job.topology) if job.topology else None
    return Gang(
        key=gang_key(job),
        root=single(PodSet(DEFAULT_POD_SET, job.pods), topology=topology),
        uid=f"{job.name}/{attempt}",
        queue=job.queue,
        priority=SourceContext().default_priority,
        created=moment,
    )


def gang_key(job: Job) -> GangKey:
    """Return the key of the gang of a job that has one."""
    return GangKey(kai.SOURCE, namespace_of(job), job.name)


def pod_key(job: Job, number: int) -> PodKey:
    """Return the key of a pod of a job."""
    return PodKey(namespace_of(job), pod_name(job, number))


def namespace_of(job: Job) -> str:
    """Return the namespace of a job: affinity to pods looks at it."""
    return job.recorded.gang.namespace if job.recorded is not None else NAMESPACE


def queues_of(quotas: Mapping[str, int]) -> list[QueueInfo]:
    """Return queues that are guaranteed so many GPUs, and may use all that others leave."""
    return [
        QueueInfo(name=name, quota=Amounts(NO_BOUND.cpu, NO_BOUND.memory, gpus * GPU), created=number)
        for number, (name, gpus) in enumerate(quotas.items())
    ]


def _stated(job: Job) -> dict[str, str]:
    return {EXPECTED_DURATION: f"{job.stated:.3f}s"} if job.stated is not None else {}


def _annotations(ask: Ask) -> dict[str, str]:
    found = {MOST_PER_NODE: str(ask.most_per_node)} if ask.most_per_node else {}
    if ask.gpus and ask.milli < WHOLE:
        found[GPU_FRACTION] = f"{ask.milli / WHOLE:.3f}"
    if ask.gpus > 1 and ask.milli < WHOLE:
        found[DEVICES_ANNOTATION] = str(ask.gpus)
    return found


@lru_cache(maxsize=65536)
def _spec(ask: Ask) -> PodSpec:
    requests = {"cpu": f"{ask.cpu}m", "memory": f"{ask.memory}Mi"}
    if ask.gpus and ask.milli == WHOLE:
        requests[_GPU] = str(ask.gpus)
    requests |= {name: str(amount) for name, amount in ask.others}
    return PodSpec(
        scheduler_name=SCHEDULER,
        containers=(Container(name="main", resources=ResourceRequirements(requests=requests)),),
        affinity=_affinity(ask.models) if ask.models else None,
        node_selector={POOL: ask.pool} if ask.pool else {},
    )


def _affinity(models: frozenset[str]) -> Affinity:
    named = NodeSelectorRequirement(key=MODEL, operator="In", values=tuple(sorted(models)))
    required = NodeSelector(node_selector_terms=(NodeSelectorTerm(match_expressions=(named,)),))
    return Affinity(node_affinity=NodeAffinity(required_during_scheduling_ignored_during_execution=required))
