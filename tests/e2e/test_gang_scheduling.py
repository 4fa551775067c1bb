"""Gangs wait until all of them fits, and come up whole (Grove's GS scenarios).

Every node holds one pod. "Needs" counts pods; what does not fit is pending and says why.
"""

from spinney.api.grove import PodCliqueScalingGroup, PodCliqueSet
from tests.e2e.backends import BACKENDS, MINIMUMS_FIRST, REAL, everywhere, on
from tests.e2e.harness import Stages
from tests.e2e.workloads.functional import workload1, workload2


@everywhere(*BACKENDS, peers=REAL)
async def test_gs1_a_gang_waits_for_its_last_node(a_stage: Stages) -> None:
    """Ten pods on nine open nodes are all pending; the tenth node starts them all, each on a node of its own."""
    async with a_stage(10, cordoned=1) as stage:
        await stage.deploy(workload1())
        await stage.until_pending(10)
        await stage.uncordon(1)
        await stage.until_ready(10, distinct=True)


@on(*BACKENDS)
async def test_gs2_a_scaled_replica_waits_by_itself(a_stage: Stages) -> None:
    """A further replica of the scaling group is a gang of its own, pending without disturbing what runs."""
    async with a_stage(14, cordoned=5) as stage:
        await stage.deploy(workload1())
        await stage.until_pending(10)
        await stage.uncordon(1)
        await stage.until_ready(10)
        await stage.scale(PodCliqueScalingGroup, "workload1-0-sg-x", 3)
        await stage.until_bound(10, of=14)
        await stage.uncordon()
        await stage.until_ready(14, distinct=True)


@on(*BACKENDS)
async def test_gs3_a_second_replica_of_the_set_waits_by_itself(a_stage: Stages) -> None:
    """A further replica of the set is pending as a whole until it fits as a whole."""
    async with a_stage(20, cordoned=11) as stage:
        await stage.deploy(workload1())
        await stage.until_pending(10)
        await stage.uncordon(1)
        await stage.until_ready(10)
        await stage.scale(PodCliqueSet, "workload1", 2)
        await stage.until_bound(10, of=20)
        await stage.uncordon()
        await stage.until_ready(20, distinct=True)


@on(*BACKENDS)
async def test_gs4_set_and_scaling_groups_are_scaled_in_turn(a_stage: Stages) -> None:
    """Scaling group, set, and the second replica's scaling group grow one after the other, each as a whole."""
    async with a_stage(28, cordoned=19) as stage:
        await stage.deploy(workload1())
        await stage.until_pending(10)
        await stage.uncordon(1)
        await stage.until_ready(10)
        await stage.scale(PodCliqueScalingGroup, "workload1-0-sg-x", 3)
        await stage.until_bound(10, of=14)
        await stage.uncordon(4)
        await stage.until_ready(14)
        await stage.scale(PodCliqueSet, "workload1", 2)
        await stage.until_bound(14, of=24)
        await stage.uncordon(10)
        await stage.until_ready(24)
        await stage.scale(PodCliqueScalingGroup, "workload1-1-sg-x", 3)
        await stage.until_bound(24, of=28)
        await stage.uncordon(4)
        await stage.until_ready(28, distinct=True)


@everywhere(*BACKENDS, peers=REAL)
async def test_gs5_the_minimum_is_enough(a_stage: Stages) -> None:
    """Two nodes are too few; with three the minimum of the base gang runs and nothing else; with ten everything."""
    async with a_stage(10, cordoned=8) as stage:
        await stage.deploy(workload2())
        await stage.until_pending(10)
        await stage.uncordon(1)
        await stage.until_bound(3, of=10)
        assert [len(stage.bound(f"workload2-0-{each}")) for each in ("pc-a", "sg-x-0-pc-b", "sg-x-0-pc-c")] == [1, 1, 1]
        await stage.uncordon(7)
        await stage.until_ready(10, distinct=True)


@on(*BACKENDS)
async def test_gs6_a_scaled_gang_starts_at_its_minimum(a_stage: Stages) -> None:
    """The gang of a third replica waits for two nodes, then takes further ones as they come."""
    async with a_stage(14, cordoned=12) as stage:
        await stage.deploy(workload2())
        await stage.until_pending(10)
        await stage.uncordon(1)
        await stage.until_bound(3, of=10)
        await stage.uncordon(7)
        await stage.until_ready(10)
        await stage.scale(PodCliqueScalingGroup, "workload2-0-sg-x", 3)
        await stage.until_bound(10, of=14)
        await stage.uncordon(2)
        await stage.until_bound(12, of=14)
        await stage.uncordon(2)
        await stage.until_ready(14, distinct=True)


