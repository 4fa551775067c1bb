"""Two schedulers of one cluster: neither gives away what the other took, or takes back what the other said."""

import asyncio

from spinney.api.core import POD
from spinney.api.podgang import POD_GANG, PodGang
from spinney.api.resource_claims import DEVICE_CLASS, RESOURCE_CLAIM, RESOURCE_SLICE
from spinney.api.struct import JSON
from spinney.coscheduling.process.configuration import CoschedulerConfiguration
from spinney.kube.client import Client
from spinney.kube.crds import install_crds
from spinney.scheduler.config import SchedulerConfig
from spinney.sim.embedded.stack import Schedulers, StackOptions
from spinney.sim.embedded.transport import InProcessTransport
from tests.scheduler.process.world import NS, World, given_a_world, running


async def a_user(world: World, name: str, scheduler: str) -> None:
    """Create a claim for a device, and a pod of a scheduler that uses it."""
    labels = {"kai.scheduler/queue": "default-queue"}
    devices = {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}
    metadata = {"name": name, "namespace": NS, "labels": labels}
    await world.client.create(RESOURCE_CLAIM, {"metadata": metadata, "spec": {"devices": devices}})
    spec = {
        "schedulerName": scheduler,
        "resourceClaims": [{"name": "gpu", "resourceClaimName": name}],
        "containers": [{"name": "main", "image": "pause", "resources": {"claims": [{"name": "gpu"}]}}],
    }
    await world.client.create(POD, {"metadata": {"name": name, "namespace": NS}, "spec": spec})


@given_a_world
async def test_a_device_is_given_out_once_by_both(world: World) -> None:
    """Each scheduler has a pod that wants the only device: one of the two gets it."""
    await world.add_node("n1", gpus=0)
    await world.client.create(DEVICE_CLASS, {"metadata": {"name": "gpu"}, "spec": {}})
    pool = {"name": "n1", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "gpu.example.com", "pool": pool, "nodeName": "n1", "devices": [{"name": "gpu-0"}]}
    await world.client.create(RESOURCE_SLICE, {"metadata": {"name": "n1-gpus"}, "spec": spec})
    coscheduler = CoschedulerConfiguration.in_place_of_kube_scheduler()
    options = StackOptions(scheduler=SchedulerConfig(), coscheduler=coscheduler)

    def connect(field_manager: str) -> Client:
        return Client(InProcessTransport(world.server), world.runtime, field_manager=field_manager)

    schedulers = Schedulers(connect, options)
    async with running(schedulers):
        await schedulers.manager.wait_until_ready()
        await asyncio.gather(a_user(world, "a", "spinney-scheduler"), a_user(world, "b", "default-scheduler"))
        await world.settle(30)
    claims = [(await world.client.get(RESOURCE_CLAIM, name, NS)).get("status", {}) for name in ("a", "b")]
    assert sum(bool(status.get("allocation")) for status in claims) == 1
    assert sorted((await world.places()).values()) == ["", "n1"]


async def said_of_g(world: World) -> list[tuple[str, str]]:
    """Return what the gang says of its scheduling: the reason, and what is before the first colon of the message."""
    gang = await world.client.get(POD_GANG, "g", NS, type=PodGang)
    said = [each for each in gang.status.conditions if each.type == "Scheduled"]
    return [(each.reason or "", (each.message or "").partition(":")[0]) for each in said]


@given_a_world
async def test_schedulers_of_other_names_say_nothing_of_each_others_gangs(world: World) -> None:
    """Both are of the backend that the gang names; what one says of its pods the other does not take back."""
    await install_crds(world.client)
    references = [{"namespace": NS, "name": f"g-{number}"} for number in range(2)]
    spec = {"podgroups": [{"name": "all", "minReplicas": 2, "podReferences": references}]}
    await world.client.create(POD_GANG, {"metadata": {"name": "g", "namespace": NS}, "spec": spec})
    for number in range(2):
        labels = {"grove.io/podgang": "g"}
        container = {"name": "main", "image": "pause", "resources": {"limits": {"nvidia.com/gpu": "8"}}}
        pod: JSON = {"metadata": {"name": f"g-{number}", "namespace": NS, "labels": labels}}
        pod |= {"spec": {"schedulerName": "spinney-scheduler", "containers": [container]}}
        await world.client.create(POD, pod)
    async with world.scheduler(), world.scheduler(scheduler_names=("other",)):
        await world.settle(60)
        assert await said_of_g(world) == [("Unschedulable", "unschedulable on cluster")]
        for number in range(2):
            await world.client.delete(POD, f"g-{number}", NS)
        await world.settle(60)
        assert await said_of_g(world) == [("Waiting", "it has no pods, it needs 2")]
    written = [path for method, path in world.transport.writes if path.endswith("/podgangs/g/status")]
    assert len(written) <= 4
