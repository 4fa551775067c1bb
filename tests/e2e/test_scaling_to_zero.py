"""A clique and a scaling group go to zero and back through the scale subresource, as HPAs and KEDA scale them."""

import pytest

from spinney.api.grove import PodClique, PodCliqueScalingGroup
from tests.e2e.harness import Stages
from tests.e2e.workloads.functional import workload1


@pytest.mark.parametrize("cluster_name", ["embedded", pytest.param("real", marks=pytest.mark.real)], indirect=True)
@pytest.mark.parametrize(
    ("kind", "name", "size", "pods"),
    [(PodClique, "workload1-0-pc-a", 2, 2), (PodCliqueScalingGroup, "workload1-0-sg-x", 2, 8)],
    ids=["clique", "scaling group"],
)
async def test_a_part_goes_to_zero_and_comes_back(
    a_stage: Stages, kind: type[PodClique | PodCliqueScalingGroup], name: str, size: int, pods: int
) -> None:
    """At zero the other pods run on, untouched; back at its size every pod of the gang has a node and is ready."""
    async with a_stage(10) as stage:
        await stage.deploy(workload1())
        await stage.until_ready(10)
        before = {pod.metadata.uid for pod in stage.pods()}
        await stage.scale(kind, name, 0)
        await stage.until(lambda: len(stage.pods()) == 10 - pods)
        kept = {pod.metadata.uid for pod in stage.pods()}
        assert kept < before
        assert len(stage.ready()) == 10 - pods
        await stage.scale(kind, name, size)
        await stage.until_ready(10)
        assert kept < {pod.metadata.uid for pod in stage.pods()}
