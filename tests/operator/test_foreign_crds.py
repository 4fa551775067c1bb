"""On a PodGang CRD that keeps its conditions in one piece, nobody's condition is lost."""

import asyncio
import copy

from spinney.api.conditions import find_condition, is_true
from spinney.api.core import NAMESPACE, NODE
from spinney.api.podgang import INITIALIZED, POD_GANG, READY, SCHEDULED
from spinney.api.schema.crd import manifests
from spinney.kube.client import Client, PatchKind
from spinney.kube.crds import install_crds
from spinney.operator.operator import Operator, Settings
from spinney.runtime import Runtime
from spinney.server import ApiServer
from spinney.sim.embedded.transport import InProcessTransport
from spinney.testing.builders import a_pod_clique_set
from tests.operator.harness import SPINNEY, Witness, World, place_pods
from tests.virtual_time import on_virtual_time


@on_virtual_time
async def test_a_schedulers_condition_survives_our_writes() -> None:
    """Scheduled, written by a scheduler, is still there after the operator has written its own conditions."""
    runtime = Runtime.virtual(seed=2)
    server = ApiServer(runtime)
    client = Client(InProcessTransport(server), runtime)
    async with server.running():
        await client.create(NAMESPACE, {"metadata": {"name": "test"}})
        await client.create(NODE, {"metadata": {"name": "node-1"}})
        crds = copy.deepcopy(manifests())
        for crd in crds:
            if crd["spec"]["names"]["kind"] == POD_GANG.kind:
                schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
                conditions = schema["properties"]["status"]["properties"]["conditions"]
                conditions["x-kubernetes-list-type"] = "atomic"
                del conditions["x-kubernetes-list-map-keys"]
        await install_crds(client, crds)
        operator = Operator(Client(InProcessTransport(server), runtime), Settings(profiles=SPINNEY))
        running = asyncio.create_task(operator.run())
        await operator.manager.wait_until_ready()
        world = World(client, runtime, operator, Witness(), server)
        await world.apply(a_pod_clique_set("model"))
        await asyncio.sleep(2)
        gang = await world.gang("model-0")
        assert is_true(gang.status.conditions, INITIALIZED)
        scheduled = {
            "type": SCHEDULED,
            "status": "True",
            "reason": "Placed",
            "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
        patch = [{"op": "add", "path": "/status/conditions/-", "value": scheduled}]
        await client.patch(POD_GANG, "model-0", patch, "test", kind=PatchKind.JSON, subresource="status")
        placing = asyncio.create_task(place_pods(world))
        await asyncio.sleep(5)
        gang = await world.gang("model-0")
        found = find_condition(gang.status.conditions, SCHEDULED)
        assert found is not None
        assert found.reason == "Placed"
        assert is_true(gang.status.conditions, READY)
        placing.cancel()
        operator.stop()
        await running
