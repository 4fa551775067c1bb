"""What it costs to bring a workload up, what can be seen meanwhile, and that a release never outlives its gang."""

import asyncio
from collections import Counter

from spinney.api.core import POD
from spinney.api.grove import POD_CLIQUE, PodClique
from spinney.api.meta import ObjectMeta
from spinney.api.podgang import POD_GANG, PodGang
from spinney.api.resource import Resource
from spinney.operator.releases import Releases
from spinney.runtime import run_virtual
from spinney.testing.builders import a_clique, a_pod_clique_set
from tests.operator.harness import World, a_world
from tests.operator.test_backend_controller import Recorder, settings


async def count_versions(world: World, resource: Resource, versions: Counter[str]) -> None:
    """Count how often each object of a kind was written, until cancelled."""
    async for event in world.client.watch(resource, "test"):
        versions[event.object["metadata"]["name"]] += 1


def test_a_workload_comes_up_in_few_writes() -> None:
    """A gang takes four writes, a PodClique two and a pod two: made, ready, referred to, initialized, released."""

    async def story() -> None:
        async with a_world(placing=False) as world:
            kinds = {kind: Counter[str]() for kind in (POD_GANG, POD_CLIQUE, POD)}
            counting = [asyncio.create_task(count_versions(world, kind, seen)) for kind, seen in kinds.items()]
            await world.apply(a_pod_clique_set("model", [a_clique("worker", 3)], replicas=8))
            await world.settle()
            for task in counting:
                task.cancel()
            await asyncio.gather(*counting, return_exceptions=True)
            assert {kind.kind: set(seen.values()) for kind, seen in kinds.items()} == {
                "PodGang": {4},
                "PodClique": {2},
                "Pod": {2},
            }
            assert sum(kinds[POD].values()) == 48

    run_virtual(story())


def test_progress_is_seen_where_it_is_slow() -> None:
    """The status of a PodClique whose pods stay gated says so after little more than a second."""

    async def story() -> None:
        chosen, catalogue = settings()
        async with a_world(chosen, catalogue=catalogue) as world:
            Recorder.holding = True
            await world.apply(a_pod_clique_set("model", [a_clique("worker", 3)]))
            await world.settle(1.5)
            clique = await world.client.get(POD_CLIQUE, "model-0-worker", "test", type=PodClique)
            assert (clique.status.replicas, clique.status.schedule_gated_replicas) == (3, 3)

    run_virtual(story())


async def test_a_gang_is_let_go_when_no_gate_is_being_opened() -> None:
    """Whoever deletes a gang waits for the gates under way, and no further one is opened on its word."""
    releases, gang = Releases(), PodGang(metadata=ObjectMeta(name="g", uid="1"))
    with releases.opening(gang) as allowed:
        assert allowed
        closing = asyncio.create_task(releases.close(gang))
        await asyncio.sleep(0)
        assert not closing.done()
        with releases.opening(gang) as another:
            assert not another
    await closing
    await releases.close(gang)
    with releases.opening(gang) as allowed:
        assert not allowed
    releases.reopen(gang)
    with releases.opening(gang) as allowed:
        assert allowed
