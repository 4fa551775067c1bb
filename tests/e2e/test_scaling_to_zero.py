"""A clique and a scaling group go to zero and back through the scale subresource, as HPAs and KEDA scale them."""

from spinney.api.grove import PodClique, PodCliqueScalingGroup
from tests.e2e.backends import THOROUGH, everywhere
from tests.e2e.harness import Stages
from tests.e2e.workloads.functional import workload1


@everywhere(*THOROUGH)
async def test_a_clique_goes_to_zero_and_comes_back(a_stage: Stages) -> None:
    """At zero the other pods run on, untouched; back at its size every pod of the gang has a node and is ready."""
    await _to_zero_and_back(a_stage, PodClique, "workload1-0-pc-a", pods=2)


@everywhere(*THOROUGH)
async def test_a_scaling_group_goes_to_zero_and_comes_back(a_stage: Stages) -> None:
    """As a clique does, with all PodCliques of all its replicas."""
    await _to_zero_and_back(a_stage, PodCliqueScalingGroup, "workload1-0-sg-x", pods=8)


async def _to_zero_and_back(
    a_stage: Stages, kind: type[PodClique | PodCliqueScalingGroup], name: str, *, pods: int
) -> None:
    async with a_stage(10) as stage:
        await stage.deploy(workload1())
        await stage.until_ready(10)
        before = {pod.metadata.uid for pod in stage.pods()}
        await stage.scale(kind, name, 0)
        await stage.until(lambda: len(stage.pods()) == 10 - pods)
        kept = {pod.metadata.uid for pod in stage.pods()}
        assert kept < before
        assert len(stage.ready()) == 10 - pods
        await stage.scale(kind, name, 2)
        await stage.until_ready(10)
        assert kept < {pod.metadata.uid for pod in stage.pods()}
