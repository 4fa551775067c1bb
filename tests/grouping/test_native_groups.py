"""Pods of kube-scheduler, which learns their group only when they are made."""

import pytest

from spinney.api.podgang import POD_GANG
from spinney.api.workload_v1beta1 import POD_GROUP
from tests.conftest import Cluster
from tests.grouping.world import World, a_world

pytestmark = pytest.mark.parametrize("cluster_name", ["embedded"])

SERVED = "{kind: GrouperConfiguration, schedulerNames: [default-scheduler]}"


async def nothing_is_written(world: World) -> bool:
    """Tell whether there is neither a PodGang nor a native PodGroup."""
    found = [(await world.client.list(kind, world.namespace)).items for kind in (POD_GANG, POD_GROUP)]
    return found == [(), ()]


async def test_pods_that_exist_are_told_that_they_cannot_join(cluster: Cluster) -> None:
    """Each of three pods that were to start as one says why they do not, and what to do; two start on two nodes."""
    async with a_world(cluster, every_backend=True, configuration=SERVED, nodes=2) as world:
        await world.job("train", 3, least=3, scheduler="default-scheduler")
        await world.until(lambda: len(world.placed("train")) == 2)
        await world.settle()
        said = await world.events("CannotJoin")
        assert len(said) == 3
        assert all("default-scheduler learns the group of a pod only when the pod is made" in each for each in said)
        assert all("the gang of Job train is not kept together" in each for each in said)
        assert all("spec.schedulingGroup" in each for each in said)
        assert await nothing_is_written(world)
        assert world.counted("spinney_grouper_refusals_total", kind="batch/Job") == 3


async def test_pods_that_need_nobody_else_are_told_nothing(cluster: Cluster) -> None:
    """A Job that asks for no gang loses nothing, and its pods say nothing."""
    async with a_world(cluster, every_backend=True, configuration=SERVED, nodes=2) as world:
        await world.job("sweep", 2, scheduler="default-scheduler")
        await world.until(lambda: len(world.placed("sweep")) == 2)
        await world.settle()
        assert await world.events("CannotJoin") == []
        assert await nothing_is_written(world)


async def test_pods_that_name_a_native_group_are_left_to_it(cluster: Cluster) -> None:
    """A template that names a PodGroup has its gang: the grouper says and writes nothing."""
    async with a_world(cluster, every_backend=True, configuration=SERVED, nodes=2) as world:
        policy = {"schedulingPolicy": {"gang": {"minCount": 2}}}
        await world.client.create(POD_GROUP, {"metadata": {"name": "pair"}, "spec": policy}, world.namespace)
        owner = await world.job("train", 2, least=2, made=0)
        for number in range(2):
            await world.pod(f"train-{number}", owner, scheduler="default-scheduler", group={"podGroupName": "pair"})
        await world.until(lambda: len(world.placed("train")) == 2)
        await world.settle()
        assert await world.events("CannotJoin") == []
        assert (await world.client.list(POD_GANG, world.namespace)).items == ()
        assert world.counted("spinney_grouper_foreign_pods_total", group="kubernetes") == 2
