"""What the operator does when somebody is in its way."""

import asyncio
from typing import ClassVar

import pytest

from spinney.api.conditions import find_condition
from spinney.api.core import EVENT
from spinney.api.grove import POD_CLIQUE_SET, PodCliqueSet
from spinney.api.podgang import POD_GANG
from spinney.backends import Catalogue, Profile, Profiles
from spinney.backends.builtin import BACKENDS
from spinney.backends.interface import Degradation
from spinney.backends.spinney_scheduler import SpinneyScheduler
from spinney.kube.client import Client
from spinney.kube.crds import install_crds
from spinney.operator.operator import ComputeDomainsMissing, Operator, Settings
from spinney.operator.status.podcliqueset import CAPABILITIES_MET
from spinney.runtime import Runtime
from spinney.server import ApiServer
from spinney.sim.embedded.transport import InProcessTransport
from spinney.testing.builders import a_clique, a_pod_clique_set, a_scaling_group
from tests.operator.harness import World, a_world, given_a_world
from tests.virtual_time import on_virtual_time


async def reasons(world: World) -> set[str]:
    return {event["reason"] for event in (await world.client.list(EVENT, "test")).items}


@given_a_world
async def test_two_sets_do_not_share_a_gang(world: World) -> None:
    """Where the names of two sets come to the same gang, the second is refused it and told."""
    grouped = a_pod_clique_set("a", [a_clique("w")], [a_scaling_group("b", ["w"], 2, 1)])
    await world.bring_up(grouped)
    assert "a-0-b-0" in await world.names(POD_GANG)
    owner = (await world.gang("a-0-b-0")).metadata.owner_references
    await world.bring_up(a_pod_clique_set("a-0-b", [a_clique("x")]))
    assert (await world.gang("a-0-b-0")).metadata.owner_references == owner
    assert "NameTaken" in await reasons(world)


class Undecided(SpinneyScheduler):
    """A backend that cannot judge workloads."""

    name: ClassVar[str] = "undecided"

    async def validate_pod_clique_set(self, pcs: PodCliqueSet, old: PodCliqueSet | None) -> list[Degradation]:
        raise ConnectionError("the scheduler does not answer")


@on_virtual_time
async def test_a_backend_that_cannot_judge_does_not_stop_a_workload() -> None:
    """The set says that its capabilities are unknown, and its pods run."""
    catalogue = Catalogue()
    for backend in BACKENDS:
        catalogue.register(backend)
    catalogue.register(Undecided)
    profiles = Profiles((Profile("undecided"),), "undecided")
    async with a_world(Settings(profiles=profiles), catalogue=catalogue) as world:
        await world.bring_up(a_pod_clique_set("model"))
        assert len(await world.pods()) == 2
        pcs = await world.client.get(POD_CLIQUE_SET, "model", "test", type=PodCliqueSet)
        condition = find_condition(pcs.status.conditions, CAPABILITIES_MET)
        assert condition is not None
        assert (condition.status, condition.reason) == ("Unknown", "ValidationFailed")


@on_virtual_time
async def test_nvlink_without_compute_domains_stops_the_operator() -> None:
    """Multi-node NVLink on a cluster without ComputeDomains is an error at start."""
    runtime = Runtime.virtual()
    server = ApiServer(runtime)
    client = Client(InProcessTransport(server), runtime)
    async with server.running():
        await install_crds(client)
        with pytest.raises(ComputeDomainsMissing, match="autoMNNVLEnabled"):
            async with asyncio.timeout(5):
                await Operator(client, Settings(mnnvl_enabled=True)).run()
