"""Ray clusters made into pods by KubeRay's own controller are gangs."""

import pytest

from tests.operators.conftest import Ground
from tests.operators.published import for_our_nodes, published
from tests.operators.staging import a_stage

pytestmark = [pytest.mark.real, pytest.mark.operators, pytest.mark.timeout(1800)]


async def test_a_ray_cluster_comes_up_whole_and_is_scaled(ground: Ground) -> None:
    """Head and worker wait for each other; scaling the group moves its minimum; a lost worker alone is replaced."""
    (sample,) = published("kuberay").documents("config/samples/ray-cluster.sample.yaml")
    async with a_stage(ground, "kuberay", nodes=1) as stage, stage.applied(for_our_nodes(sample)) as resource:
        await stage.until_floors({"headgroup": 1, "workergroup": 1})
        await stage.until_refused(2)
        await stage.add_nodes(1)
        await stage.until_running(2)
        (group,) = for_our_nodes(sample)["spec"]["workerGroupSpecs"]
        name = sample["metadata"]["name"]
        await stage.patch(resource, name, {"spec": {"workerGroupSpecs": [{**group, "replicas": 3, "minReplicas": 2}]}})
        await stage.until_floors({"headgroup": 1, "workergroup": 2})
        await stage.until_refused(2)
        await stage.add_nodes(1)
        await stage.until_running(3)
        before = stage.uids()
        await stage.lose(next(each for each in sorted(stage.running()) if "worker" in each))
        await stage.until(lambda: len(stage.running()) == 3 and stage.uids() != before)
        assert stage.floors() == [{"headgroup": 1, "workergroup": 2}]


@pytest.mark.parametrize("kind", ["RayJob", "RayService"])
async def test_the_ray_cluster_of_another_kind_comes_up_whole(ground: Ground, kind: str) -> None:
    """Head and worker that KubeRay makes for a RayJob or RayService wait for each other, long before Ray answers."""
    samples = published("kuberay").documents(f"config/samples/ray-{kind.removeprefix('Ray').lower()}.sample.yaml")
    sample = next(each for each in samples if each["kind"] == kind)
    async with a_stage(ground, "kuberay", nodes=1) as stage, stage.applied(for_our_nodes(sample)):
        await stage.until_floors({"headgroup": 1, "small-group": 1})
        await stage.until_refused(2)
        await stage.add_nodes(1)
        await stage.until_running(2)
