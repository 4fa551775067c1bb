"""Deployment: a ReplicaSet for each template it has had, and the way from one to the next."""

import math
from dataclasses import dataclass

from spinney.api.labels import REPLICA_SET_HASH
from spinney.api.meta import owner_reference
from spinney.api.struct import JSON, to_json
from spinney.kube.cache import WatchCache
from spinney.kube.controller import Requeue
from spinney.kube.keys import Key
from spinney.kube.reconciling import Unread, create_once, delete_exactly
from spinney.runtime.numbers import whole_number_in
from spinney.workloads.objects import (
    BY_OWNER,
    DEPLOYMENT,
    REPLICA_SET,
    WorkloadObject,
    condition,
    resolved,
    template_hash,
)
from spinney.workloads.upkeep import Upkeep

_HISTORY = 10
_DESIRED = "deployment.kubernetes.io/desired-replicas"
"""On a ReplicaSet with pods: how many its Deployment wanted when it was given its size."""
_MOST = "deployment.kubernetes.io/max-replicas"
"""The same with those that a rollout may have beyond that."""
_LARGEST = 2**31 - 1
"""The largest number of replicas; what says more was written by somebody's hand."""


@dataclass(frozen=True)
class Deployments:
    """Keeps the ReplicaSets of Deployments."""

    sets: WatchCache[WorkloadObject]
    upkeep: Upkeep

    async def reconcile(self, key: Key) -> Requeue | None:
        """Bring the newest ReplicaSet up and the others down, within what the strategy allows."""
        found = self.upkeep.workloads.get(key)
        if found is None or found.metadata.deleting:
            return None
        owned = self.sets.index(BY_OWNER, found.metadata.uid)
        newest = next(
            (each for each in owned if each.metadata.labels.get(REPLICA_SET_HASH) == template_hash(found)), None
        )
        if newest is None and not found.spec.get("paused"):
            await self._create(found)
            return None  # its event goes on from here
        others = [each for each in owned if each is not newest]
        for each, replicas in wanted(found, newest, others).items():
            chosen = next(one for one in owned if one.metadata.name == each)
            marks = _marks(found) if replicas else {}
            if chosen.replicas != replicas or marks.items() - chosen.metadata.annotations.items():
                metadata = {"uid": chosen.metadata.uid, "annotations": marks}
                patch = {"metadata": metadata, "spec": {"replicas": replicas}}
                await self.upkeep.client.patch(REPLICA_SET, each, patch, found.metadata.namespace, type=Unread)
        await self._forget(found, others)
        await self.upkeep.report(found, _status(found, newest, owned, self.upkeep.now()))
        return None

    async def _create(self, found: WorkloadObject) -> None:
        label = {REPLICA_SET_HASH: template_hash(found)}
        template: JSON = found.spec["template"]
        metadata = template.get("metadata") or {}
        labels = {**(metadata.get("labels") or {}), **label}
        selector: JSON = found.spec["selector"]
        manifest = {
            "metadata": {
                "name": f"{found.metadata.name}-{label[REPLICA_SET_HASH]}",
                "namespace": found.metadata.namespace,
                "labels": labels,
                "ownerReferences": [to_json(owner_reference(DEPLOYMENT, found.metadata))],
            },
            "spec": {
                "replicas": 0,
                "selector": {**selector, "matchLabels": {**(selector.get("matchLabels") or {}), **label}},
                "template": {**template, "metadata": {**metadata, "labels": labels}},
            },
        }
        await create_once(self.upkeep.client, REPLICA_SET, manifest)  # one that is there the cache is about to show

    async def _forget(self, found: WorkloadObject, others: list[WorkloadObject]) -> None:
        """Delete the oldest ReplicaSets without pods, beyond those that are kept for a way back."""
        kept = int(found.spec.get("revisionHistoryLimit", _HISTORY))
        empty = [each for each in others if not each.replicas and not each.status.get("replicas")]
        empty.sort(key=lambda each: (str(each.metadata.creation_timestamp), each.metadata.name))
        for each in empty[: max(len(empty) - kept, 0)]:
            await delete_exactly(self.upkeep.client, REPLICA_SET, each)


def wanted(found: WorkloadObject, newest: WorkloadObject | None, others: list[WorkloadObject]) -> dict[str, int]:
    """Return the next number of replicas of each ReplicaSet that may change, by name."""
    desired = found.replicas
    if newest is None or found.spec.get("paused"):
        return _while_paused(found, newest, others)
    strategy = found.spec.get("strategy") or {}
    if strategy.get("type") == "Recreate":
        left = any(each.replicas or each.status.get("replicas") for each in others)
        down = {each.metadata.name: 0 for each in others}
        return down | {newest.metadata.name: newest.replicas if left else desired}
    rolling = strategy.get("rollingUpdate") or {}
    surge = _surge(found)
    unavailable = resolved(rolling.get("maxUnavailable"), desired, up=False)
    if not surge and not unavailable:
        unavailable = 1
    total = newest.replicas + sum(each.replicas for each in others)
    up = min(desired, newest.replicas + max(desired + surge - total, 0)) if newest.replicas < desired else desired
    # Numbers that were asked for, not counted: a count may be about pods that are on their way out.
    may_go = max(total - (desired - unavailable) - max(newest.replicas - _ready(newest), 0), 0)
    result = {newest.metadata.name: up}
    for each in sorted(others, key=lambda one: (_ready(one) >= one.replicas, one.metadata.name)):
        gone = min(each.replicas, may_go)
        may_go -= gone
        result[each.metadata.name] = each.replicas - gone
    return result


