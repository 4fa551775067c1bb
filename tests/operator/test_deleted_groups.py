"""What a backend made for a gang, and somebody deleted, is made again without a restart; the gang could not start."""

import asyncio

import pytest

from spinney.api import labels as marks
from spinney.api.apiextensions import CUSTOM_RESOURCE_DEFINITION
from spinney.api.core import POD, Pod
from spinney.api.kai import POD_GROUP
from spinney.api.struct import JSON
from spinney.backends.profiles import Profile, Profiles
from spinney.backends.told import TOLD_SECONDS
from spinney.kube.controller import RESYNC_SECONDS
from spinney.kube.crds import install_crds
from spinney.operator.operator import Settings
from spinney.operator.pod_states import has_gate
from spinney.testing.builders import a_clique, a_pod_clique_set, a_pod_spec
from tests.conftest import Cluster
from tests.grouping.world import a_world as a_grouping_world
from tests.operator.harness import World, a_world
from tests.virtual_time import on_virtual_time

KAI = Settings(profiles=Profiles((Profile("default-scheduler"), Profile("kai-scheduler")), "kai-scheduler"))
A_RESYNC = RESYNC_SECONDS * 1.2


@pytest.mark.parametrize("how", ["by hand", "with its CRD"])
@on_virtual_time
async def test_a_group_that_was_deleted_is_made_again(how: str) -> None:
    """A gang of KAI that waits for room has its PodGroup back after the next resync, and nothing else is written."""
    async with a_world(KAI, placing=False) as world:
        spec = a_pod_spec(scheduler="kai-scheduler")
        await world.apply(a_pod_clique_set("model", [a_clique("a", 2, pod_spec=spec)], labels={marks.KAI_QUEUE: "q"}))
        await world.settle()
        assert [has_gate(pod) for pod in (await world.client.list(POD, "test", type=Pod)).items] == [False, False]
        assert await world.names(POD_GROUP) == ["model-0"]
        await _delete_group(world, how)
        assert await world.names(POD_GROUP) == []
        await asyncio.sleep(A_RESYNC)
        assert await world.names(POD_GROUP) == ["model-0"]
        version = await _version(world)
        await asyncio.sleep(A_RESYNC)
        assert await _version(world) == version


@pytest.mark.parametrize("cluster_name", ["embedded"])
async def test_a_group_of_a_job_that_was_deleted_is_made_again(cluster: Cluster) -> None:
    """So it is with the group that the grouper had made for a Job."""
    async with a_grouping_world(cluster, every_backend=True) as world:
        await world.job("big", 6, least=6, scheduler="kai-scheduler")
        await world.settle()
        (group,) = (await world.client.list(POD_GROUP, world.namespace)).items
        await world.client.delete(POD_GROUP, group["metadata"]["name"], world.namespace)
        await asyncio.sleep(A_RESYNC)
        (again,) = (await world.client.list(POD_GROUP, world.namespace)).items
        assert again["spec"] == group["spec"]


def test_a_backend_is_told_again_within_each_resync() -> None:
    """The pauses between resyncs differ by a tenth."""
    assert TOLD_SECONDS < RESYNC_SECONDS * 0.9


async def _delete_group(world: World, how: str) -> None:
    if how == "by hand":
        await world.client.delete(POD_GROUP, "model-0", "test")
        return
    name = f"{POD_GROUP.plural}.{POD_GROUP.group}"
    crd: JSON = await world.client.get(CUSTOM_RESOURCE_DEFINITION, name)
    await world.client.delete(CUSTOM_RESOURCE_DEFINITION, name)
    await asyncio.sleep(30)
    await install_crds(world.client, [{**crd, "metadata": {"name": name}}])


async def _version(world: World) -> str:
    found: JSON = await world.client.get(POD_GROUP, "model-0", "test")
    return str(found["metadata"]["resourceVersion"])
