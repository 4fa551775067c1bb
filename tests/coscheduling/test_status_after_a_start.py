"""What PodGroups say after the coscheduler was away, whatever it had not come to say before it went."""

from contextlib import AbstractAsyncContextManager

import pytest

from spinney.api import workload_v1beta1
from spinney.api.apiextensions import CUSTOM_RESOURCE_DEFINITION
from spinney.api.conditions import is_true
from spinney.api.coscheduling import POD_GROUP
from spinney.kube.errors import ConnectionFailed
from spinney.kube.transport import Request, Response, StreamingResponse, Transport
from tests.conftest import Cluster

from .test_native_gangs import a_native_group, a_native_pod
from .test_pod_group_kind import condition
from .world import World, a_group, a_node, a_pod, a_world

pytestmark = pytest.mark.parametrize("cluster_name", ["embedded"], indirect=True)

STATUS = "podgroups/"


class Watched:
    """A transport that counts the writes of PodGroups' status, and loses them while it is ``cut``."""

    def __init__(self, inner: Transport, *, cut: bool = False) -> None:
        self._inner = inner
        self._cut = cut
        self.writes = 0

    async def request(self, request: Request) -> Response:
        """Carry a request, unless it is lost."""
        if request.method == "PATCH" and STATUS in request.path:
            self.writes += 1
            if self._cut:
                raise ConnectionFailed("cut")
        return await self._inner.request(request)

    def stream(self, request: Request) -> AbstractAsyncContextManager[StreamingResponse]:
        return self._inner.stream(request)

    async def close(self) -> None:
        await self._inner.close()


async def bind(world: World, *pods: str, node: str = "n1") -> None:
    """Bind pods as another scheduler would."""
    for name in pods:
        await world.client.bind(world.namespace, name, None, node)


def says_scheduled(world: World, *groups: str) -> bool:
    """Tell whether groups say that they are scheduled, and since when they were tried."""
    return all(condition(world, name)[0] == "True" and world.status(name).schedule_start_time for name in groups)


async def test_what_a_crash_kept_from_being_said_is_said_after_the_next_start(cluster: Cluster) -> None:
    """Groups that were placed by a coscheduler whose writes were lost have condition and start once another runs."""
    async with a_world(cluster) as world:
        await world.nodes(a_node("n1", cpu="64"))
        names = [f"gang-{number}" for number in range(12)]
        for name in names:
            await world.gang(name, 2)
        world.transport = Watched(world.client.transport, cut=True)
        async with world.scheduling():
            await world.until(lambda: len(world.bound()) == 24)
        assert not any(world.status(name).schedule_start_time for name in names)
        bound_at = world.pods["gang-0-0"].condition("PodScheduled")
        await world.settle(60)

        world.transport = None
        async with world.scheduling():
            await world.until(lambda: says_scheduled(world, *names))
        assert bound_at is not None
        assert world.status("gang-0").schedule_start_time == bound_at.last_transition_time


async def test_what_waits_to_be_written_is_written_before_a_stop(cluster: Cluster) -> None:
    """A coscheduler that is told to go when the first pods are bound leaves no group that it bound without a word."""
    async with a_world(cluster) as world:
        await world.nodes(a_node("n1", cpu="640"))
        names = [f"gang-{number}" for number in range(60)]
        for name in names:
            await world.gang(name, 1)
        async with world.scheduling():
            await world.until(lambda: bool(world.bound()))
        bound = [name for name in names if world.bound(f"{name}-")]
        await world.until(lambda: says_scheduled(world, *bound))
        assert len(bound) > 1


async def test_a_group_that_others_bound_meanwhile_no_longer_says_that_it_waits(cluster: Cluster) -> None:
    """The condition of a group whose members got their nodes while no coscheduler ran turns once one runs."""
    async with a_world(cluster) as world:
        await world.nodes(a_node("n1", cpu="1"))
        await world.gang("gang", 2)
        async with world.scheduling():
            await world.until(lambda: condition(world, "gang")[0] == "False")
        await bind(world, "gang-0", "gang-1")
        async with world.scheduling():
            await world.until(lambda: says_scheduled(world, "gang"))


