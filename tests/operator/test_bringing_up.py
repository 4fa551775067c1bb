"""What it costs to bring a workload up, and what can be seen meanwhile."""

import asyncio
from collections import Counter

from spinney.api.conditions import find_condition, is_true
from spinney.api.core import POD
from spinney.api.grove import POD_CLIQUE, PodClique
from spinney.api.podgang import BACKEND_READY, INITIALIZED, POD_GANG, written
from spinney.api.resource import Resource
from spinney.runtime.tasks import end
from spinney.testing.builders import a_clique, a_pod_clique_set, a_pod_spec
from tests.operator.harness import World, a_world
from tests.operator.test_backend_controller import Recorder, settings
from tests.virtual_time import on_virtual_time


async def count_versions(world: World, resource: Resource, versions: Counter[str]) -> None:
    """Count how often each object of a kind was written, until cancelled."""
    async for event in world.client.watch(resource, "test"):
        versions[event.object["metadata"]["name"]] += 1


@on_virtual_time
async def test_a_workload_comes_up_in_few_writes() -> None:
    """A gang takes three writes, a PodClique two and a pod two: made, referred to, initialized, released."""
    async with a_world(placing=False) as world:
        kinds = {kind: Counter[str]() for kind in (POD_GANG, POD_CLIQUE, POD)}
        counting = [asyncio.create_task(count_versions(world, kind, seen)) for kind, seen in kinds.items()]
        await world.bring_up(a_pod_clique_set("model", [a_clique("worker", 3)], replicas=8))
        await end(*counting)
        assert {kind.kind: set(seen.values()) for kind, seen in kinds.items()} == {
            "PodGang": {3},
            "PodClique": {2},
            "Pod": {2},
        }
        assert sum(kinds[POD].values()) == 48


@on_virtual_time
async def test_an_amount_that_is_left_empty_keeps_nothing_from_coming_up() -> None:
    """A chart's ``cpu:`` without a value asks for no cpu, as it does of Kubernetes; the pods exist and are released."""
    spec = a_pod_spec()
    spec["containers"][0]["resources"] = {"requests": {"cpu": None, "memory": "1Gi"}, "limits": {"cpu": None}}
    async with a_world() as world:
        await world.bring_up(a_pod_clique_set("model", [a_clique("worker", 2, pod_spec=spec)]))
        gang = await world.gang("model-0")
        assert is_true(gang.status.conditions, INITIALIZED)


@on_virtual_time
async def test_progress_is_seen_where_it_is_slow() -> None:
    """The status of a PodClique whose pods stay gated says so after little more than a second."""
    chosen, catalogue = settings()
    async with a_world(chosen, catalogue=catalogue) as world:
        Recorder.holding = True
        await world.bring_up(a_pod_clique_set("model", [a_clique("worker", 3)]), 1.5)
        clique = await world.client.get(POD_CLIQUE, "model-0-worker", "test", type=PodClique)
        assert (clique.status.replicas, clique.status.schedule_gated_replicas) == (3, 3)


@on_virtual_time
async def test_a_gang_whose_pods_stay_away_says_why() -> None:
    """After little more than a second it is on record that the backend is ready, what is missing, and since when."""
    chosen, catalogue = settings()
    async with a_world(chosen, catalogue=catalogue) as world:
        Recorder.clumsy = ("model",)
        await world.bring_up(a_pod_clique_set("model", [a_clique("worker", 3)]), 1.5)
        gang = await world.gang("model-0")
        assert is_true(gang.status.conditions, BACKEND_READY)
        initialized = find_condition(gang.status.conditions, INITIALIZED)
        assert initialized is not None
        assert (initialized.status, initialized.message) == (
            "False",
            "0 of 3 pods of PodClique model-0-worker exist",
        )
        assert written((initialized,)) == (initialized,)
