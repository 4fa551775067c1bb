"""Nodes that fail, one and several, under gangs that must share a rack: repaired there, or moved whole.

Racks have seven nodes, and each node holds one pod. Pods leave a failed node after a second instead of five minutes,
and stay terminating there until the node is back.
"""

import asyncio
from collections.abc import Collection

from spinney.api.core import Pod
from spinney.api.policy import POD_DISRUPTION_BUDGET
from spinney.api.struct import JSON
from tests.e2e.backends import SPINNEY, everywhere, on
from tests.e2e.floor import RACK
from tests.e2e.harness import Stage, Stages
from tests.e2e.packing import domains, expect_together
from tests.e2e.workloads.parts import a_clique, a_constraint, a_group, a_set

_LEAVING = [
    {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 1}
    for key in ("unreachable", "not-ready")
]


def a_worker(pods: int) -> JSON:
    """Return a clique whose pods leave failed nodes soon."""
    clique = a_clique("worker", pods)
    clique["spec"]["podSpec"]["tolerations"] += _LEAVING
    return clique


def a_rack_gang(name: str, pods: int) -> JSON:
    """Return a set of one gang whose pods must share a rack."""
    return a_set(name, [a_worker(pods)], topologyConstraint=a_constraint(required="rack"))


async def run(stage: Stage, *manifests: JSON, pods: int) -> None:
    """Bring gangs up on the topology of the floor."""
    await stage.bind_topology()
    for manifest in manifests:
        await stage.deploy(manifest)
    await stage.until_ready(pods)
    await stage.settle()


async def fail(stage: Stage, nodes: Collection[str], *, pods: int) -> list[Pod]:
    """Let nodes fail at the same time; return the pods once so many are ready elsewhere."""

    def well() -> list[Pod]:
        return [pod for pod in stage.ready() if pod.spec.node_name not in nodes and not pod.metadata.deleting]

    await asyncio.gather(*map(stage.fleet.fail, nodes))
    await stage.until(lambda: not any(pod.spec.node_name in nodes for pod in stage.ready()))
    await stage.until(lambda: len(well()) == pods)
    return well()


async def recover(stage: Stage, nodes: Collection[str], *, pods: int) -> None:
    """Let nodes come back, so that what was terminating there goes."""
    await asyncio.gather(*map(stage.fleet.recover, nodes))
    await stage.until_ready(pods)
    await stage.settle()


@everywhere(SPINNEY)
async def test_a_gang_is_repaired_in_its_rack_where_there_is_room(a_stage: Stages) -> None:
    """The pods of two failed nodes come up on spare nodes of the same rack, and nobody else is touched."""
    async with a_stage(14) as stage:
        await run(stage, a_rack_gang("train", 5), pods=5)
        rack = domains(stage, RACK)
        failed = sorted(stage.nodes_of())[:2]
        stay = {pod.metadata.uid for pod in stage.pods() if pod.spec.node_name not in failed}
        alive = await fail(stage, failed, pods=5)
        assert stay <= {pod.metadata.uid for pod in alive}
        await recover(stage, failed, pods=5)
        assert domains(stage, RACK) == rack


@everywhere(SPINNEY)
async def test_a_gang_whose_rack_has_no_room_is_moved_whole(a_stage: Stages) -> None:
    """A full rack loses a node: the gang is up again in another rack, without waiting for its termination delay."""
    async with a_stage(14) as stage:
        await run(stage, a_rack_gang("train", 7), pods=7)
        before, uids = domains(stage, RACK), stage.uids()
        failed = sorted(stage.nodes_of())[:1]
        alive = await fail(stage, failed, pods=7)
        assert not uids & {pod.metadata.uid for pod in alive}
        await recover(stage, failed, pods=7)
        expect_together(stage, RACK)
        assert not domains(stage, RACK) & before


@on(SPINNEY)
async def test_several_gangs_are_moved_when_several_nodes_fail_at_once(a_stage: Stages) -> None:
    """Two full racks lose a node each, and two racks are free: each gang has one of them to itself."""
    async with a_stage(35) as stage:  # the third rack lies in two blocks, and holds no gang of seven
        await run(stage, a_rack_gang("one", 7), a_rack_gang("two", 7), pods=14)
        before = domains(stage, RACK)
        failed = [sorted(stage.nodes_of(f"{name}-0-worker"))[0] for name in ("one", "two")]
        await fail(stage, failed, pods=14)
        await recover(stage, failed, pods=14)
        for name in ("one", "two"):
            expect_together(stage, RACK, f"{name}-0-worker")
        assert not domains(stage, RACK) & before


@on(SPINNEY)
async def test_a_gang_that_fits_nowhere_else_keeps_what_it_has(a_stage: Stages) -> None:
    """Nothing is evicted for a move that cannot be; the gang is complete when the node is back."""
    async with a_stage(7) as stage:
        await run(stage, a_rack_gang("train", 7), pods=7)
        failed = sorted(stage.nodes_of())[:1]
        stay = {pod.metadata.uid for pod in stage.pods() if pod.spec.node_name not in failed}
        await fail(stage, failed, pods=6)
        await stage.stays(lambda: stay <= stage.uids(), seconds=120)
        await recover(stage, failed, pods=7)
        assert stay <= stage.uids()


@on(SPINNEY)
async def test_a_budget_keeps_a_gang_from_being_moved(a_stage: Stages) -> None:
    """The rest of a broken gang is not evicted against its disruption budget; it moves when the budget allows it."""
    async with a_stage(14) as stage:
        await run(stage, a_rack_gang("train", 7), pods=7)
        spec = {"minAvailable": 6, "selector": {"matchLabels": {"grove.io/podclique": "train-0-worker"}}}
        budget = {"metadata": {"name": "keep"}, "spec": spec}
        await stage.client.create(POD_DISRUPTION_BUDGET, budget, stage.namespace)
        failed = sorted(stage.nodes_of())[:1]
        stay = {pod.metadata.uid for pod in stage.pods() if pod.spec.node_name not in failed}
        await fail(stage, failed, pods=6)
        await stage.stays(lambda: stay <= stage.uids(), seconds=60)
        await stage.client.delete(POD_DISRUPTION_BUDGET, "keep", stage.namespace)
        await stage.until(lambda: not stay & {pod.metadata.uid for pod in stage.ready()})
        await recover(stage, failed, pods=7)


@on(SPINNEY)
async def test_the_gangs_of_a_set_move_together(a_stage: Stages) -> None:
    """A set that must share a rack loses a node of its base gang: its scaled gangs go along to the new rack."""
    async with a_stage(14) as stage:
        group = a_group("workers", ["worker"], 3, 1)
        manifest = a_set("train", [a_worker(2)], [group], topologyConstraint=a_constraint(required="rack"))
        filler = a_rack_gang("filler", 1)
        await run(stage, manifest, filler, pods=7)
        base = "train-0-workers-0-worker"
        assert len(domains(stage, RACK)) == 1
        failed = sorted(stage.nodes_of(base))[:1]
        alive = await fail(stage, failed, pods=7)
        assert len(alive) == 7
        await recover(stage, failed, pods=7)
        expect_together(stage, RACK, *(f"train-0-workers-{number}-worker" for number in range(3)))
