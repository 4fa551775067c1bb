"""From a snapshot to what schedulers work on: its objects go into the inventory exactly as a watch would bring them.

Where a cluster has no Queue objects of its own, Kueue's ClusterQueues and Cohorts are its queues. A ClusterQueue's
quota is its nominal quota, summed over flavours; its limit adds what it may borrow. A Cohort may hold what it and its
members have together: what one does not use, others may. Resources that no flavour covers are not bounded. Workloads
are found by Kueue's labels: the ClusterQueue on pods, or a LocalQueue of the namespace.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

import structlog

from spinney.api.core import POD
from spinney.api.kai import BIND_REQUEST, QUEUE, BindRequest
from spinney.api.kai import Queue as KaiQueue
from spinney.api.kueue import CLUSTER_QUEUE, COHORT, LOCAL_QUEUE, ClusterQueue, Cohort, LocalQueue, ResourceGroup
from spinney.api.labels import KAI_QUEUE, KUEUE_CLUSTER_QUEUE, KUEUE_QUEUE
from spinney.api.pod_requests import amounts_of
from spinney.api.struct import changed
from spinney.cluster.pods import PodKey
from spinney.cluster.statuses import PodStatus
from spinney.gangs.sources.context import DEFAULT_QUEUE
from spinney.kube.keys import Key, key_of
from spinney.scheduler.fairshare.amounts import GPU, NAMES, NO_BOUND, UNLIMITED, Amounts
from spinney.scheduler.fairshare.queues import QueueInfo
from spinney.scheduler.intake.inventory import Inventory
from spinney.scheduler.intake.sources import OPTIONAL_KINDS
from spinney.sim.snapshots.snapshot import ClusterSnapshot, Objects, resource_of

log = structlog.get_logger()

SESSION_NAMES: Final = ("spinney-scheduler", "kai-scheduler", "volcano")
"""Scheduler names whose pods the session scheduler places in a simulation; all others are the coscheduler's."""


_UNITS: Final = (1, 1, GPU)


@dataclass(frozen=True)
class KueueQueues:
    """Kueue's queues of a cluster, and which of them each workload is in."""

    queues: tuple[QueueInfo, ...] = ()
    _local: Mapping[Key, str] = field(default_factory=dict)

    @classmethod
    def of(cls, cluster: Objects) -> "KueueQueues":
        """Return the queues of a cluster; none where it has Queue objects, which then count, or no ClusterQueues."""
        found = cluster.of(CLUSTER_QUEUE, ClusterQueue)
        if not found or cluster.of(QUEUE, KaiQueue):
            return cls()
        local = {key_of(each): each.spec.cluster_queue for each in cluster.of(LOCAL_QUEUE, LocalQueue)}
        queues = [*_cohorts(found, cluster.of(COHORT, Cohort)), *map(_queue, found)]
        if all(each.name != DEFAULT_QUEUE for each in queues):
            queues.append(QueueInfo(name=DEFAULT_QUEUE, quota=NO_BOUND))  # of workloads that are not Kueue's
        return cls(tuple(queues), local)

    def led_to(self, namespace: str, local: str) -> str:
        """Return the queue to which a LocalQueue leads; empty if it leads nowhere."""
        return self._local.get(Key(namespace, local), "")

    def labelled(self, found: Any) -> Any:
        """Return an object with the label of the queue it is in, if it names one of Kueue's."""
        labels = getattr(getattr(found, "metadata", None), "labels", None) or {}
        if not self.queues or not {KUEUE_CLUSTER_QUEUE, KUEUE_QUEUE} & labels.keys():
            return found
        metadata = found.metadata
        local = Key(metadata.namespace or "", labels.get(KUEUE_QUEUE, ""))
        queue = labels.get(KUEUE_CLUSTER_QUEUE) or self._local.get(local)
        if not queue:
            return found
        return changed(found, metadata={"labels": {**labels, KAI_QUEUE: queue}})


def _queue(found: ClusterQueue) -> QueueInfo:
    nominal, borrowing = _quotas(found.spec.resource_groups)
    created = found.metadata.creation_timestamp
    return QueueInfo(
        name=found.metadata.name,
        parent=_cohort_name(found.spec.shares_with) if found.spec.shares_with else None,
        quota=_amounts(nominal),
        limit=_amounts(
            {name: amount + borrowing[name] if name in borrowing else UNLIMITED for name, amount in nominal.items()}
            if found.spec.shares_with
            else nominal
        ),
        created=created.timestamp() if created is not None else 0.0,
        uid=found.metadata.uid or "",
    )


