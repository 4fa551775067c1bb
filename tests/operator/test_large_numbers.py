"""One tenant's numbers: how much a set may ask for, and what becomes of numbers that nobody could serve."""

import asyncio
import json
from typing import Any

import pytest

from spinney.api.core import POD
from spinney.api.grove import (
    POD_CLIQUE,
    POD_CLIQUE_SCALING_GROUP,
    POD_CLIQUE_SET,
    PodClique,
    PodCliqueScalingGroup,
    PodCliqueSet,
)
from spinney.api.podgang import POD_GANG
from spinney.api.resource import Resource
from spinney.api.schema.validate_generated_names import validate_generated_names
from spinney.api.schema.validate_size import Size, SizeLimits, size_of, validate_size
from spinney.api.struct import encode
from spinney.operator.admission.rules import VALIDATE_SET
from spinney.operator.desired.gangs import expected_gangs
from spinney.operator.desired.layout import Layout
from spinney.operator.operator import Settings
from spinney.testing.builders import a_clique, a_pod_clique_set, a_scaling_group
from tests.operator.harness import SPINNEY, World, a_world
from tests.operator.test_admission import refused
from tests.virtual_time import on_virtual_time

BILLIONS = 2_000_000_000
TIGHT = Settings(profiles=SPINNEY, limits=SizeLimits(pods=20, gangs=6))


def workload(*, replicas: int = 1, a: int = 2, copies: int = 2) -> PodCliqueSet:
    """Return a set with a standalone clique and a scaling group of two cliques with four pods."""
    cliques = [a_clique("a", a), a_clique("b", 1), a_clique("c", 3)]
    return a_pod_clique_set("model", cliques, [a_scaling_group("sg", ["b", "c"], copies, 1)], replicas=replicas)


async def errors_of(world: World, resource: Resource, name: str, kind: type[Any]) -> str:
    """Return what an object says about its last reconcile."""
    found = await world.client.get(resource, name, "test", type=kind)
    return "; ".join(f"{each.code}: {each.description}" for each in found.status.last_errors)


async def scale(world: World, resource: Resource, name: str, replicas: int) -> None:
    """Scale an object, and wait until what can be done about it is done."""
    await world.client.patch(resource, name, {"spec": {"replicas": replicas}}, "test")
    await world.settle()


@pytest.mark.parametrize(
    ("pcs", "message"),
    [
        (workload(replicas=BILLIONS), r"spec.replicas: .*20000000000 pods, and limits.podsPerSet .* allows 20000"),
        (workload(a=30_000_000), r"cliques\[0\].spec.replicas: .*30000008 pods, and limits.podsPerSet"),
        (workload(copies=BILLIONS), r"podCliqueScalingGroups\[0\].replicas: .*limits.podsPerSet"),
        (
            a_pod_clique_set("model", [a_clique("a", 1)], replicas=15_000),
            r"spec.replicas: .*15000 gangs, and limits.gangsPerSet .* allows 10000",
        ),
    ],
)
@on_virtual_time
async def test_numbers_beyond_the_limits_are_refused(pcs: PodCliqueSet, message: str) -> None:
    """A set that comes to more pods or gangs than allowed is refused at once, with the limit and the largest number."""
    await refused(pcs, message, Settings())


def test_the_size_of_a_set_is_that_of_what_is_made_for_it() -> None:
    """The size worked out by arithmetic is the number of gangs and pods the plans amount to."""
    for pcs in (workload(), workload(replicas=3, a=5, copies=4), workload(replicas=0)):
        plans = expected_gangs(Layout(pcs), {})
        pods = sum(place.template.spec.replicas or 0 for plan in plans for place in plan.places)
        assert size_of(pcs.spec) == Size(pods=pods, gangs=len(plans))


def test_a_set_stored_above_the_limits_may_shrink() -> None:
    """A set from before the limits can be changed as long as it does not grow."""
    limits, stored = SizeLimits(pods=5, gangs=5), workload(replicas=3)
    assert validate_size(workload(replicas=2).spec, limits, stored.spec) == []
    assert validate_size(stored.spec, limits, stored.spec) == []
    assert validate_size(workload(replicas=4).spec, limits, stored.spec) != []


