"""A set that its backend rejects for the state of the cluster says so only for as long as that lasts."""

import asyncio

from spinney.api.conditions import find_condition
from spinney.api.grove import POD_CLIQUE_SET, PodCliqueSet
from spinney.api.volcano import QUEUE
from spinney.backends.profiles import Profile, Profiles
from spinney.kube.controller import RESYNC_SECONDS
from spinney.operator.operator import Settings
from spinney.operator.status.podcliqueset import CAPABILITIES_MET
from spinney.testing.builders import a_pod_clique_set
from tests.operator.harness import World, a_world
from tests.virtual_time import on_virtual_time

VOLCANO = Settings(profiles=Profiles((Profile("default-scheduler"), Profile("volcano")), "volcano"))


@on_virtual_time
async def test_a_set_whose_queue_opens_is_no_longer_rejected() -> None:
    """Volcano opened the queue after the set was made: with the next resync the set says that all is honoured."""
    async with a_world(VOLCANO, placing=False) as world:
        await world.client.create(QUEUE, {"metadata": {"name": "default"}, "spec": {}})
        await world.bring_up(a_pod_clique_set("model"))
        assert await _said(world) == ("False", "Rejected", "Volcano queue 'default' is not open yet; it must be Open")
        await world.client.patch(QUEUE, "default", {"status": {"state": "Open"}}, subresource="status")
        await asyncio.sleep(RESYNC_SECONDS * 1.2)
        assert (await _said(world))[:2] == ("True", "AllSupported")


async def _said(world: World) -> tuple[str, str, str]:
    pcs = await world.client.get(POD_CLIQUE_SET, "model", world.namespace, type=PodCliqueSet)
    condition = find_condition(pcs.status.conditions, CAPABILITIES_MET)
    assert condition is not None
    return condition.status, condition.reason, condition.message
