"""StatefulSet: pods with a number each, made in order, replaced from the highest down."""

import copy
from dataclasses import dataclass
from typing import Any

from spinney.api.core import PERSISTENT_VOLUME_CLAIM, Pod
from spinney.api.struct import JSON
from spinney.kube.controller import Requeue
from spinney.kube.keys import Key
from spinney.kube.reconciling import create_once
from spinney.workloads.objects import STATEFUL_SET, WorkloadObject, is_active, is_ready, pod_of, template_hash
from spinney.workloads.upkeep import Upkeep

REVISION = "controller-revision-hash"
_NAME = "statefulset.kubernetes.io/pod-name"
_INDEX = "apps.kubernetes.io/pod-index"


@dataclass(frozen=True)
class StatefulSets:
    """Keeps the pods of StatefulSets."""

    upkeep: Upkeep

    async def reconcile(self, key: Key) -> Requeue | None:
        """Take the next step: one pod at a time, or all at once where the set allows it."""
        found = self.upkeep.due(key)
        if found is None:
            return None
        pods = {_ordinal(found, pod): pod for pod in self.upkeep.of(found)}
        revision = f"{found.metadata.name}-{template_hash(found)}"
        create, delete = steps(found, pods, revision)
        for ordinal in create:
            await self._make_claims(found, ordinal)
        await self.upkeep.create(found, [_pod(found, ordinal, revision) for ordinal in create])
        await self.upkeep.delete(found, [pods[ordinal] for ordinal in delete])
        active = [pod for pod in pods.values() if is_active(pod)]
        updated = sum(pod.metadata.labels.get(REVISION) == revision for pod in active)
        ready = sum(map(is_ready, active))
        done = updated == len(active) == found.replicas
        before = found.status.get("currentRevision")
        await self.upkeep.report(
            found,
            {
                "replicas": len(active),
                "readyReplicas": ready,
                "availableReplicas": ready,
                "currentReplicas": updated if done or before in (None, revision) else len(active) - updated,
                "updatedReplicas": updated,
                "currentRevision": revision if done or before is None else before,
                "updateRevision": revision,
            },
        )
        return None

    async def _make_claims(self, found: WorkloadObject, ordinal: int) -> None:
        """Make the volume claims of a pod; those of an earlier pod of the number are kept."""
        for template in found.spec.get("volumeClaimTemplates") or ():
            claim = copy.deepcopy(template)
            labels = (found.spec.get("selector") or {}).get("matchLabels") or {}
            metadata: JSON = claim.setdefault("metadata", {})
            metadata |= {
                "name": _claim(template, found, ordinal),
                "namespace": found.metadata.namespace,
                "labels": {**(metadata.get("labels") or {}), **labels},
            }
            await create_once(self.upkeep.client, PERSISTENT_VOLUME_CLAIM, claim)


def steps(found: WorkloadObject, pods: dict[int, Pod], revision: str) -> tuple[list[int], list[int]]:
    """Return the numbers of the pods to create and to delete now."""
    start = int((found.spec.get("ordinals") or {}).get("start", 0))
    wanted = range(start, start + found.replicas)
    ended = [number for number, pod in pods.items() if number in wanted and not is_active(pod)]
    if ended:
        return [], [number for number in ended if not pods[number].metadata.deleting]
    together = found.spec.get("podManagementPolicy") == "Parallel"
    missing = [number for number in wanted if number not in pods]
    surplus = sorted((number for number in pods if number not in wanted), reverse=True)
    if together:
        if missing or surplus:
            return missing, surplus
    else:
        for number in wanted:
            if number in missing:
                return [number], []
            if not is_ready(pods[number]):
                return [], []
        if surplus:
            return [], surplus[:1] if all(not pods[number].metadata.deleting for number in surplus) else []
    return [], _outdated(found, pods, revision)


def _outdated(found: WorkloadObject, pods: dict[int, Pod], revision: str) -> list[int]:
    """Return the pod to replace next: the highest of an older template, once all the others are ready."""
    strategy = found.spec.get("updateStrategy") or {}
    if strategy.get("type") == "OnDelete" or not all(map(is_ready, pods.values())):
        return []
    partition = int((strategy.get("rollingUpdate") or {}).get("partition", 0))
    old = [number for number, pod in pods.items() if pod.metadata.labels.get(REVISION) != revision]
    return [number for number in sorted(old, reverse=True) if number >= partition][:1]


def _pod(found: WorkloadObject, ordinal: int, revision: str) -> JSON:
    name = f"{found.metadata.name}-{ordinal}"
    labels = {REVISION: revision, _NAME: name, _INDEX: str(ordinal)}
    pod = pod_of(STATEFUL_SET, found, name=name, labels=labels)
    spec: JSON = pod["spec"]
    spec |= {"hostname": name, "subdomain": found.spec.get("serviceName", "")}
    claims: list[Any] = [
        {"name": each["metadata"]["name"], "persistentVolumeClaim": {"claimName": _claim(each, found, ordinal)}}
        for each in found.spec.get("volumeClaimTemplates") or ()
    ]
    if claims:
        names = {each["name"] for each in claims}
        spec["volumes"] = [*claims, *(each for each in spec.get("volumes") or () if each["name"] not in names)]
    return pod


def _claim(template: JSON, found: WorkloadObject, ordinal: int) -> str:
    return f"{template['metadata']['name']}-{found.metadata.name}-{ordinal}"


def _ordinal(found: WorkloadObject, pod: Pod) -> int:
    number = pod.metadata.name.removeprefix(f"{found.metadata.name}-")
    return int(number) if number.isdecimal() else -1
