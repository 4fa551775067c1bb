"""Books between cycles say what a session that opens now would find."""

from collections.abc import Callable

import pytest

from spinney.scheduler.fairshare.amounts import GPU, Amounts
from spinney.scheduler.fairshare.queues import QueueInfo
from spinney.scheduler.intake.inventory import Inventory, NodePool
from spinney.scheduler.process.queue_books import live_books
from tests.scheduler.building import QUEUE, a_gang, a_node, a_pod, a_session, an_inventory, put_gang, put_job
from tests.scheduler.devices import put_claim
from tests.scheduler.test_device_claims import a_cluster, put_user


def plain() -> Inventory:
    """Return two nodes, one job that runs and one that waits."""
    inventory = an_inventory(a_node("n1"), a_node("n2", gpus=4))
    put_gang(inventory, a_gang("runs"), [a_pod("r", gang="runs", gpus=3, node="n1")])
    put_job(inventory, "waits", 2, gpus=5)
    return inventory


def claiming() -> Inventory:
    """Return a node that publishes devices, one pod that uses some and one that wants more."""
    inventory = a_cluster(n1=4, n2=4)
    put_claim(inventory, "two", 2)
    put_user(inventory, "p", "two")
    put_claim(inventory, "three", 3)
    put_user(inventory, "q", "three")
    return inventory


def pooled() -> Inventory:
    """Return a scheduler's own pool of one node, with another node that is none of its business."""
    inventory = Inventory(node_pool=NodePool("a", label="pool"))
    for node in (a_node("n1", labels={"pool": "a"}), a_node("n2", labels={"pool": "b"})):
        inventory.apply(node)
    put_gang(inventory, a_gang("waits"), [a_pod("w", gang="waits", gpus=2, labels={"pool": "a"})])
    return inventory


@pytest.mark.parametrize("world", [plain, claiming, pooled])
def test_books_are_those_of_a_session(world: Callable[[], Inventory]) -> None:
    """What queues hold and would get between two cycles is what the next one finds; claims and pools count."""
    inventory = world()
    inventory.put_queue(QueueInfo(name="org", quota=Amounts(gpu=4 * GPU)))
    inventory.put_queue(QueueInfo(name=QUEUE, parent="org", quota=Amounts(gpu=2 * GPU)))
    books = live_books(inventory, inventory.queues, total=inventory.offered())
    books.set_fair_shares()
    session = a_session(inventory)
    for name in ("org", QUEUE):
        assert books[name].allocated == session.ask.queue_allocated(name)
        assert books[name].fair_share == session.ask.queue_fair_share(name)
        assert books[name].requested.gpu > books[name].allocated.gpu
