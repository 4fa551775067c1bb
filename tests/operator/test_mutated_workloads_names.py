"""Two sets whose generated names meet: the second is told, and nothing of the first is touched."""

import asyncio
import json

import pytest

from spinney.api import labels as marks
from spinney.api.core import EVENT, POD
from spinney.api.grove import POD_CLIQUE, POD_CLIQUE_SCALING_GROUP, POD_CLIQUE_SET, PodCliqueSet
from spinney.api.podgang import POD_GANG
from spinney.api.schema.defaults import default_pod_clique_set
from spinney.api.struct import JSON, to_json
from spinney.operator.admission.rules import VALIDATE_SET
from spinney.testing.builders import a_clique, a_pod_clique_set, a_scaling_group
from tests.operator.harness import World, a_world
from tests.operator.test_admission import a_review
from tests.virtual_time import on_virtual_time

MEETING: dict[str, tuple[PodCliqueSet, PodCliqueSet, str]] = {
    "cliques of both": (
        a_pod_clique_set("a", [a_clique("b-0-c")]),
        a_pod_clique_set("a-0-b", [a_clique("c")]),
        "PodClique test/a-0-b-0-c",
    ),
    "a clique and a member of a group": (
        a_pod_clique_set("a", [a_clique("b-0-c-0-w")]),
        a_pod_clique_set("a-0-b", [a_clique("w")], [a_scaling_group("c", ["w"], 1, 1)]),
        "PodClique test/a-0-b-0-c-0-w",
    ),
    "scaling groups of both": (
        a_pod_clique_set("a", [a_clique("v")], [a_scaling_group("b-0-c", ["v"], 1, 1)]),
        a_pod_clique_set("a-0-b", [a_clique("w")], [a_scaling_group("c", ["w"], 1, 1)]),
        "PodCliqueScalingGroup test/a-0-b-0-c",
    ),
    "a scaled gang and a base gang": (
        a_pod_clique_set("a", [a_clique("w")], [a_scaling_group("b", ["w"], 2, 1)]),
        a_pod_clique_set("a-0-b", [a_clique("x")]),
        "PodGang test/a-0-b-0",
    ),
}


async def all_of(world: World, pcs: PodCliqueSet) -> dict[str, str]:
    """Return the version of everything that is part of a set."""
    found: dict[str, str] = {}
    for resource in (POD_CLIQUE, POD_CLIQUE_SCALING_GROUP, POD_GANG, POD):
        selector = f"{marks.PART_OF}={pcs.metadata.name}"
        listing = await world.client.list(resource, "test", label_selector=selector)
        found |= {f"{resource.kind} {e['metadata']['name']}": e["metadata"]["resourceVersion"] for e in listing.items}
    return found


async def told(world: World, pcs: PodCliqueSet) -> tuple[list[str], list[str]]:
    """Return what a set says of its latest errors, and what its events say of names."""
    stored: JSON = await world.client.get(POD_CLIQUE_SET, pcs.metadata.name, "test")
    events = (await world.client.list(EVENT, "test")).items
    about = [e for e in events if (e["involvedObject"]["name"], e["reason"]) == (pcs.metadata.name, "NameTaken")]
    errors = stored.get("status", {}).get("lastErrors", ())
    return [error["description"] for error in errors], [event["message"] for event in about]


@pytest.mark.parametrize("names", MEETING)
@on_virtual_time
async def test_the_second_set_is_told(names: str) -> None:
    """Its last errors and an event say which object of whom is in the way, and what to do."""
    earlier, later, taken = MEETING[names]
    async with a_world() as world:
        await world.bring_up(earlier)
        before = await all_of(world, earlier)
        await world.bring_up(later)

        assert await all_of(world, earlier) == before
        (error,), (event,) = await told(world, later)
        needed = f"PodCliqueSet {later.metadata.name} and belongs to PodCliqueSet {earlier.metadata.name}; rename"
        assert f"{taken} is needed for {needed}" in error
        assert event == error
        assert await told(world, earlier) == ([], [])


@on_virtual_time
async def test_of_two_sets_made_at_once_one_is_told() -> None:
    """Where neither is known when the other begins, the API server decides, and the loser says so."""
    one, other, taken = MEETING["cliques of both"]
    async with a_world() as world:
        await asyncio.gather(world.apply(one), world.apply(other))
        await world.settle()
        (said,) = [error for pcs in (one, other) for error in (await told(world, pcs))[0]]
        assert taken in said


@on_virtual_time
async def test_admission_warns_of_a_name_that_is_taken() -> None:
    """Who applies the second set is told at once that it will not come up."""
    earlier, later, taken = MEETING["cliques of both"]
    async with a_world() as world:
        await world.bring_up(earlier)
        review = a_review("CREATE", to_json(default_pod_clique_set(later)))
        answer = json.loads(await world.operator.admission.answer(VALIDATE_SET, review))["response"]
        assert answer["allowed"], answer
        assert any(taken in warning for warning in answer["warnings"])


@on_virtual_time
async def test_a_set_that_is_made_anew_takes_its_names_again() -> None:
    """What a deleted set of the same name has left behind is not somebody else's."""
    pcs = a_pod_clique_set("model", [a_clique("worker")])
    async with a_world() as world:
        await world.bring_up(pcs)
        await world.client.delete(POD_CLIQUE_SET, "model", "test")
        await world.bring_up(pcs)
        assert await told(world, pcs) == ([], [])
