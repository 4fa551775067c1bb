"""Scaling sets, scaling groups and cliques, out and in, and what remains afterwards."""

from spinney.api import labels as marks
from spinney.api.autoscaling import HORIZONTAL_POD_AUTOSCALER
from spinney.api.conditions import find_condition, is_true
from spinney.api.core import EVENT, POD, RESOURCE_QUOTA, SECRET, SERVICE, SERVICE_ACCOUNT
from spinney.api.grove import (
    EXPLICIT,
    POD_CLIQUE,
    POD_CLIQUE_SCALING_GROUP,
    POD_CLIQUE_SET,
    AutoScalingConfig,
    PodClique,
    PodCliqueSet,
)
from spinney.api.podgang import INITIALIZED, POD_GANG
from spinney.api.rbac import ROLE, ROLE_BINDING
from spinney.api.resource import Resource
from spinney.operator.pod_states import has_gate
from spinney.testing.builders import a_clique, a_pod_clique_set, a_scaling_group
from tests.operator.harness import World, given_a_world


def workload(**options: object) -> PodCliqueSet:
    """Return a set with a standalone clique and a scaling group."""
    cliques = [a_clique("a", 2), a_clique("b", 1), a_clique("c", 3)]
    return a_pod_clique_set("model", cliques, [a_scaling_group("sg", ["b", "c"], 2, 1)], **options)  # type: ignore[arg-type]


async def scale(world: World, resource: Resource, name: str, replicas: int) -> None:
    """Scale an object through its scale subresource."""
    patch = {"spec": {"replicas": replicas}}
    await world.client.patch(resource, name, patch, "test", subresource="scale")
    await world.settle()


@given_a_world
async def test_scaling_a_set_out_and_in(world: World) -> None:
    """New replicas appear whole; replicas scaled away leave nothing behind, services included."""
    await world.bring_up(workload())
    assert len(await world.pods()) == 10
    await scale(world, POD_CLIQUE_SET, "model", 3)
    assert len(await world.pods()) == 30
    assert await world.names(SERVICE) == ["model-0", "model-1", "model-2"]
    await scale(world, POD_CLIQUE_SET, "model", 1)
    assert len(await world.pods()) == 10
    assert await world.names(POD_GANG) == ["model-0", "model-0-sg-0"]
    assert await world.names(SERVICE) == ["model-0"]
    assert await world.names(POD_CLIQUE_SCALING_GROUP) == ["model-0-sg"]
    await scale(world, POD_CLIQUE_SET, "model", 0)
    assert await world.pods() == []


@given_a_world
async def test_a_gang_is_not_initialized_while_pods_of_it_are_missing(world: World) -> None:
    """A clique that cannot scale out says so on its gang; its other pods are replaced meanwhile as ever."""
    await world.bring_up(a_pod_clique_set("model", [a_clique("a", 2, minimum=1)]))
    quota = {"metadata": {"name": "two", "namespace": "test"}, "spec": {"hard": {"pods": "2"}}}
    await world.client.create(RESOURCE_QUOTA, quota)
    await scale(world, POD_CLIQUE, "model-0-a", 4)

    async def initialized() -> tuple[str, str, str]:
        condition = find_condition((await world.gang("model-0")).status.conditions, INITIALIZED)
        assert condition is not None
        return condition.status, condition.reason, condition.message

    assert await initialized() == ("False", "PodsMissing", "2 of 4 pods of PodClique model-0-a exist")
    first = (await world.pods())[0].metadata
    await world.client.delete(POD, first.name, "test")
    await world.settle(60)
    assert first.uid not in {pod.metadata.uid for pod in await world.pods()}
    assert [has_gate(pod) for pod in await world.pods()] == [False, False]

    await world.client.delete(RESOURCE_QUOTA, "two", "test")
    await world.settle(120)
    assert len(await world.pods()) == 4
    assert (await initialized())[:2] == ("True", "Ready")


@given_a_world
async def test_a_gang_that_scales_out_is_initialized_only_while_it_refers_to_all_its_pods(world: World) -> None:
    """While a clique grows, or a pod of it is replaced, its gang is brought up to date, or says so, within moments."""
    await world.bring_up(a_pod_clique_set("model", [a_clique("a", 2, minimum=1)]))

    async def watch_closely() -> None:
        outdated = 0
        for _ in range(60):
            await world.runtime.clock.sleep(0.05)
            gang = await world.gang("model-0")
            (group,) = gang.spec.pod_groups
            there = {pod.metadata.name for pod in await world.pods()}
            complete = {reference.name for reference in group.pod_references} == there and len(there) == 5
            claims = is_true(gang.status.conditions, INITIALIZED)
            outdated = outdated + 1 if claims and not complete else 0
            assert outdated < 4, "a fifth of a second"

    patch = {"spec": {"replicas": 5}}
    await world.client.patch(POD_CLIQUE, "model-0-a", patch, "test", subresource="scale")
    await watch_closely()
    await world.client.delete(POD, (await world.pods())[0].metadata.name, "test")
    await watch_closely()
    assert is_true((await world.gang("model-0")).status.conditions, INITIALIZED)


