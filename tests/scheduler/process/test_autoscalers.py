"""For which pods of the session scheduler an autoscaler adds nodes: whole gangs that wait for nodes, and no others."""

from typing import Any

import pytest

from spinney.api import kai
from spinney.api.core import POD, Pod
from spinney.kube.crds import install_crds
from tests.scheduler.process.world import NS, World, given_a_world, status


def wants_a_node(pod: Pod) -> bool:
    """Read a pod as Cluster Autoscaler and Karpenter do."""
    condition = pod.condition("PodScheduled")
    unschedulable = condition is not None and condition.reason == "Unschedulable"
    return unschedulable and not pod.spec.node_name and not pod.status.nominated_node_name


async def asking(world: World) -> dict[str, str]:
    """Return the reason that each pod without a node gives, with a star where an autoscaler adds a node for it."""
    found = {}
    for pod in (await world.client.list(POD, NS, type=Pod)).items:
        condition = pod.condition("PodScheduled")
        if not pod.spec.node_name:
            said = condition.reason if condition is not None else ""
            found[pod.metadata.name] = said + "*" * wants_a_node(pod)
    return found


async def limited_queue(world: World, name: str, gpus: int) -> None:
    """Create a queue that may hold so many GPUs."""
    free = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
    spec = {"resources": {"cpu": free, "memory": free, "gpu": {"quota": gpus, "limit": gpus, "overQuotaWeight": 1}}}
    await world.client.create(kai.QUEUE, {"metadata": {"name": name}, "spec": spec})


@given_a_world
async def test_a_gang_that_waits_for_nodes_asks_whole(world: World) -> None:
    """Every pod of a gang asks for a node, also those there would be room for; none does once the gang is placed."""
    await world.add_node("n1", gpus=2)
    async with world.scheduler():
        await world.add_gang("g", 3)
        await world.settle(3)
        assert await asking(world) == {f"g-{number}": "Unschedulable*" for number in range(3)}
        await world.add_node("n2", gpus=1)
        await world.settle(3)
        assert await asking(world) == {}


@pytest.mark.parametrize("spec", [{"gpus": 16}, {"nodeSelector": {"kind": "h100"}}], ids=["larger", "of another kind"])
@given_a_world
async def test_a_gang_that_no_node_of_today_suits_asks(world: World, spec: dict[str, Any]) -> None:
    """Nodes that are larger, or have other labels, than all there are may be what an autoscaler adds."""
    await world.add_node("n1", gpus=8)
    async with world.scheduler():
        await world.add_group("g", 2)
        for number in range(2):
            await world.add_pod(f"g-{number}", gang="g", **spec)
        await world.settle(3)
        assert await asking(world) == {"g-0": "Unschedulable*", "g-1": "Unschedulable*"}


@given_a_world
async def test_a_gang_over_its_quota_asks_for_no_node(world: World) -> None:
    """A new node would stay empty while the queue's limit is in the way, whether or not there is room today."""
    await install_crds(world.client)
    await limited_queue(world, "team", 1)
    async with world.scheduler():
        for name, gpus in (("a", 2), ("b", 32)):
            pod = await world.add_pod(name, gpus=gpus, schedulingGates=[{"name": "not-yet"}])
            labels = {"kai.scheduler/queue": "team"}
            patch = {"metadata": {"labels": labels}, "spec": {"schedulingGates": None}}
            await world.client.patch(POD, pod.metadata.name, patch, NS)
        await world.add_node("n1", gpus=8)
        await world.settle(3)
        assert await asking(world) == {"a": "WaitingForQuota", "b": "WaitingForQuota"}


@given_a_world
async def test_what_no_node_puts_right_asks_for_none(world: World) -> None:
    """A queue or a volume that does not exist has to be made; a gang of which pods are missing waits for them."""
    await install_crds(world.client)
    await limited_queue(world, "default-queue", 100)
    await world.add_node("n1", gpus=8)
    async with world.scheduler():
        volume = {"name": "data", "persistentVolumeClaim": {"claimName": "missing"}}
        await world.add_group("volumes", 2)
        await world.add_pod("volumes-0", gang="volumes", volumes=[volume])
        await world.add_pod("volumes-1", gang="volumes")
        await world.add_group("short", 3)
        await world.add_pod("short-0", gang="short", gpus=32)
        await world.add_pod("short-1", gang="short", gpus=32)
        lost = await world.add_pod("lost", schedulingGates=[{"name": "not-yet"}])
        patch = {"metadata": {"labels": {"kai.scheduler/queue": "none"}}, "spec": {"schedulingGates": None}}
        await world.client.patch(POD, lost.metadata.name, patch, NS)
        await world.settle(3)
        assert await asking(world) == {
            "lost": "Inadmissible",
            "short-0": "WaitingForPods",
            "short-1": "WaitingForPods",
            "volumes-0": "Inadmissible",
            "volumes-1": "Inadmissible",
        }


@given_a_world
async def test_a_gang_that_was_promised_nodes_asks_no_longer(world: World) -> None:
    """When what is in the way begins to leave, the pods that wait for its room take back that they need nodes."""
    await world.add_node("n1", gpus=2)
    async with world.scheduler():
        await world.add_pod("old", gpus=2, terminationGracePeriodSeconds=600)
        await world.settle(3)
        await world.add_gang("g", 2)
        await world.settle(3)
        assert await asking(world) == {"g-0": "Unschedulable*", "g-1": "Unschedulable*"}
        await world.client.delete(POD, "old", NS)
        await world.settle(3)
        assert await asking(world) == {"g-0": "WaitingForRoom", "g-1": "WaitingForRoom"}


@given_a_world
async def test_a_word_that_could_not_be_written_is_written_later(world: World) -> None:
    """Where the API server refuses to note one pod of a gang, the gang asks whole as soon as it can."""
    refusals = iter([status(403, "Forbidden")] * 2)
    world.transport.fault = lambda method, path: (
        next(refusals, None) if method == "PATCH" and path.endswith("/g-1/status") else None
    )
    async with world.scheduler():
        await world.add_gang("g", 3)
        await world.settle(3)
        assert "g-1" not in {name for name, said in (await asking(world)).items() if said}
        await world.settle(20)
        assert await asking(world) == {f"g-{number}": "Unschedulable*" for number in range(3)}