@on(*BACKENDS)
async def test_gs7_base_then_scaled_minimum_then_the_rest(a_stage: Stages) -> None:
    """Three nodes carry the base gang's minimum, two more the scaled gang's, five more everything."""
    async with a_stage(14, cordoned=12) as stage:
        await stage.deploy(workload2())
        await stage.until_pending(10)
        await stage.uncordon(1)
        await stage.until_bound(3, of=10)
        await stage.uncordon(2)
        await stage.until_bound(5, of=10)
        await stage.uncordon(5)
        await stage.until_ready(10)
        await stage.scale(PodCliqueScalingGroup, "workload2-0-sg-x", 3)
        await stage.until_bound(10, of=14)
        await stage.uncordon(2)
        await stage.until_bound(12, of=14)
        await stage.uncordon(2)
        await stage.until_ready(14, distinct=True)


@on(*MINIMUMS_FIRST)
async def test_gs8_scaled_before_anything_runs(a_stage: Stages) -> None:
    """Scaled while all is pending: base minimum first, then the minimums of both scaled gangs, then the rest."""
    async with a_stage(14, cordoned=12) as stage:
        await stage.deploy(workload2())
        await stage.until_pending(10)
        await stage.scale(PodCliqueScalingGroup, "workload2-0-sg-x", 3)
        await stage.until_pending(14)
        await stage.uncordon(1)
        await stage.until_bound(3, of=14)
        await stage.uncordon(4)
        await stage.until_bound(7, of=14)
        await stage.uncordon(7)
        await stage.until_ready(14, distinct=True)


@on(*BACKENDS)
async def test_gs9_a_second_replica_starts_at_its_minimum(a_stage: Stages) -> None:
    """The second replica of the set waits for three nodes, then takes seven more."""
    async with a_stage(20, cordoned=18) as stage:
        await stage.deploy(workload2())
        await stage.until_pending(10)
        await stage.uncordon(1)
        await stage.until_bound(3, of=10)
        await stage.uncordon(7)
        await stage.until_ready(10)
        await stage.scale(PodCliqueSet, "workload2", 2)
        await stage.until_bound(10, of=20)
        await stage.uncordon(3)
        await stage.until_bound(13, of=20)
        await stage.uncordon(7)
        await stage.until_ready(20, distinct=True)


@on(*MINIMUMS_FIRST)
async def test_gs10_both_base_gangs_before_either_scaled_gang(a_stage: Stages) -> None:
    """With both replicas pending, six nodes carry both base minimums, four more both scaled minimums."""
    async with a_stage(20, cordoned=18) as stage:
        await stage.deploy(workload2())
        await stage.until_pending(10)
        await stage.scale(PodCliqueSet, "workload2", 2)
        await stage.until_pending(20)
        await stage.uncordon(4)
        await stage.until_bound(6, of=20)
        assert {pod.metadata.labels["grove.io/podgang"] for pod in stage.bound()} == {"workload2-0", "workload2-1"}
        await stage.uncordon(4)
        await stage.until_bound(10, of=20)
        await stage.uncordon(10)
        await stage.until_ready(20, distinct=True)


@on(*BACKENDS)
async def test_gs11_every_kind_of_scaling_in_turn(a_stage: Stages) -> None:
    """Scaling group, set, and the second replica's scaling group grow from minimum to whole, one after the other."""
    async with a_stage(28, cordoned=26) as stage:
        await stage.deploy(workload2())
        await stage.until_pending(10)
        await stage.uncordon(1)
        await stage.until_bound(3, of=10)
        await stage.uncordon(7)
        await stage.until_ready(10)
        await stage.scale(PodCliqueScalingGroup, "workload2-0-sg-x", 3)
        await stage.until_bound(10, of=14)
        await stage.uncordon(2)
        await stage.until_bound(12, of=14)
        await stage.uncordon(2)
        await stage.until_ready(14)
        await stage.scale(PodCliqueSet, "workload2", 2)
        await stage.until_bound(14, of=24)
        await stage.uncordon(3)
        await stage.until_bound(17, of=24)
        await stage.uncordon(7)
        await stage.until_ready(24)
        await stage.scale(PodCliqueScalingGroup, "workload2-1-sg-x", 3)
        await stage.until_bound(24, of=28)
        await stage.uncordon(2)
        await stage.until_bound(26, of=28)
        await stage.uncordon(2)
        await stage.until_ready(28, distinct=True)


@on(*MINIMUMS_FIRST)
async def test_gs12_everything_scaled_while_pending(a_stage: Stages) -> None:
    """28 pending pods in six gangs come up in three steps: base minimums, scaled minimums, the rest."""
    async with a_stage(28, cordoned=26) as stage:
        await stage.deploy(workload2())
        await stage.until_pending(10)
        await stage.scale(PodCliqueSet, "workload2", 2)
        await stage.until_pending(20)
        await stage.scale(PodCliqueScalingGroup, "workload2-0-sg-x", 3)
        await stage.scale(PodCliqueScalingGroup, "workload2-1-sg-x", 3)
        await stage.until_pending(28)
        await stage.uncordon(4)
        await stage.until_bound(6, of=28)
        await stage.uncordon(8)
        await stage.until_bound(14, of=28)
        await stage.uncordon(14)
        await stage.until_ready(28, distinct=True)
