"""From a snapshot to what schedulers work on: its objects go into the inventory exactly as a watch would bring them."""

from collections.abc import Collection
from typing import Final

from spinney.api.kai import BIND_REQUEST, BindRequest
from spinney.cluster.pods import PodKey
from spinney.cluster.statuses import PodStatus
from spinney.scheduler.intake.inventory import Inventory
from spinney.scheduler.intake.sources import OPTIONAL_KINDS
from spinney.sim.snapshots.snapshot import ClusterSnapshot
from spinney.sim.whatif.kueue_queues import KueueQueues

SESSION_NAMES: Final = ("spinney-scheduler", "kai-scheduler", "volcano")
"""Scheduler names whose pods the session scheduler places in a simulation; all others are the coscheduler's."""


def inventory_of(snapshot: ClusterSnapshot, scheduler_names: Collection[str] = SESSION_NAMES) -> Inventory:
    """Return an inventory that holds the cluster; pods that KAI's binder is at work on count as being bound."""
    inventory, kueue = Inventory(scheduler_names), KueueQueues.of(snapshot)
    for queue in kueue.queues:
        inventory.put_queue(queue)
    for node in snapshot.nodes:
        inventory.apply(node)
    for resource, kind in OPTIONAL_KINDS.items():
        for found in snapshot.of(resource, kind):
            inventory.apply(kueue.labelled(found))
    for pod in snapshot.pods:
        inventory.apply(kueue.labelled(pod))
    for request in snapshot.of(BIND_REQUEST, BindRequest):
        _assume(inventory, request)
    return inventory


def _assume(inventory: Inventory, request: BindRequest) -> None:
    key = PodKey(request.metadata.namespace or "", request.spec.pod_name)
    record = inventory.cluster.pod(key)
    if record is not None and record.status is PodStatus.PENDING and request.status.phase in (None, "", "Pending"):
        inventory.cluster.assume(key, request.spec.selected_node, request.spec.selected_gpu_groups)