@on_virtual_time
async def test_the_scale_of_a_set_is_judged_too() -> None:
    """A review of the scale subresource, which does not show the set, is refused by what the operator knows of it."""
    review = {
        "uid": "1",
        "kind": {"group": "autoscaling", "version": "v1", "kind": "Scale"},
        "resource": {"group": "grove.io", "version": "v1alpha1", "resource": "podcliquesets"},
        "subResource": "scale",
        "name": "model",
        "namespace": "test",
        "operation": "UPDATE",
        "object": {"spec": {"replicas": BILLIONS}},
        "oldObject": {"spec": {"replicas": 1}},
    }
    async with a_world(TIGHT) as world:
        await world.bring_up(workload())
        answer = await world.operator.admission.answer(VALIDATE_SET, encode({"request": review}))
    response = json.loads(answer)["response"]
    assert (response["allowed"], response["status"]["code"]) == (False, 422)
    assert "limits.podsPerSet" in response["status"]["message"]


@on_virtual_time
async def test_a_set_scaled_beyond_its_limits_keeps_what_it_has() -> None:
    """Where admission was not asked, nothing is made for the new number and the set says why; less is served again."""
    async with a_world(TIGHT) as world:
        await world.bring_up(workload())
        assert len(await world.pods()) == 10
        await scale(world, POD_CLIQUE_SET, "model", BILLIONS)
        assert len(await world.pods()) == 10
        told = await errors_of(world, POD_CLIQUE_SET, "model", PodCliqueSet)
        assert told.startswith("TooLarge: nothing more is made: the set comes to 20000000000 pods")
        await scale(world, POD_CLIQUE_SET, "model", 2)
        assert len(await world.pods()) == 20
        assert await errors_of(world, POD_CLIQUE_SET, "model", PodCliqueSet) == ""


@on_virtual_time
async def test_a_clique_scaled_beyond_the_limits_stays_as_it_is() -> None:
    """Thirty million replicas of a PodClique make no pod; the PodClique says so, and others of the set are kept up."""
    async with a_world(TIGHT) as world:
        await world.bring_up(workload())
        await scale(world, POD_CLIQUE, "model-0-a", 4)
        assert len(await world.pods()) == 12
        await scale(world, POD_CLIQUE, "model-0-a", 30_000_000)
        assert len(await world.pods()) == 12
        told = await errors_of(world, POD_CLIQUE, "model-0-a", PodClique)
        assert "asks for 30000000 replicas and is kept at 4" in told
        assert "limits.podsPerSet" in told
        victim = next(pod for pod in await world.pods() if "-sg-" in pod.metadata.name)
        await world.client.delete(POD, victim.metadata.name, "test")
        await world.settle()
        assert len(await world.pods()) == 12
        await scale(world, POD_CLIQUE, "model-0-a", 5)
        await asyncio.sleep(120)
        await world.settle()
        assert len(await world.pods()) == 13
        assert await errors_of(world, POD_CLIQUE, "model-0-a", PodClique) == ""


@on_virtual_time
async def test_a_scaling_group_scaled_beyond_the_limits_stays_as_it_is() -> None:
    """Thirty million replicas of a scaling group make no gang and take none away."""
    async with a_world(TIGHT) as world:
        await world.bring_up(workload())
        await scale(world, POD_CLIQUE_SCALING_GROUP, "model-0-sg", 3)
        gangs = await world.names(POD_GANG)
        assert len(gangs) == 3
        await scale(world, POD_CLIQUE_SCALING_GROUP, "model-0-sg", 30_000_000)
        assert await world.names(POD_GANG) == gangs
        assert len(await world.pods()) == 14
        told = await errors_of(world, POD_CLIQUE_SCALING_GROUP, "model-0-sg", PodCliqueScalingGroup)
        assert "asks for 30000000 replicas and is kept at 3" in told
        await scale(world, POD_CLIQUE_SCALING_GROUP, "model-0-sg", 1)
        await asyncio.sleep(120)
        await world.settle()
        assert len(await world.pods()) == 6


def test_thousands_of_cliques_are_judged_without_comparing_each_with_each() -> None:
    """A set of many cliques and scaling groups is judged in one pass; a name made twice is still found."""
    cliques = [a_clique(f"c{i}") for i in range(2000)]
    groups = [a_scaling_group(f"g{k}", [f"c{k * 100 + i}" for i in range(50)]) for k in range(20)]
    twice = a_clique("g3-7-c320")
    faults = validate_generated_names(a_pod_clique_set("m", [*cliques, twice], groups))
    assert [fault.path for fault in faults] == ["spec.template.cliques[2000].name"]
