"""Who is told that pods were bound: each pod, or the gang."""

from typing import Literal

import pytest

from spinney.api.core import EVENT
from tests.scheduler.process.world import NS, World, given_a_world


@pytest.mark.parametrize(
    ("bind_events", "told"),
    [
        ("pods", {"Pod/gang-0", "Pod/gang-1", "Pod/gang-2", "Pod/alone"}),
        ("gangs", {"PodGroup/gang", "Pod/alone"}),
    ],
)
@given_a_world
async def test_binds_are_told_of_each_pod_or_of_the_gang(
    world: World, bind_events: Literal["pods", "gangs"], told: set[str]
) -> None:
    """Every pod has an event about its node; where gangs are told, a gang has one for all, and a single pod its own."""
    await world.add_node("n1")
    await world.add_gang("gang", 3)
    await world.add_pod("alone")
    async with world.scheduler(bind_events=bind_events):
        await world.settle(10)
        assert set((await world.places()).values()) == {"n1"}

    events = [event for event in (await world.client.list(EVENT, NS)).items if event["reason"] == "Scheduled"]
    assigned = {
        f"{event['involvedObject']['kind']}/{event['involvedObject']['name']}": event["message"]
        for event in events
        if event["message"].startswith("Successfully assigned")
    }
    assert assigned.keys() == told
    if bind_events == "gangs":
        assert assigned["PodGroup/gang"] == "Successfully assigned 3 of 3 pods to n1"
