"""Pods that the grouper is asked to leave alone, or that it does not select, are placed one by one."""

import pytest

from spinney.api.core import NAMESPACE, POD
from spinney.api.labels import GROUPED, POD_GANG
from spinney.api.struct import JSON
from tests.conftest import Cluster
from tests.grouping.test_controller import A_DEPLOYMENT, A_JOB, DEPLOYMENT
from tests.grouping.world import JOB, World, a_world

pytestmark = pytest.mark.parametrize("cluster_name", ["embedded"])

SKIP = {"kai.scheduler/skip-podgrouper": "true"}
SIX: JSON = {"kai.scheduler/batch-min-member": "6"}
SPEC: JSON = {"parallelism": 6, "completions": 6, **A_JOB}


async def labels_of(world: World, name: str) -> dict[str, str]:
    """Return the labels of a pod."""
    pod = await world.client.get(POD, name, world.namespace)
    return dict(pod["metadata"].get("labels", {}))


async def pods_of(world: World, owner: JSON, count: int) -> None:
    """Create the pods of a workload."""
    for number in range(count):
        await world.pod(f"{owner['name']}-{number}", owner)


@pytest.mark.parametrize("at_creation", [True, False])
@pytest.mark.parametrize("least", ["6", "no number"])
async def test_pods_whose_owner_asks_for_it_are_placed_one_by_one(
    cluster: Cluster, least: str, *, at_creation: bool
) -> None:
    """No rule is applied, not even one that would refuse; nothing but that they are alone is written on them."""
    async with a_world(cluster, at_creation=at_creation) as world:
        annotations = {**SKIP, "kai.scheduler/batch-min-member": least}
        owner = await world.owner(JOB, "free", SPEC, annotations=annotations, labels={"kai.scheduler/queue": "q"})
        await pods_of(world, owner, 6)
        await world.until(lambda: len(world.placed()) == 4)
        await world.settle()
        assert [await labels_of(world, f"free-{number}") for number in range(6)] == [{GROUPED: "alone"}] * 6
        assert world.floors() == {}
        assert await world.events("GroupingRefused") == []
        assert world.counted("spinney_grouper_pods_grouped_total", kind="batch/Job") == 0


async def test_pods_are_grouped_when_their_owner_no_longer_asks_to_be_left_alone(cluster: Cluster) -> None:
    """Those of a Job are a gang from then on; those of a Deployment get its queue."""
    async with a_world(cluster) as world:
        job = await world.owner(JOB, "free", SPEC, annotations={**SKIP, "kai.scheduler/batch-min-member": "2"})
        web = await world.owner(DEPLOYMENT, "web", A_DEPLOYMENT, annotations=SKIP, labels={"kai.scheduler/queue": "q"})
        await world.pod("free-0", job, gpus=9)
        await world.pod("web-0", web, gpus=9)
        await world.settle()
        unsaid = {"metadata": {"annotations": dict.fromkeys(SKIP)}}
        await world.client.patch(JOB, "free", unsaid, world.namespace)
        await world.client.patch(DEPLOYMENT, "web", unsaid, world.namespace)
        await world.until(lambda: world.floors("free") == {"default": 2})
        await world.settle()
        assert POD_GANG in await labels_of(world, "free-0")
        assert (await labels_of(world, "web-0"))["kai.scheduler/queue"] == "q"


async def test_a_gang_whose_owner_comes_to_ask_for_it_is_one_no_more(cluster: Cluster) -> None:
    """Its pods waited for each other, and what fits starts."""
    async with a_world(cluster) as world:
        owner = await world.owner(JOB, "big", SPEC, annotations=SIX)
        await pods_of(world, owner, 6)
        await world.until(lambda: world.floors("big") == {"default": 6})
        await world.settle()
        assert world.placed() == []
        await world.client.patch(JOB, "big", {"metadata": {"annotations": SKIP}}, world.namespace)
        await world.until(lambda: len(world.placed()) == 4 and world.floors() == {})


async def test_nothing_is_remembered_of_a_pod_that_was_left_alone_and_is_gone(cluster: Cluster) -> None:
    """The grouper's memory does not grow with what it does not group."""
    async with a_world(cluster) as world:
        await pods_of(world, await world.owner(JOB, "free", SPEC, annotations=SKIP), 1)
        await world.until(lambda: len(world.placed()) == 1)
        await world.client.delete(POD, "free-0", world.namespace, grace_period_seconds=0)
        await world.settle()
        assert world.grouper is not None
        assert not world.grouper._membership._by_owner


@pytest.mark.parametrize("selector", ["podLabels", "namespaceLabels"])
async def test_pods_that_are_not_selected_are_placed_one_by_one(cluster: Cluster, selector: str) -> None:
    """A scheduler that waits for the grouper does not wait for what it will not do."""
    configuration = f"{{kind: GrouperConfiguration, {selector}: {{grouped: here}}}}"
    async with a_world(cluster, configuration=configuration) as world:
        await pods_of(world, await world.owner(JOB, "free", SPEC, annotations=SIX), 6)
        await world.until(lambda: len(world.placed()) == 4)
        assert world.floors() == {}


async def test_pods_are_grouped_when_their_namespace_comes_to_be_selected(cluster: Cluster) -> None:
    """Those that wait become the gang that their workload asks for."""
    configuration = "{kind: GrouperConfiguration, namespaceLabels: {grouped: here}}"
    async with a_world(cluster, configuration=configuration) as world:
        await world.pod("free-0", await world.owner(JOB, "free", SPEC, annotations=SIX), gpus=9)
        await world.settle()
        await world.client.patch(NAMESPACE, world.namespace, {"metadata": {"labels": {"grouped": "here"}}})
        await world.until(lambda: world.floors("free") == {"default": 6})