def _while_paused(found: WorkloadObject, newest: WorkloadObject | None, others: list[WorkloadObject]) -> dict[str, int]:
    """Return what a paused Deployment is scaled to: the ReplicaSet that has pods, or the last that had.

    In the middle of a rollout, where several have pods, each gets its part of what is added or taken away.
    """
    by_age = sorted(others, key=lambda each: str(each.metadata.creation_timestamp), reverse=True)
    known = [*([newest] if newest is not None else ()), *by_age]
    active = [each for each in known if each.replicas] or known[:1]
    if len(active) == 1:
        return {active[0].metadata.name: found.replicas}
    sized_for = {each.metadata.annotations.get(_DESIRED) for each in active} - {None}
    return _in_proportion(found, active) if sized_for - {str(found.replicas)} else {}


def _in_proportion(found: WorkloadObject, active: list[WorkloadObject]) -> dict[str, int]:
    """Return the sizes of ReplicaSets of a Deployment that was scaled, by name; the largest takes what is left over.

    ``active`` are the newest first.
    """
    most = found.replicas + _surge(found) if found.replicas else 0
    change = most - sum(each.replicas for each in active)
    by_size = sorted(active if change > 0 else active[::-1], key=lambda each: each.replicas, reverse=True)
    sizes, left = {}, change
    for each in by_size:
        said = whole_number_in(each.metadata.annotations.get(_MOST, "")) or 0
        former = (said if said <= _LARGEST else 0) or int(found.status.get("replicas", 0)) or most
        part = (math.floor(each.replicas * most / former + 0.5) if former else 0) - each.replicas
        part = min(max(part, 0), left) if change > 0 else max(min(part, 0), left)
        sizes[each.metadata.name] = each.replicas + part
        left -= part
    largest = by_size[0].metadata.name
    return {**sizes, largest: max(sizes[largest] + left, 0)}


def _surge(found: WorkloadObject) -> int:
    """Return how many pods a rollout may have beyond those that are wanted."""
    strategy = found.spec.get("strategy") or {}
    if strategy.get("type") == "Recreate":
        return 0
    return resolved((strategy.get("rollingUpdate") or {}).get("maxSurge"), found.replicas, up=True)


def _marks(found: WorkloadObject) -> dict[str, str]:
    """Return what a ReplicaSet is told of the size of its Deployment."""
    return {_DESIRED: str(found.replicas), _MOST: str(found.replicas + _surge(found))}


def _ready(found: WorkloadObject) -> int:
    return int(found.status.get("readyReplicas", 0))


def _status(found: WorkloadObject, newest: WorkloadObject | None, owned: list[WorkloadObject], now: str) -> JSON:
    def total(field: str) -> int:
        return sum(int(each.status.get(field, 0)) for each in owned)

    desired, available = found.replicas, total("availableReplicas")
    updated = 0 if newest is None else int(newest.status.get("replicas", 0))
    enough = available >= desired - resolved(
        ((found.spec.get("strategy") or {}).get("rollingUpdate") or {}).get("maxUnavailable"), desired, up=False
    )
    done = updated >= desired and available >= desired and total("replicas") == updated
    before = found.status.get("conditions") or ()
    going_on, reason, progress = _progress(newest, done=done, paused=bool(found.spec.get("paused")))
    return {
        "replicas": total("replicas"),
        "updatedReplicas": updated,
        "readyReplicas": total("readyReplicas"),
        "availableReplicas": available,
        "unavailableReplicas": max(desired - available, 0),
        "conditions": [
            condition(
                "Available",
                enough,
                "MinimumReplicasAvailable" if enough else "MinimumReplicasUnavailable",
                "Deployment has minimum availability." if enough else "Deployment does not have minimum availability.",
                before=before,
                now=now,
            ),
            condition("Progressing", going_on, reason, progress, before=before, now=now),
        ],
    }


def _progress(newest: WorkloadObject | None, *, done: bool, paused: bool) -> tuple[bool | None, str, str]:
    """Return whether a rollout goes on, the word for it and the sentence."""
    if newest is None or paused:
        return None, "DeploymentPaused", "Deployment is paused"
    name = newest.metadata.name
    if done:
        return True, "NewReplicaSetAvailable", f'ReplicaSet "{name}" has successfully progressed.'
    return True, "ReplicaSetUpdated", f'ReplicaSet "{name}" is progressing.'
