"""Gangs wait until all of them fits, and come up whole (Grove's GS scenarios).

Every node holds one pod. Each row of a scenario is something that is done, and how many pods are bound after it, of how
many there are: those that are not are pending and say why.
"""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager

from spinney.api.grove import PodCliqueScalingGroup, PodCliqueSet
from spinney.api.struct import JSON
from tests.e2e.backends import BACKENDS, MINIMUMS_FIRST, REAL, REAL_COSCHEDULING, REAL_KAI, everywhere, on
from tests.e2e.harness import Stage, Stages
from tests.e2e.workloads.functional import workload1, workload2

Deed = Callable[[Stage], Awaitable[object]]


async def play(opening: AbstractAsyncContextManager[Stage], *rows: tuple[Deed, int, int]) -> None:
    """Do row after row; once all pods are bound they become ready, each on a node of its own."""
    async with opening as stage:
        for do, bound, of in rows:
            await do(stage)
            if bound == of:
                await stage.until_ready(of, distinct=True)
            else:
                await stage.until_bound(bound, of=of)


def deploy(manifest: JSON) -> Deed:
    """Create a workload."""
    return lambda stage: stage.deploy(manifest)


def open_nodes(count: int) -> Deed:
    """Open so many of the closed nodes."""
    return lambda stage: stage.uncordon(count)


def scale_set(name: str, replicas: int) -> Deed:
    return lambda stage: stage.scale(PodCliqueSet, name, replicas)


def scale_group(name: str, replicas: int) -> Deed:
    return lambda stage: stage.scale(PodCliqueScalingGroup, name, replicas)


async def one_of_each_clique(stage: Stage) -> None:
    """Check that what is bound is the minimum of the base gang."""
    assert [len(stage.bound(f"workload2-0-{each}")) for each in ("pc-a", "sg-x-0-pc-b", "sg-x-0-pc-c")] == [1, 1, 1]


async def both_base_gangs(stage: Stage) -> None:
    """Check that pods of both base gangs are bound, and of no other."""
    assert {pod.metadata.labels["grove.io/podgang"] for pod in stage.bound()} == {"workload2-0", "workload2-1"}


@everywhere(*BACKENDS, peers=REAL)
async def test_gs1_a_gang_waits_for_its_last_node(a_stage: Stages) -> None:
    """Ten pods on nine open nodes are all pending; the tenth node starts them all, each on a node of its own."""
    await play(
        a_stage(10, cordoned=1),
        (deploy(workload1()), 0, 10),
        (open_nodes(1), 10, 10),
    )


@on(*BACKENDS)
async def test_gs2_a_scaled_replica_waits_by_itself(a_stage: Stages) -> None:
    """A further replica of the scaling group is a gang of its own, pending without disturbing what runs."""
    await play(
        a_stage(14, cordoned=5),
        (deploy(workload1()), 0, 10),
        (open_nodes(1), 10, 10),
        (scale_group("workload1-0-sg-x", 3), 10, 14),
        (open_nodes(4), 14, 14),
    )


@on(*BACKENDS)
async def test_gs3_a_second_replica_of_the_set_waits_by_itself(a_stage: Stages) -> None:
    """A further replica of the set is pending as a whole until it fits as a whole."""
    await play(
        a_stage(20, cordoned=11),
        (deploy(workload1()), 0, 10),
        (open_nodes(1), 10, 10),
        (scale_set("workload1", 2), 10, 20),
        (open_nodes(10), 20, 20),
    )


@on(*BACKENDS)
async def test_gs4_set_and_scaling_groups_are_scaled_in_turn(a_stage: Stages) -> None:
    """Scaling group, set, and the second replica's scaling group grow one after the other, each as a whole."""
    await play(
        a_stage(28, cordoned=19),
        (deploy(workload1()), 0, 10),
        (open_nodes(1), 10, 10),
        (scale_group("workload1-0-sg-x", 3), 10, 14),
        (open_nodes(4), 14, 14),
        (scale_set("workload1", 2), 14, 24),
        (open_nodes(10), 24, 24),
        (scale_group("workload1-1-sg-x", 3), 24, 28),
        (open_nodes(4), 28, 28),
    )


@everywhere(*BACKENDS, peers=(REAL_KAI, REAL_COSCHEDULING))
async def test_gs5_the_minimum_is_enough(a_stage: Stages) -> None:
    """Two nodes are too few; with three the minimum of the base gang runs and nothing else; with ten everything."""
    await play(
        a_stage(10, cordoned=8),
        (deploy(workload2()), 0, 10),
        (open_nodes(1), 3, 10),
        (one_of_each_clique, 3, 10),
        (open_nodes(7), 10, 10),
    )