async def test_a_group_that_others_bind_no_longer_says_that_it_waits(cluster: Cluster) -> None:
    """The same, while it runs; and what it waited for before is not said again when it loses a member."""
    async with a_world(cluster) as world, world.scheduling():
        await world.nodes(a_node("n1", cpu="1"))
        await world.gang("gang", 2)
        await world.until(lambda: condition(world, "gang")[0] == "False")
        await bind(world, "gang-0", "gang-1")
        await world.until(lambda: says_scheduled(world, "gang"))


async def test_a_group_that_is_created_again_says_that_its_members_have_their_nodes(cluster: Cluster) -> None:
    """A PodGroup that replaces one whose members are bound has condition and start, none before its own creation."""
    async with a_world(cluster) as world, world.scheduling():
        await world.nodes(a_node("n1"))
        await world.gang("gang", 2)
        await world.until(lambda: says_scheduled(world, "gang"))
        await world.settle(60)
        await world.client.delete(POD_GROUP, "gang", world.namespace)
        await world.until(lambda: "gang" not in world.groups)
        await world.client.create(POD_GROUP, a_group("gang", 2), world.namespace)
        await world.until(lambda: says_scheduled(world, "gang"))
        group = world.groups["gang"]
        assert group.status.schedule_start_time == group.metadata.creation_timestamp


async def test_native_groups_are_put_right_too(cluster: Cluster) -> None:
    """A group of Kubernetes' own whose members were bound while no coscheduler ran says so once one runs."""
    kind = workload_v1beta1.POD_GROUP
    async with a_world(cluster) as world:
        await world.nodes(a_node("n1"))
        await world.client.create(kind, a_native_group("gang", 2), world.namespace)
        await world.create(*(a_native_pod(f"gang-{number}", "gang") for number in range(2)))
        await bind(world, "gang-0", "gang-1")
        async with world.scheduling():
            await world.settle()
            found = await world.client.get(kind, "gang", world.namespace, type=workload_v1beta1.PodGroup)
        assert is_true(found.status.conditions, workload_v1beta1.INITIALLY_SCHEDULED)


async def test_what_is_right_is_not_written_again(cluster: Cluster) -> None:
    """A coscheduler that finds every group saying what is so writes to none of them."""
    async with a_world(cluster) as world:
        await world.nodes(a_node("n1", cpu="64"))
        names = [f"gang-{number}" for number in range(20)]
        for name in names:
            await world.gang(name, 2)
        async with world.scheduling():
            await world.until(lambda: says_scheduled(world, *names))
            await world.until(lambda: all(world.status(name).scheduled == 2 for name in names))
        watched = world.transport = Watched(world.client.transport)
        async with world.scheduling():
            await world.settle()
        assert watched.writes == 0


async def test_where_conditions_are_not_kept_groups_are_not_told_again(cluster: Cluster) -> None:
    """With scheduler-plugins' own CRD, which has no conditions, a start neither writes to nor tells of every group."""
    async with a_world(cluster) as world:
        definition = await world.client.get(CUSTOM_RESOURCE_DEFINITION, "podgroups.scheduling.x-k8s.io")
        schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        del schema["properties"]["status"]["properties"]["conditions"]
        await world.client.replace(CUSTOM_RESOURCE_DEFINITION, definition)
        await world.nodes(a_node("n1", cpu="64"))
        names = [f"gang-{number}" for number in range(20)]
        for name in names:
            await world.gang(name, 1)
        async with world.scheduling():
            await world.until(lambda: all(world.status(name).schedule_start_time for name in names))
            await world.until(lambda: all(world.status(name).scheduled == 1 for name in names))
            await world.events("Scheduled", "PodGroup", least=20)
        watched = world.transport = Watched(world.client.transport)
        async with world.scheduling():
            await world.settle()
            assert watched.writes < len(names) / 2
            await world.gang("new", 1)
            await world.events("Scheduled", "PodGroup", least=21)


async def test_groups_of_other_schedulers_are_left_to_them(cluster: Cluster) -> None:
    """Of a group whose pods all ask for another scheduler neither condition nor start is written."""
    async with a_world(cluster) as world:
        await world.nodes(a_node("n1"))
        await world.group("gang", 1)
        await world.create(a_pod("gang-0", group="gang", scheduler="another"))
        await bind(world, "gang-0")
        async with world.scheduling():
            await world.settle()
        assert world.status("gang").conditions == ()
        assert world.status("gang").schedule_start_time is None
