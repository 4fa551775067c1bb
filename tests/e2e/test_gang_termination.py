"""A gang that lost its minimum for longer than it may is recycled, as little of it as will do (Grove's GT scenarios).

To kill is to close the node and delete the pod, so that nothing can take its place. The delay is ten seconds. Each row
of a scenario is how many pods of which PodClique are killed, and what is made anew because of it; all other pods
outlive the delay.
"""

from dataclasses import dataclass
from functools import partial

from spinney.api.conditions import find_condition
from spinney.api.core import Pod
from spinney.api.grove import PodClique, PodCliqueScalingGroup
from spinney.api.struct import JSON
from tests.e2e.backends import ONE_OF_EACH, everywhere, on
from tests.e2e.harness import Stage, Stages
from tests.e2e.workloads.functional import workload1_gt, workload2_gt, workload5_gt


async def deployed(stage: Stage, manifest: JSON) -> None:
    """Bring a workload up, and let the operator take note of it; in real time with a shorter delay."""
    if not stage.cluster.embedded:
        manifest["spec"]["template"]["terminationDelay"] = "3s"
    await stage.deploy(manifest)
    await stage.until_ready(10)
    await stage.until(lambda: all(map(_is_well, stage.objects(PodClique))))
    await stage.settle()


def _is_well(clique: PodClique) -> bool:
    breached = find_condition(clique.status.conditions, "MinAvailableBreached")
    return breached is not None and breached.status == "False"


async def expect_recycled(stage: Stage, uids: set[str | None]) -> None:
    """Wait until none of these pods exists any more and as many others have been made."""
    await stage.until(lambda: not uids & {pod.metadata.uid for pod in stage.chronicle.all(Pod).values()})
    await stage.until(lambda: len(stage.pods()) == 10)


async def expect_untouched(stage: Stage, uids: set[str | None]) -> None:
    """Check that these pods outlive the delay."""
    longer = 25.0 if stage.cluster.embedded else 8.0
    await stage.stays(lambda: uids <= stage.uids(), seconds=longer)


async def recover(stage: Stage) -> None:
    """Open all nodes; everything must be ready again."""
    await stage.uncordon()
    await stage.until_ready(10, distinct=True)
    await stage.settle()


@dataclass(frozen=True)
class Loss:
    """Pods of a PodClique are killed; those of the ``recycled`` ones are made anew, ``None`` for the whole replica."""

    clique: str
    pods: int
    recycled: tuple[str, ...] | None = ()
    kept: tuple[str, ...] = ("pc-a", "sg-x-0-pc-b", "sg-x-0-pc-c", "sg-x-1-pc-b", "sg-x-1-pc-c")
    """Where the other pods outlive the delay."""


async def play(a_stage: Stages, manifest: JSON, *losses: Loss) -> None:
    """Bring ten pods up, lose some after the other, and see everything recover; what was kept is not replaced then."""
    name = f"{manifest['metadata']['name']}-0"
    async with a_stage(10) as stage:
        await deployed(stage, manifest)
        for loss in losses:
            lost = stage.bound(f"{name}-{loss.clique}")[: loss.pods]
            if loss.recycled is None:
                before, kept = stage.uids(), set[str | None]()
                await stage.kill(*lost)
                await expect_recycled(stage, before)
                continue
            anew = stage.uids(*(f"{name}-{each}" for each in loss.recycled)) if loss.recycled else set()
            kept = stage.uids(*(f"{name}-{each}" for each in loss.kept)) - anew - {pod.metadata.uid for pod in lost}
            await stage.kill(*lost)
            await stage.until(partial(_is_gone, stage, anew))
            await expect_untouched(stage, kept)
        await recover(stage)
        assert kept <= stage.uids()


def _is_gone(stage: Stage, uids: set[str | None]) -> bool:
    return not uids & stage.uids() and len(stage.pods()) == 10


@on(*ONE_OF_EACH)
async def test_gt1_a_standalone_clique_below_its_minimum(a_stage: Stages) -> None:
    """One pod of a clique that needs both is lost: the whole replica is made anew, and recovers."""
    await play(a_stage, workload1_gt(), Loss("pc-a", 1, recycled=None))


@on(*ONE_OF_EACH)
async def test_gt2_a_member_clique_below_its_minimum(a_stage: Stages) -> None:
    """One pod of a scaling group that needs both its replicas is lost: the whole replica of the set is made anew."""
    await play(a_stage, workload1_gt(), Loss("sg-x-0-pc-c", 1, recycled=None))


@everywhere(*ONE_OF_EACH)
async def test_gt3_a_clique_with_pods_to_spare(a_stage: Stages) -> None:
    """Losing one of two pods where one is enough does nothing; losing the other recycles the replica."""
    await play(a_stage, workload2_gt(), Loss("pc-a", 1), Loss("pc-a", 1, recycled=None))


@on(*ONE_OF_EACH)
async def test_gt4_a_scaling_group_heals_itself_while_it_can(a_stage: Stages) -> None:
    """One replica of the group is recycled alone while the other serves; when both are lost, the whole replica is."""
    await play(
        a_stage,
        workload2_gt(),
        Loss("sg-x-0-pc-c", 1),
        Loss("sg-x-0-pc-c", 2, recycled=("sg-x-0-pc-b", "sg-x-0-pc-c")),
        Loss("sg-x-1-pc-c", 1, kept=("pc-a",)),
        Loss("sg-x-1-pc-c", 2, recycled=None),
    )


@on(*ONE_OF_EACH)
async def test_gt5_only_the_broken_replica_of_a_group_is_recycled(a_stage: Stages) -> None:
    """A group that can spare a replica recycles that one and leaves every other pod alone."""
    await play(a_stage, workload5_gt(), Loss("sg-x-0-pc-c", 3, recycled=("sg-x-0-pc-b", "sg-x-0-pc-c")))


@on(*ONE_OF_EACH)
async def test_gt6_a_pod_of_a_scaled_gang_is_replaced(a_stage: Stages) -> None:
    """Losing one pod above the minimum of a scaled gang recycles nothing; its replacement starts when it may."""
    await play(a_stage, workload2_gt(), Loss("sg-x-1-pc-c", 1))


@on(*ONE_OF_EACH)
async def test_a_gang_that_never_ran_is_waiting_not_broken(a_stage: Stages) -> None:
    """A workload for which there is no room outlives the delay, and its group is not called a recycled one."""
    async with a_stage(10, cordoned=2) as stage:
        await stage.deploy(workload1_gt())
        await stage.until_pending(10)
        await expect_untouched(stage, stage.uids())
        groups = [each.object for each in stage.chronicle.log() if each.kind is PodCliqueScalingGroup]
        assert groups
        for group in groups:
            assert find_condition(group.status.conditions, "GangTerminationInProgress") is None


@on(*ONE_OF_EACH)
async def test_a_recycled_group_says_so_until_it_is_well(a_stage: Stages) -> None:
    """GangTerminationInProgress is on the scaling groups of a recycled replica, and gone when they are well again."""
    async with a_stage(10) as stage:
        await deployed(stage, workload1_gt())
        before = stage.uids()
        await stage.kill(stage.pods("workload1-gt-0-pc-a")[0])
        await expect_recycled(stage, before)
        name = "workload1-gt-0-sg-x"

        def is_marked() -> bool:
            return find_condition(stage.group(name).status.conditions, "GangTerminationInProgress") is not None

        await stage.until(is_marked)
        await recover(stage)
        assert not is_marked()
