"""What pods of other schedulers hold is taken off what queues divide, whatever has happened before."""

from random import Random

import msgspec
import pytest

from spinney.api.core import NodeCondition
from spinney.cluster.pods import PodKey
from spinney.scheduler.fairshare.amounts import GPU, Amounts
from spinney.scheduler.fairshare.totals import cluster_total
from spinney.scheduler.intake.inventory import Inventory
from tests.scheduler.building import NAMESPACE, a_node, a_pod


def walked(inventory: Inventory) -> Amounts:
    """Return the total with every pod looked at."""
    table = inventory.cluster.table
    ready = {name for name in table if table.ready[table.row(name)]}
    total = Amounts(64_000 * len(ready), 512 * 2**30 * len(ready), 8 * GPU * len(ready))
    for record in inventory.cluster.pods():
        foreign = record.pod.spec.scheduler_name not in inventory.scheduler_names
        if foreign and record.node in ready and record.status.value not in {"Pending", "Succeeded"}:
            total -= Amounts(1000, 0, record.request.gpus * GPU)
    return total


@pytest.mark.parametrize("seed", range(20))
def test_the_running_sum_is_what_walking_the_pods_finds(seed: int) -> None:
    """Pods that come, move between schedulers, terminate and go on nodes that break and vanish leave no trace."""
    chance = Random(seed)
    inventory = Inventory()
    for _ in range(150):
        node, name = f"n{chance.randrange(4)}", f"p{chance.randrange(12)}"
        match chance.randrange(6):
            case 0:
                found = a_node(node)
                ready = NodeCondition(type="Ready", status=chance.choice(("True", "False")))
                changed = msgspec.structs.replace(found.status, conditions=(ready,))
                inventory.apply(msgspec.structs.replace(found, status=changed))
            case 1:
                inventory.cluster.delete_node(node)
            case 2:
                inventory.cluster.delete_pod(PodKey(NAMESPACE, name))
            case _:
                where = chance.choice(("", node))
                pod = a_pod(
                    name, gpus=chance.randrange(3), node=where, terminating=bool(where) and chance.random() < 0.3
                )
                scheduler = chance.choice(("default-scheduler", "spinney-scheduler"))
                spec = msgspec.structs.replace(pod.spec, scheduler_name=scheduler)
                phase = "Succeeded" if where and chance.random() < 0.2 else pod.status.phase
                status = msgspec.structs.replace(pod.status, phase=phase)
                inventory.apply(msgspec.structs.replace(pod, spec=spec, status=status))
        snapshot = inventory.snapshot()
        assert cluster_total(snapshot.ledger.table, snapshot.foreign) == walked(inventory)
