"""A scheduler starts without a kind that cannot be listed, says so, and takes it in when it can be."""

import pytest
from structlog.testing import capture_logs

from spinney.api import kai
from spinney.api.core import NAMESPACE
from spinney.api.policy import POD_DISRUPTION_BUDGET
from spinney.api.resource import Resource
from spinney.api.resource_claims import RESOURCE_CLAIM
from spinney.api.scheduling import PRIORITY_CLASS
from spinney.api.workload_v1beta1 import POD_GROUP
from spinney.kube.crds import install_crds
from spinney.kube.manager import OPTIONAL_SECONDS
from spinney.kube.transport import Response
from tests.scheduler.process.world import World, given_a_world, status


@pytest.mark.parametrize("refusal", [status(403, "Forbidden"), status(500, "InternalError")], ids=["403", "500"])
@given_a_world
async def test_a_kind_that_cannot_be_listed_keeps_no_scheduler_from_starting(world: World, refusal: Response) -> None:
    """Pods that need none of it are placed; those that need it wait, and are placed once it can be listed."""
    await world.add_node("n1")
    world.transport.fault = lambda method, path: refusal if path == POD_GROUP.path(None) else None
    with capture_logs() as logs:
        async with world.scheduler():
            await world.add_pod("alone")
            await world.add_gang("gang", 2)
            await world.settle(OPTIONAL_SECONDS + 30)
            assert await world.places() == {"alone": "n1", "gang-0": "", "gang-1": ""}
            world.transport.fault = lambda method, path: None
            await world.settle(60)
            assert await world.places() == {"alone": "n1", "gang-0": "n1", "gang-1": "n1"}
    (told,) = [line for line in logs if line["event"].startswith("started without kinds")]
    assert list(told["problems"]) == [str(POD_GROUP)]


@pytest.mark.parametrize(
    "needed", [PRIORITY_CLASS, POD_DISRUPTION_BUDGET, NAMESPACE, RESOURCE_CLAIM, kai.QUEUE], ids=str
)
@given_a_world
async def test_nothing_is_decided_before_it_is_known_who_may_be_disturbed(world: World, needed: Resource) -> None:
    """Without priorities a gang that nobody may preempt would count as any other; without queues none has a limit."""
    await install_crds(world.client)
    await world.add_node("n1")
    world.transport.fault = lambda method, path: status(403, "Forbidden") if path == needed.path(None) else None
    async with world.scheduler() as process:
        await world.add_pod("alone")
        await world.settle(10 * OPTIONAL_SECONDS)
        assert process.cycles == 0
        assert await world.places() == {"alone": ""}
        world.transport.fault = lambda method, path: None
        await world.settle(60)
        assert await world.places() == {"alone": "n1"}
