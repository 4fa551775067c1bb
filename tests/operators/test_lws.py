"""LeaderWorkerSets made into pods by their own controller are gangs, one for each replica."""

import pytest

from tests.operators.conftest import Ground
from tests.operators.published import for_our_nodes, published
from tests.operators.staging import a_stage

pytestmark = [pytest.mark.real, pytest.mark.operators, pytest.mark.timeout(1800)]

REPLICA = {"leader": 1, "workers": 3}


async def test_every_replica_is_a_gang(ground: Ground) -> None:
    """Of three published replicas of four pods two start on nine nodes, the third waits whole, and scaling adds one."""
    (sample,) = published("lws").documents("docs/examples/sample/lws.yaml")
    async with a_stage(ground, "lws", nodes=9) as stage, stage.applied(for_our_nodes(sample)) as resource:
        await stage.until_floors(REPLICA, REPLICA, REPLICA)
        await stage.until_running(8)
        await stage.until_refused(4)
        await stage.add_nodes(3)
        await stage.until_running(12)
        await stage.patch(resource, sample["metadata"]["name"], {"spec": {"replicas": 4}})
        await stage.until_floors(REPLICA, REPLICA, REPLICA, REPLICA)
        await stage.until_refused(4)
        await stage.patch(resource, sample["metadata"]["name"], {"spec": {"replicas": 2}})
        await stage.until_floors(REPLICA, REPLICA)
        await stage.until_running(8)


async def test_a_replica_of_which_a_worker_restarts_is_made_anew_whole(ground: Ground) -> None:
    """The published policy RecreateGroupOnPodRestart makes four new pods when one restarts, and they start as one."""
    (sample,) = published("lws").documents("config/samples/leaderworkerset_v1_leaderworkerset.yaml")
    sample["spec"]["replicas"] = 1
    async with a_stage(ground, "lws", nodes=4) as stage, stage.applied(for_our_nodes(sample)):
        await stage.until_running(4)
        before = stage.uids()
        await stage.restart(f"{sample['metadata']['name']}-0-2")
        await stage.until_made_anew(before)
        await stage.until_running(4)
        assert stage.floors() == [REPLICA]
