"""The status of queues: what they hold and ask for is written, unless KAI's own controller does that."""

from spinney.api import kai
from spinney.api.apiextensions import CUSTOM_RESOURCE_DEFINITION
from spinney.api.core import POD
from spinney.api.labels import KAI_POD_GROUP, KAI_QUEUE
from spinney.api.struct import JSON
from spinney.kube.crds import install_crds
from spinney.kube.transport import Response
from tests.scheduler.process.world import NS, World, given_a_world, status

QUOTA = {"quota": 2, "limit": -1, "overQuotaWeight": 1}
UNBOUND = {"quota": -1, "limit": -1, "overQuotaWeight": 1}


async def two_queues(world: World) -> None:
    """Create a queue below another, and a node."""
    await install_crds(world.client)
    await world.add_node("n1", gpus=2)
    resources = {"gpu": QUOTA, "cpu": UNBOUND, "memory": UNBOUND}
    for name, parent in (("org", None), ("team", "org")):
        spec = {"resources": resources} | ({"parentQueue": parent} if parent else {})
        await world.client.create(kai.QUEUE, {"metadata": {"name": name}, "spec": spec})


async def a_pod_of_team(world: World, name: str) -> None:
    """Create a pod for a GPU in the queue ``team``."""
    container = {"name": "main", "image": "pause", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    spec = {"schedulerName": "spinney-scheduler", "containers": [container], "terminationGracePeriodSeconds": 0}
    metadata = {"name": name, "namespace": NS, "labels": {KAI_QUEUE: "team"}}
    await world.client.create(POD, {"metadata": metadata, "spec": spec})


async def status_of(world: World, queue: str) -> JSON:
    found: JSON = (await world.client.get(kai.QUEUE, queue)).get("status", {})
    return found


@given_a_world
async def test_queues_say_what_they_hold_and_ask_for(world: World) -> None:
    """A queue counts its own pods, and those of the queues below it; what waits is asked for and not held."""
    await two_queues(world)
    async with world.scheduler():
        for number in range(3):
            await a_pod_of_team(world, f"p{number}")
        await world.settle(10)
        for queue in ("team", "org"):
            status = await status_of(world, queue)
            assert status["allocated"]["nvidia.com/gpu"] == "2"
            assert status["requested"]["nvidia.com/gpu"] == "3"
        assert (await status_of(world, "org"))["childQueues"] == ["team"]

        for number in range(3):
            await world.client.delete(POD, f"p{number}", NS)
        await world.settle(10)
        assert (await status_of(world, "team"))["allocated"]["nvidia.com/gpu"] == "0"

        writes = len(world.transport.writes)
        await world.settle(600)
        assert len(world.transport.writes) == writes, "a status that does not change is not written"


@given_a_world
async def test_a_cluster_with_kai_is_left_to_its_controller(world: World) -> None:
    """Where the kinds of KAI's operator are served, nothing is written."""
    await two_queues(world)
    names = {"kind": "Config", "plural": "configs", "singular": "config", "listKind": "ConfigList"}
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    spec = {"group": "kai.scheduler", "names": names, "scope": "Cluster", "versions": [version]}
    crd = {"metadata": {"name": "configs.kai.scheduler"}, "spec": spec}
    await world.client.create(CUSTOM_RESOURCE_DEFINITION, crd)
    async with world.scheduler():
        await a_pod_of_team(world, "p")
        await world.settle(10)
        assert (await world.places())["p"] == "n1"
        assert not await status_of(world, "team")


@given_a_world
async def test_a_gang_takes_what_it_holds_to_its_new_queue(world: World) -> None:
    """A running gang is moved by its label: no pod changes, and both queues say so soon."""
    await two_queues(world)
    resources = {"gpu": QUOTA, "cpu": UNBOUND, "memory": UNBOUND}
    await world.client.create(kai.QUEUE, {"metadata": {"name": "other"}, "spec": {"resources": resources}})
    group = {"metadata": {"name": "gang", "namespace": NS}, "spec": {"minMember": 1, "queue": "team"}}
    async with world.scheduler():
        await world.client.create(kai.POD_GROUP, group)
        container = {"name": "main", "image": "pause", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
        metadata = {"name": "p", "namespace": NS, "annotations": {KAI_POD_GROUP: "gang"}}
        spec = {"schedulerName": "spinney-scheduler", "containers": [container]}
        await world.client.create(POD, {"metadata": metadata, "spec": spec})
        await world.settle(10)
        assert (await status_of(world, "team"))["allocated"]["nvidia.com/gpu"] == "1"

        await world.client.patch(kai.POD_GROUP, "gang", {"spec": {"queue": "other"}}, NS)
        await world.settle(10)
        assert (await status_of(world, "team"))["allocated"]["nvidia.com/gpu"] == "0"
        assert (await status_of(world, "other"))["allocated"]["nvidia.com/gpu"] == "1"


@given_a_world
async def test_a_status_that_was_refused_is_written_later(world: World) -> None:
    """A webhook that refuses one queue keeps no other from it; once it lets it pass, nothing else has to happen."""
    await two_queues(world)
    world.transport.fault = lambda method, path: status(403, "Forbidden") if "/queues/team/" in path else None
    async with world.scheduler():
        await a_pod_of_team(world, "p")
        await world.settle(60)
        assert await status_of(world, "team") == {}
        assert (await status_of(world, "org"))["allocated"]["nvidia.com/gpu"] == "1"
        world.transport.fault = lambda method, path: None
        await world.settle(60)
        assert (await status_of(world, "team"))["allocated"]["nvidia.com/gpu"] == "1"


@given_a_world
async def test_a_status_that_is_refused_is_not_tried_more_often_for_what_happened_meanwhile(world: World) -> None:
    """Each change is one more attempt; once nothing changes, one is made each half minute."""
    await two_queues(world)
    tried: list[str] = []

    def refuse(method: str, path: str) -> Response | None:
        if "/queues/" not in path or method == "GET":
            return None
        tried.append(path)
        return status(403, "Forbidden")

    world.transport.fault = refuse
    async with world.scheduler():
        for number in range(10):
            await a_pod_of_team(world, f"p{number}")
            await world.settle(3)
        await world.settle(60)
        tried.clear()
        await world.settle(600)
        assert 2 * 15 <= len(tried) <= 2 * 20, "two queues"
