"""An object that cannot be read is its own problem."""

from spinney.api.core import EVENT, NODE, POD, Node, NodeStatus, Pod
from spinney.api.meta import Metadata
from spinney.api.struct import convert
from spinney.kube.cache import Change
from spinney.kube.client import Client
from spinney.kube.events import EventRecorder
from spinney.kube.keys import Key
from spinney.kube.metrics import KubeMetrics
from spinney.reporting.unreadable import UnreadableObjects
from spinney.runtime import Runtime
from spinney.scheduler.intake.inventory import Inventory
from spinney.server import ApiServer
from spinney.sim.embedded.transport import InProcessTransport
from tests.virtual_time import on_virtual_time


def a_node(name: str, gpus: str) -> Node:
    return Node(
        metadata=Metadata(name=name, uid=name, resource_version="1"),
        status=NodeStatus(allocatable={"pods": "10", "nvidia.com/gpu": gpus}),
    )


@on_virtual_time
async def test_a_node_that_cannot_be_read_is_left_out() -> None:
    """A node whose figures become unreadable takes no more pods; an event on it says why, other nodes are taken in."""
    runtime = Runtime.virtual()
    server = ApiServer(runtime)
    async with server.running():
        client = Client(InProcessTransport(server), runtime)
        metrics, recorder, inventory = KubeMetrics(), EventRecorder(client, "test"), Inventory()

        def take_in(change: Change[Node]) -> None:
            if change.new is not None:
                inventory.apply(change.new)
            elif change.old is not None:
                inventory.delete(change.old)

        guarded = UnreadableObjects(metrics, cluster=inventory.cluster, events=recorder).guarded(NODE, take_in)
        good, before, after = a_node("good", "8"), a_node("bad", "8"), a_node("bad", "many")
        guarded(Change(Key("", "bad"), None, before, "1"))
        guarded(Change(Key("", "bad"), before, after, "2"))
        guarded(Change(Key("", "good"), None, good, "3"))

        assert list(inventory.cluster.table) == ["good"]
        await recorder.flush()
        (event,) = (await client.list(EVENT)).items
        assert event["reason"] == "SchedulerError"
        assert "'many' is not a quantity" in event["message"]
        labels = {"resource": str(NODE)}
        assert metrics.registry.get_sample_value("spinney_undecodable_objects_total", labels) == 1


def test_a_node_with_a_pod_that_cannot_be_read_takes_no_other() -> None:
    """What the pod takes is not known; once it is read, or gone, the node takes pods again."""
    inventory = Inventory()
    inventory.apply(a_node("n", "8"))

    def take_in(change: Change[Pod]) -> None:
        if change.new is not None:
            inventory.apply(change.new)
        elif change.old is not None:
            inventory.delete(change.old)

    guarded = UnreadableObjects(KubeMetrics(), cluster=inventory.cluster).guarded(POD, take_in)
    key, table = Key("ns", "p"), inventory.cluster.table
    bad, good = a_running_pod("many"), a_running_pod("1")

    def is_closed() -> bool:
        return bool(table.unschedulable[table.row("n")])

    guarded(Change(key, None, bad, "1"))
    assert is_closed()
    inventory.apply(a_node("n", "4"))
    assert is_closed(), "whatever else happens to the node"
    guarded(Change(key, bad, good, "2"))
    assert not is_closed()
    guarded(Change(key, good, bad, "3"))
    assert is_closed()
    guarded(Change(key, bad, None, "4"))
    assert not is_closed()


def a_running_pod(gpus: str) -> Pod:
    container = {"name": "main", "resources": {"requests": {"nvidia.com/gpu": gpus}}}
    return convert(
        Pod,
        {
            "metadata": {"name": "p", "namespace": "ns", "uid": "p"},
            "spec": {"nodeName": "n", "containers": [container]},
            "status": {"phase": "Running"},
        },
    )
