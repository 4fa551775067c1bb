"""What the grouper counts of what it does."""

import pytest

from spinney.api.kai import POD_GROUP as KAI_GROUP
from tests.conftest import Cluster
from tests.grouping.world import JOB, a_world

pytestmark = pytest.mark.parametrize("cluster_name", ["embedded"])


async def test_gangs_and_pods_are_counted_by_kind(cluster: Cluster) -> None:
    """A Job of three pods is one gang made and three pods grouped; scaling it up groups the new pod only."""
    async with a_world(cluster) as world:
        owner = await world.job("train", 3, least=3)
        await world.until(lambda: len(world.placed()) == 3)
        await world.pod("train-3", owner)
        await world.until(lambda: len(world.placed()) == 4)
        assert world.counted("spinney_grouper_gangs_made_total", kind="batch/Job") == 1
        assert world.counted("spinney_grouper_pods_grouped_total", kind="batch/Job") == 4


async def test_what_is_refused_is_counted_once_for_a_reason(cluster: Cluster) -> None:
    """A rule that cannot be applied counts once per pod, however often it is tried."""
    async with a_world(cluster) as world:
        annotations = {"kai.scheduler/batch-min-member": "some"}
        template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}
        owner = await world.owner(JOB, "odd", {"template": template}, annotations=annotations)
        await world.pod("odd-0", owner)
        await world.settle(60)
        assert world.counted("spinney_grouper_refusals_total", kind="batch/Job") == 1


async def test_pods_of_foreign_groups_are_counted_by_whose_they_are(cluster: Cluster) -> None:
    """A pod that names a KAI PodGroup is counted as KAI's, once, also when it changes."""
    async with a_world(cluster) as world:
        spec = {"minMember": 1, "queue": "default-queue"}
        await world.client.create(KAI_GROUP, {"metadata": {"name": "group"}, "spec": spec}, world.namespace)
        await world.pod("theirs", annotations={"pod-group-name": "group"})
        await world.until(lambda: len(world.placed()) == 1)
        await world.settle()
        assert world.counted("spinney_grouper_foreign_pods_total", group="kai") == 1
        assert world.counted("spinney_grouper_gangs_made_total", kind="batch/Job") == 0
