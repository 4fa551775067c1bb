"""What a gang becomes for Volcano, and which queues it accepts."""

import pytest

from spinney.api import labels as marks
from spinney.api.volcano import POD_GROUP, QUEUE, PodGroup
from spinney.backends import Rejected
from spinney.backends.volcano import Volcano
from spinney.testing.backends import a_gang, a_pod
from spinney.testing.builders import a_clique, a_pod_clique_set
from tests.backends.bench import asking, stored
from tests.virtual_time import on_virtual_time

PCS = a_pod_clique_set("model", [a_clique("a", 2), a_clique("b", 3, 1)], annotations={marks.VOLCANO_QUEUE: "research"})


@on_virtual_time
async def test_each_group_of_pods_has_a_policy_with_its_minimum() -> None:
    """A PodGroup has one sub-group policy per group, selected by the PodClique label."""
    async with asking(Volcano, sets=[PCS]) as volcano:
        gang = await stored(volcano, a_gang(PCS))
        await volcano.sync_pod_gang(gang)
        group = await volcano.context.client.get(POD_GROUP, "model-0", "test", type=PodGroup)
        assert (group.spec.queue, group.spec.min_member) == ("research", 3)
        found = [(each.name, each.sub_group_size, each.min_sub_groups) for each in group.spec.sub_group_policy]
        assert found == [("model-0-a", 2, 1), ("model-0-b", 1, 1)]
        pod = a_pod(gang, gang.spec.pod_groups[0], 0)
        volcano.prepare_pod(pod, gang)
        assert pod["metadata"]["annotations"]["scheduling.volcano.sh/group-name"] == "model-0"


@on_virtual_time
async def test_the_queue_must_exist_and_be_open() -> None:
    """A queue that is missing or closed is a reason to reject."""
    async with asking(Volcano) as volcano:
        client = volcano.context.client
        with pytest.raises(Rejected, match="does not exist"):
            await volcano.validate_pod_clique_set(PCS, None)
        await client.create(QUEUE, {"metadata": {"name": "research"}, "spec": {"weight": 1}})
        await client.patch(QUEUE, "research", {"status": {"state": "Closed"}}, subresource="status")
        with pytest.raises(Rejected, match="must be Open"):
            await volcano.validate_pod_clique_set(PCS, None)
        await client.patch(QUEUE, "research", {"status": {"state": "Open"}}, subresource="status")
        assert await volcano.validate_pod_clique_set(PCS, None) == []
