"""News of one kind may come long after news of another: what was decided on the old must do no harm."""

import asyncio
from typing import Any

import pytest

from spinney.api.grove import POD_CLIQUE
from spinney.api.struct import JSON
from spinney.kube.cache import WatchCache
from spinney.testing.builders import a_clique, a_pod_clique_set, a_scaling_group
from tests.operator.harness import World, given_a_world


def made_for(world: World, clique: JSON) -> int:
    """Return how many pods were ever made for a PodClique."""
    firsts = [history[0]["metadata"] for history in world.witness.pods.values()]
    return sum(each["ownerReferences"][0]["uid"] == clique["metadata"]["uid"] for each in firsts)


@pytest.mark.parametrize("name", ["model-0-alone", "model-0-g-1-member"])
@given_a_world
async def test_no_pod_is_made_for_a_clique_that_is_gone(
    world: World, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pods vanish with their PodClique; while that is not known here yet, they are not replaced in its name."""
    cliques, groups = [a_clique("alone", 2), a_clique("member", 2)], [a_scaling_group("g", ["member"], 2, 1)]
    await world.bring_up(a_pod_clique_set("model", cliques, groups))
    cache: WatchCache[Any] = world.operator.caches.cliques
    arrive, loop = cache._absorb, asyncio.get_running_loop()
    monkeypatch.setattr(cache, "_absorb", lambda line: loop.call_later(1.0, arrive, line))
    gone = await world.client.get(POD_CLIQUE, name, world.namespace)
    await world.client.delete(POD_CLIQUE, name, world.namespace)
    await world.settle(30)
    assert made_for(world, gone) == 2
    assert len([pod for pod in await world.pods() if pod.is_true("Ready")]) == 6
