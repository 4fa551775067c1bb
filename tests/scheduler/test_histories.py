"""Whatever comes in whichever order, with however many names of resources, nothing raises."""

import os

import pytest

from spinney.cluster.pods import PodKey
from spinney.gangs.tree import Gang
from spinney.scheduler.fairshare import QueueInfo
from spinney.scheduler.intake.inventory import Inventory
from tests.scheduler.building import a_scheduler
from tests.scheduler.histories import NAMESPACE, Author, Gone, Look

HISTORIES = int(os.environ.get("SPINNEY_RESOURCE_HISTORIES", "12"))
CHUNKS = 4


def live(seed: int) -> None:
    """Live through one history, doing what is decided on the way."""
    author, inventory = Author(seed, "spinney-scheduler"), Inventory()
    scheduler = a_scheduler(inventory)
    for event in author.write():
        match event:
            case Look():
                result = scheduler.run_cycle()
                assert not result.errors, f"seed {seed}: {[each.message for each in result.unschedulable]}"
                assert not result.failures, f"seed {seed}: {result.failures}"
                for bind in result.binds:
                    if (running := author.placed(bind.pod.name, bind.node)) is not None:
                        inventory.apply(running)
                for eviction in result.evictions:
                    if (gone := author.evicted(eviction.pod.name)) is not None:
                        inventory.delete(gone)
            case QueueInfo():
                inventory.put_queue(event)
            case Gang():
                inventory.put_gang(event)
            case Gone(found=QueueInfo(name=name)):
                inventory.remove_queue(name)
            case Gone(found=Gang(key=key)):
                inventory.remove_gang(key)
            case Gone():
                inventory.delete(event.found)
            case _:
                inventory.apply(event)
    table = inventory.cluster.table
    assert table.idle.shape[1] == table.axis.width
    for pod in list(inventory.cluster.pods()):
        inventory.cluster.delete_pod(PodKey(NAMESPACE, pod.name))
    assert not table.used.any(), f"seed {seed}: undone bookings leave no trace"


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_the_session_scheduler_lives_through_any_history(chunk: int) -> None:
    """Cycles in the middle of random histories fail about nothing, and what is booked is unbooked to the bit."""
    for seed in range(chunk, HISTORIES, CHUNKS):
        live(seed)
