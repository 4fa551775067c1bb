"""An object that cannot be read is its own problem."""

from spinney.api.core import EVENT, NODE, Node, NodeStatus
from spinney.api.meta import Metadata
from spinney.binding.unreadable import UnreadableObjects
from spinney.kube.cache import Change
from spinney.kube.client import Client
from spinney.kube.events import EventRecorder
from spinney.kube.keys import Key
from spinney.kube.metrics import KubeMetrics
from spinney.runtime import Runtime, run_virtual
from spinney.scheduler.intake.inventory import Inventory
from spinney.server import ApiServer
from spinney.sim.transport import InProcessTransport


def a_node(name: str, gpus: str) -> Node:
    """Return a node."""
    return Node(
        metadata=Metadata(name=name, uid=name, resource_version="1"),
        status=NodeStatus(allocatable={"pods": "10", "nvidia.com/gpu": gpus}),
    )


def test_a_node_that_cannot_be_read_is_left_out() -> None:
    """A node whose figures become unreadable takes no more pods; an event on it says why, other nodes are taken in."""

    async def main() -> None:
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

            guarded = UnreadableObjects(metrics, events=recorder).guarded(NODE, take_in)
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

    run_virtual(main())
