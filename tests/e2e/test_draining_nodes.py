"""Drains: gangs leave nodes one at a time, within disruption budgets, and are repaired or moved whole."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import pytest

from spinney.api.core import NODE, POD, Node
from spinney.api.labels import CHECKPOINT_BY, CHECKPOINT_GRACE, CHECKPOINT_READY, POD_GANG
from spinney.api.policy import POD_DISRUPTION_BUDGET
from spinney.binding.draining import Drain, DrainStopped
from spinney.cli.clusters.connecting import Connection
from spinney.cli.clusters.following import following
from spinney.cluster.state import ClusterState
from spinney.sim.defrag.plan import DefragPlan, GangMove, PodMove, carry_out
from tests.e2e.backends import SPINNEY, everywhere, on
from tests.e2e.floor import RACK
from tests.e2e.harness import Stage, Stages
from tests.e2e.packing import domains, expect_together
from tests.e2e.test_failing_nodes import a_rack_gang, run


class Watching:
    """What a drain sees while it runs: how many gangs were short of ready pods at the same time. Mutable."""

    def __init__(self, cluster: ClusterState, sizes: Mapping[str, int]) -> None:
        self._cluster = cluster
        self._sizes = sizes
        self.told: list[str] = []
        self.most_short = 0

    def look(self) -> None:
        """Count the gangs that have too few ready pods now."""
        ready = Counter(
            record.labels.get(POD_GANG)
            for record in self._cluster.pods()
            if record.pod.is_true("Ready") and not record.pod.metadata.deleting
        )
        self.most_short = max(self.most_short, sum(ready[gang] < size for gang, size in self._sizes.items()))


@asynccontextmanager
async def a_drain(stage: Stage, nodes: list[str], *, seconds: float = 200.0) -> AsyncIterator[tuple[Drain, Watching]]:
    """Prepare a drain of nodes of the stage, with a look at the gangs at each change of a pod."""
    async with following(Connection(stage.client, "the stage", stage.namespace)) as cluster:
        state = cluster.inventory.cluster
        watching = Watching(state, {"one-0": 3, "two-0": 3})
        state.subscribe(lambda change: watching.look())
        yield Drain(cluster.mover(nodes, tell=watching.told.append, gang_seconds=seconds)), watching


async def open_again(stage: Stage, nodes: list[str]) -> None:
    for node in nodes:
        await stage.fleet.cordon(node, unschedulable=False)


@everywhere(SPINNEY)
async def test_gangs_leave_one_at_a_time(a_stage: Stages) -> None:
    """Nodes of two gangs are emptied: never are both short of pods, and in the end each has a rack."""
    async with a_stage(14) as stage:
        await run(stage, a_rack_gang("one", 3), a_rack_gang("two", 3), pods=6)
        nodes = [min(stage.nodes_of(f"{gang}-0-worker")) for gang in ("one", "two")]
        async with a_drain(stage, nodes) as (drain, watching):
            await drain.run()
        assert watching.most_short == 1
        await stage.until(lambda: len(stage.ready()) == 6 and not stage.nodes_of() & set(nodes))
        for gang in ("one", "two"):
            expect_together(stage, RACK, f"{gang}-0-worker")
        assert [line.split(":")[0] for line in watching.told if "evicted" in line] == [
            f"gang {stage.namespace}/one-0",
            f"gang {stage.namespace}/two-0",
        ]
        await open_again(stage, nodes)


@on(SPINNEY)
async def test_a_gang_in_a_full_rack_is_moved_whole(a_stage: Stages) -> None:
    """Emptying one node of a full rack moves the gang to another rack."""
    async with a_stage(14) as stage:
        await run(stage, a_rack_gang("one", 7), pods=7)
        before, node = domains(stage, RACK), min(stage.nodes_of())
        async with a_drain(stage, [node]) as (drain, _):
            await drain.run()
        assert len(stage.ready()) == 7
        expect_together(stage, RACK)
        assert not domains(stage, RACK) & before
        await open_again(stage, [node])


@on(SPINNEY)
async def test_a_budget_holds_a_drain_up(a_stage: Stages) -> None:
    """A budget that allows nothing is waited for, and the pods of the gang go when it does."""
    async with a_stage(14) as stage:
        await run(stage, a_rack_gang("one", 3), pods=3)
        spec = {"maxUnavailable": 0, "selector": {"matchLabels": {"grove.io/podclique": "one-0-worker"}}}
        await stage.client.create(POD_DISRUPTION_BUDGET, {"metadata": {"name": "keep"}, "spec": spec}, stage.namespace)
        node, uids = min(stage.nodes_of()), stage.uids()
        async with a_drain(stage, [node]) as (drain, watching):
            draining = asyncio.create_task(drain.run())
            await stage.stays(lambda: stage.uids() == uids, seconds=60)
            assert any("disruption budget" in line for line in watching.told)
            await stage.client.delete(POD_DISRUPTION_BUDGET, "keep", stage.namespace)
            await draining
        assert node not in stage.nodes_of()
        await open_again(stage, [node])


def defragmenting(drain: Drain) -> DefragPlan:
    """Return a plan that moves the pods on the nodes of a drain."""
    moves = [
        GangMove(
            gang=str(each.gang),
            pods=tuple(PodMove(str(pod.key), pod.uid, source=pod.node, target="", gpus=0) for pod in each.pods),
            gpu_hours=0.0,
        )
        for each in drain.leaving()
    ]
    nodes = tuple(sorted(drain.mover.nodes))
    return DefragPlan(
        wanted="room", nodes=nodes, moves=tuple(moves), solver="greedy", restarts=len(moves), gpu_hours=0.0
    )


@on(SPINNEY)
@pytest.mark.parametrize("purpose", ["drain", "plan"])
async def test_a_gang_that_checkpoints_is_asked_first(a_stage: Stages, purpose: str) -> None:
    """Nothing is evicted before one of its pods answers; nobody is asked any more when it has been moved."""
    async with a_stage(14) as stage:
        manifest = a_rack_gang("one", 3)
        manifest["metadata"]["annotations"] = {CHECKPOINT_GRACE: "1h"}
        await run(stage, manifest, pods=3)
        node, uids = min(stage.nodes_of()), stage.uids()
        async with a_drain(stage, [node]) as (drain, _):
            work = drain.run() if purpose == "drain" else carry_out(defragmenting(drain), drain.mover)
            moving = asyncio.create_task(work)
            await stage.until(lambda: all(CHECKPOINT_BY in pod.metadata.annotations for pod in stage.pods()))
            await stage.stays(lambda: stage.uids() == uids, seconds=60)
            speaker = stage.pods()[-1]
            said = {CHECKPOINT_READY: speaker.metadata.annotations[CHECKPOINT_BY]}
            patch = {"metadata": {"annotations": said}}
            await stage.client.patch(POD, speaker.metadata.name, patch, stage.namespace)
            await moving
        assert node not in stage.nodes_of()
        assert not [pod for pod in stage.pods() if CHECKPOINT_BY in pod.metadata.annotations]
        await open_again(stage, [node])


@on(SPINNEY)
async def test_a_drain_stops_at_a_gang_that_does_not_come_back(a_stage: Stages) -> None:
    """Where a gang finds no other place, the others are not touched, and the error says which and why."""
    async with a_stage(7) as stage:
        await run(stage, a_rack_gang("one", 3), a_rack_gang("two", 3), pods=6)
        full = [node for node in sorted(stage.chronicle.all(Node)) if node not in stage.nodes_of()]
        nodes = [min(stage.nodes_of(f"{gang}-0-worker")) for gang in ("one", "two")]
        for node in full:
            await stage.client.patch(NODE, node, {"spec": {"unschedulable": True}})
        uids = stage.uids("two-0-worker")
        async with a_drain(stage, nodes, seconds=30) as (drain, _):
            with pytest.raises(DrainStopped, match=r"one-0 did not come back within 30 s.*2 of 3 ready pods"):
                await drain.run()
        assert stage.uids("two-0-worker") == uids
        await open_again(stage, [*nodes, *full])
        await stage.until_ready(6)