def _cohorts(members: Iterable[ClusterQueue], described: Iterable[Cohort]) -> Iterator[QueueInfo]:
    """Yield the cohorts, those without an object too: each may hold what it and everything below it have."""
    own: dict[str, dict[str, int]] = defaultdict(dict)
    parents: dict[str, str] = {}
    for cohort in described:
        own[cohort.metadata.name] = _quotas(cohort.spec.resource_groups)[0]
        parents[cohort.metadata.name] = cohort.spec.parent_name
    for each in members:
        if each.spec.shares_with:
            _add(own[each.spec.shares_with], _quotas(each.spec.resource_groups)[0])
    total = {name: dict(amounts) for name, amounts in own.items()}
    for name, amounts in own.items():
        above, seen = parents.get(name, ""), {name}
        while above and above not in seen:
            seen.add(above)
            _add(total.setdefault(above, {}), amounts)
            above = parents.get(above, "")
    for name, amounts in total.items():
        held = _amounts(amounts)
        parent = parents.get(name, "")
        yield QueueInfo(
            name=_cohort_name(name), parent=_cohort_name(parent) if parent else None, quota=held, limit=held
        )


def _cohort_name(name: str) -> str:
    """Return what a cohort is called among queues: a ClusterQueue may have the same name."""
    return f"cohort/{name}"


def _quotas(groups: Iterable[ResourceGroup]) -> tuple[dict[str, int], dict[str, int]]:
    """Return nominal quota and borrowing limit by resource, summed over flavours; no limit where one has none."""
    nominal: dict[str, int] = {}
    borrowing: dict[str, int] = {}
    unbounded: set[str] = set()
    for quota in (quota for group in groups for flavor in group.flavors for quota in flavor.resources):
        _add(nominal, amounts_of({quota.name: quota.nominal_quota}))
        if quota.borrowing_limit is None:
            unbounded.add(quota.name)
        else:
            _add(borrowing, amounts_of({quota.name: quota.borrowing_limit}))
    return nominal, {name: amount for name, amount in borrowing.items() if name not in unbounded}


def _add(total: dict[str, int], more: Mapping[str, int]) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def _amounts(by_name: Mapping[str, int]) -> Amounts:
    """Return amounts as queues count them; what is not named is not bounded."""
    found = (by_name.get(name, UNLIMITED) for name in NAMES)
    return Amounts(*(each if each < 0 else each * unit for each, unit in zip(found, _UNITS, strict=True)))


def inventory_of(
    snapshot: ClusterSnapshot, scheduler_names: Collection[str] = SESSION_NAMES, *, tells: bool = True
) -> Inventory:
    """Return an inventory that holds the cluster; pods that KAI's binder is at work on count as being bound."""
    inventory, kueue = Inventory(scheduler_names), KueueQueues.of(snapshot)
    for queue in kueue.queues:
        inventory.put_queue(queue)
    for node in snapshot.nodes:
        take_in(inventory, node, tells=tells)
    for resource, kind in OPTIONAL_KINDS.items():
        for found in snapshot.of(resource, kind):
            take_in(inventory, kueue.labelled(found), tells=tells)
    for pod in snapshot.pods:
        take_in(inventory, kueue.labelled(pod), tells=tells)
    for request in snapshot.of(BIND_REQUEST, BindRequest):
        key = PodKey(request.metadata.namespace or "", request.spec.pod_name)
        record = inventory.cluster.pod(key)
        if record is not None and record.status is PodStatus.PENDING and request.status.phase in (None, "", "Pending"):
            inventory.cluster.assume(key, request.spec.selected_node, request.spec.selected_gpu_groups)
    return inventory


def take_in(inventory: Inventory, found: Any, *, tells: bool = True) -> None:
    """Take an object in; one that cannot be read is told, and then absent, as for the schedulers of a cluster.

    ``tells`` is false where it was told already: of a copy of a cluster that is tried again and again.
    """
    try:
        inventory.apply(found)
    except Exception as error:  # noqa: BLE001 - told, and of this object alone
        resource, name = resource_of(found), found.metadata.name
        namespace = found.metadata.namespace or ""
        say = log.warning if tells else log.debug
        say(
            "object left out, which cannot be read",
            object=f"{resource} {namespace}/{name}".replace(" /", " "),
            error=f"{type(error).__name__}: {error}",
        )
        if resource is POD:
            inventory.cluster.leave_unread(PodKey(namespace, name), found)
        else:
            with suppress(Exception):  # it may not have got as far as being there
                inventory.delete(found)
