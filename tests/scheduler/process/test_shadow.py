"""Beside another scheduler, writing nothing: what we would have done, and how that compares."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from io import StringIO

from rich.console import Console

from spinney.api.core import POD, Pod
from spinney.cli.pictures.comparison import print_comparison
from spinney.kube.client import Client
from spinney.kube.guarding import ReadOnlyTransport
from spinney.kube.keys import Key
from spinney.scheduler.config import SchedulerConfig
from spinney.scheduler.intake.inventory import Inventory
from spinney.scheduler.process.process import SchedulerProcess
from spinney.scheduler.process.shadow import Comparison, Shadow
from tests.scheduler.process.world import NS, World, given_a_world, running


@asynccontextmanager
async def shadowing(world: World) -> AsyncIterator[Shadow]:
    """Run a shadow of whoever serves the pods of the world."""
    client = Client(ReadOnlyTransport(world.transport), world.runtime)
    inventory = Inventory()
    shadow = Shadow(inventory, world.runtime.clock)
    async with running(SchedulerProcess(client, SchedulerConfig(), inventory=inventory, effects=shadow)):
        yield shadow


async def bound_by_another(world: World, pod: str, node: str) -> None:
    """Bind a pod as the other scheduler would."""
    found = await world.client.get(POD, pod, NS, type=Pod)
    await world.client.bind(NS, pod, found.metadata.uid, node)


@given_a_world
async def test_a_shadow_decides_and_never_writes(world: World) -> None:
    """Pods that nobody places are decided about once, and no request but reads is sent."""
    await world.add_node("n1", gpus=4)
    await world.add_gang("a", 4)
    await world.add_pod("too-much", gpus=9)
    async with shadowing(world) as shadow:
        await world.settle(300)
        compared = shadow.compared()
        assert [(each.pod.name, each.ours, each.theirs) for each in compared] == [
            (f"a-{number}", "n1", "") for number in range(4)
        ]
        assert {key.name for key in shadow.refused} == {"too-much"}
    assert world.transport.writes == []
    assert set((await world.places()).values()) == {""}


@given_a_world
async def test_a_shadow_compares_with_what_the_other_did(world: World) -> None:
    """Each pod is the same, elsewhere, ours only or theirs only; the other's binds are what counts for later ones."""
    await world.add_node("n1", gpus=1)
    await world.add_node("n2", gpus=1)
    async with shadowing(world) as shadow:
        await world.settle(1)
        await world.add_pod("first")
        await world.settle(5)
        intended = shadow.compared()[0].ours
        other = {"n1": "n2", "n2": "n1"}[intended]
        await bound_by_another(world, "first", other)
        await world.settle(5)
        await world.add_pod("second")
        await world.settle(5)
        await bound_by_another(world, "second", intended)
        await world.settle(5)
        await world.add_node("n3", gpus=8)
        await world.add_pod("third")
        await world.settle(5)
        found = {each.pod: each for each in shadow.compared()}
        differences = [found[Key(NS, name)].difference for name in ("first", "second", "third")]
        assert differences == [Comparison.OTHER, Comparison.SAME, Comparison.OURS_ONLY]
        lead = found[Key(NS, "first")].lead
        assert lead is not None
        assert lead > 4

        said = StringIO()
        print_comparison(Console(file=said, width=120), shadow)
        assert "3 pods placed by either scheduler" in said.getvalue()
        assert f"{NS}/first" in said.getvalue()
        assert f"{NS}/second" not in said.getvalue()