@given_a_world
async def test_replicas_changed_in_the_template_are_not_silently_ignored(world: World) -> None:
    """PodCliques that exist keep their size, as with Grove; an event on the set says so, and how to scale them."""
    await world.bring_up(a_pod_clique_set("model", [a_clique("a", 2, minimum=1)]))
    await world.bring_up(a_pod_clique_set("model", [a_clique("a", 4, minimum=1)]))
    assert len(await world.pods()) == 2
    told = [event for event in (await world.client.list(EVENT, "test")).items if event["reason"] == "ReplicasKept"]
    assert [event["involvedObject"]["name"] for event in told] == ["model"]
    assert "kubectl scale podclique model-0-a --replicas=4" in told[0]["message"]


@given_a_world
async def test_scaling_a_scaling_group_makes_and_removes_gangs(world: World) -> None:
    """Each replica beyond the minimum has a gang with a re-based index; scale-in removes the highest."""
    await world.bring_up(workload())
    await scale(world, POD_CLIQUE_SCALING_GROUP, "model-0-sg", 4)
    assert await world.names(POD_GANG) == ["model-0", "model-0-sg-0", "model-0-sg-1", "model-0-sg-2"]
    assert len(await world.pods()) == 18
    gang = await world.gang("model-0-sg-2")
    assert [group.name for group in gang.spec.pod_groups] == ["model-0-sg-3-b", "model-0-sg-3-c"]
    await scale(world, POD_CLIQUE_SCALING_GROUP, "model-0-sg", 2)
    assert await world.names(POD_GANG) == ["model-0", "model-0-sg-0"]
    assert len(await world.pods()) == 10


@given_a_world
async def test_scaling_a_clique_survives_a_template_change(world: World) -> None:
    """Replicas set through the scale subresource are kept when the set's template changes."""
    await world.bring_up(workload())
    await scale(world, POD_CLIQUE, "model-0-a", 4)
    assert len(await world.pods()) == 12
    await world.bring_up(workload(labels={"team": "one"}))
    clique = await world.client.get(POD_CLIQUE, "model-0-a", "test", type=PodClique)
    assert clique.spec.replicas == 4
    gang = await world.gang("model-0")
    assert gang.metadata.labels["team"] == "one"
    assert len(next(g for g in gang.spec.pod_groups if g.name == "model-0-a").pod_references) == 4


@given_a_world
async def test_deleting_a_set_leaves_nothing(world: World) -> None:
    """Everything made for a set is gone after it has been deleted."""
    scaling = AutoScalingConfig(min_replicas=2, max_replicas=4)
    cliques = [a_clique("a", 2, autoscaling=scaling), a_clique("b", 1, after=["a"])]
    await world.bring_up(a_pod_clique_set("model", cliques, startup=EXPLICIT, replicas=2))
    kinds = [POD, POD_CLIQUE, POD_GANG, SERVICE, SERVICE_ACCOUNT, ROLE, ROLE_BINDING, SECRET]
    kinds.append(HORIZONTAL_POD_AUTOSCALER)
    assert all([await mine(world, kind) for kind in kinds])
    await world.client.delete(POD_CLIQUE_SET, "model", "test")
    await world.settle()
    assert [await mine(world, kind) for kind in kinds] == [[] for _ in kinds]


@given_a_world
async def test_an_object_somebody_deleted_comes_back(world: World) -> None:
    """Services, gangs and PodCliques that disappear are made anew."""
    await world.bring_up(workload())
    await world.client.delete(SERVICE, "model-0", "test")
    await world.client.delete(POD_GANG, "model-0-sg-0", "test")
    await world.client.delete(POD_CLIQUE, "model-0-a", "test")
    await world.settle()
    assert await world.names(SERVICE) == ["model-0"]
    assert await world.names(POD_GANG) == ["model-0", "model-0-sg-0"]
    pods = await world.pods()
    assert len(pods) == 10
    assert all(pod.is_true("Ready") for pod in pods)


async def mine(world: World, resource: Resource) -> list[str]:
    """Return the names of the objects made for the set."""
    listing = await world.client.list(resource, "test", label_selector=f"{marks.PART_OF}=model")
    return [each["metadata"]["name"] for each in listing.items]