@on(*BACKENDS)
async def test_gs6_a_scaled_gang_starts_at_its_minimum(a_stage: Stages) -> None:
    """The gang of a third replica waits for two nodes, then takes further ones as they come."""
    await play(
        a_stage(14, cordoned=12),
        (deploy(workload2()), 0, 10),
        (open_nodes(1), 3, 10),
        (open_nodes(7), 10, 10),
        (scale_group("workload2-0-sg-x", 3), 10, 14),
        (open_nodes(2), 12, 14),
        (open_nodes(2), 14, 14),
    )


@on(*BACKENDS)
async def test_gs7_base_then_scaled_minimum_then_the_rest(a_stage: Stages) -> None:
    """Three nodes carry the base gang's minimum, two more the scaled gang's, five more everything."""
    await play(
        a_stage(14, cordoned=12),
        (deploy(workload2()), 0, 10),
        (open_nodes(1), 3, 10),
        (open_nodes(2), 5, 10),
        (open_nodes(5), 10, 10),
        (scale_group("workload2-0-sg-x", 3), 10, 14),
        (open_nodes(2), 12, 14),
        (open_nodes(2), 14, 14),
    )


@on(*MINIMUMS_FIRST)
async def test_gs8_scaled_before_anything_runs(a_stage: Stages) -> None:
    """Scaled while all is pending: base minimum first, then the minimums of both scaled gangs, then the rest."""
    await play(
        a_stage(14, cordoned=12),
        (deploy(workload2()), 0, 10),
        (scale_group("workload2-0-sg-x", 3), 0, 14),
        (open_nodes(1), 3, 14),
        (open_nodes(4), 7, 14),
        (open_nodes(7), 14, 14),
    )


@on(*BACKENDS)
async def test_gs9_a_second_replica_starts_at_its_minimum(a_stage: Stages) -> None:
    """The second replica of the set waits for three nodes, then takes seven more."""
    await play(
        a_stage(20, cordoned=18),
        (deploy(workload2()), 0, 10),
        (open_nodes(1), 3, 10),
        (open_nodes(7), 10, 10),
        (scale_set("workload2", 2), 10, 20),
        (open_nodes(3), 13, 20),
        (open_nodes(7), 20, 20),
    )


@on(*MINIMUMS_FIRST)
async def test_gs10_both_base_gangs_before_either_scaled_gang(a_stage: Stages) -> None:
    """With both replicas pending, six nodes carry both base minimums, four more both scaled minimums."""
    await play(
        a_stage(20, cordoned=18),
        (deploy(workload2()), 0, 10),
        (scale_set("workload2", 2), 0, 20),
        (open_nodes(4), 6, 20),
        (both_base_gangs, 6, 20),
        (open_nodes(4), 10, 20),
        (open_nodes(10), 20, 20),
    )


@on(*BACKENDS)
async def test_gs11_every_kind_of_scaling_in_turn(a_stage: Stages) -> None:
    """Scaling group, set, and the second replica's scaling group grow from minimum to whole, one after the other."""
    await play(
        a_stage(28, cordoned=26),
        (deploy(workload2()), 0, 10),
        (open_nodes(1), 3, 10),
        (open_nodes(7), 10, 10),
        (scale_group("workload2-0-sg-x", 3), 10, 14),
        (open_nodes(2), 12, 14),
        (open_nodes(2), 14, 14),
        (scale_set("workload2", 2), 14, 24),
        (open_nodes(3), 17, 24),
        (open_nodes(7), 24, 24),
        (scale_group("workload2-1-sg-x", 3), 24, 28),
        (open_nodes(2), 26, 28),
        (open_nodes(2), 28, 28),
    )


@on(*MINIMUMS_FIRST)
async def test_gs12_everything_scaled_while_pending(a_stage: Stages) -> None:
    """28 pending pods in six gangs come up in three steps: base minimums, scaled minimums, the rest."""
    await play(
        a_stage(28, cordoned=26),
        (deploy(workload2()), 0, 10),
        (scale_set("workload2", 2), 0, 20),
        (scale_group("workload2-0-sg-x", 3), 0, 24),
        (scale_group("workload2-1-sg-x", 3), 0, 28),
        (open_nodes(4), 6, 28),
        (open_nodes(8), 14, 28),
        (open_nodes(14), 28, 28),
    )
