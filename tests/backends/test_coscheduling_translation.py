"""What a gang becomes for the coscheduling plugin."""

from msgspec.structs import replace

from spinney.api import labels as marks
from spinney.api.coscheduling import POD_GROUP, PodGroup
from spinney.backends.coscheduling import CoschedulingBackend, CoschedulingConfig
from spinney.backends.interface import BackendContext
from spinney.testing.backends import a_gang, a_pod
from spinney.testing.builders import a_clique, a_pod_clique_set, a_pod_spec, a_scaling_group
from tests.backends.bench import asking, stored
from tests.virtual_time import on_virtual_time

PCS = a_pod_clique_set(
    "model",
    [
        a_clique("worker", 3, 2, pod_spec=a_pod_spec(cpu="500m", gpus=2)),
        a_clique("decode-worker", 1, pod_spec=a_pod_spec(cpu="1")),
    ],
    [a_scaling_group("sg", ["decode-worker"], 2, 2)],
)


def made(context: BackendContext) -> CoschedulingBackend:
    """Return the backend, configured."""
    return CoschedulingBackend(context, CoschedulingConfig(scheduler_name="plugins", schedule_timeout_seconds=90))


@on_virtual_time
async def test_the_group_has_the_sum_of_the_minimums_and_what_they_request() -> None:
    """MinMember and minResources are those of the minimum of every group, templates matched by exact name."""
    async with asking(made, sets=[PCS]) as coscheduling:
        await coscheduling.sync_pod_gang(await stored(coscheduling, a_gang(PCS)))
        group = await coscheduling.context.client.get(POD_GROUP, "model-0", "test", type=PodGroup)
        assert group.spec.min_member == 4
        assert group.spec.min_resources == {"cpu": "3000m", "nvidia.com/gpu": "4"}
        assert group.spec.schedule_timeout_seconds == 90


@on_virtual_time
async def test_a_template_that_leaves_fields_empty_has_its_group() -> None:
    """Charts leave fields empty, which YAML reads as null: what is requested is counted all the same."""
    spec = a_pod_spec(cpu="500m") | {"nodeName": None, "initContainers": None}
    pcs = a_pod_clique_set("model", [a_clique("worker", 2, pod_spec=spec)])
    async with asking(made, sets=[pcs]) as coscheduling:
        await coscheduling.sync_pod_gang(await stored(coscheduling, a_gang(pcs)))
        group = await coscheduling.context.client.get(POD_GROUP, "model-0", "test", type=PodGroup)
        assert group.spec.min_resources == {"cpu": "1000m"}


@on_virtual_time
async def test_the_group_says_what_the_gang_declares_about_being_evicted() -> None:
    """The scheduler reads PodGroups and no PodGangs: grace and minimum runtime are on the group, and nothing else."""
    async with asking(made, sets=[PCS]) as coscheduling:
        gang = a_gang(PCS)
        said = {marks.CHECKPOINT_GRACE: "5m", marks.MIN_RUNTIME: "20m", "example.com/note": "mine"}
        gang = replace(gang, metadata=replace(gang.metadata, annotations=said))
        await coscheduling.sync_pod_gang(await stored(coscheduling, gang))
        group = await coscheduling.context.client.get(POD_GROUP, "model-0", "test", type=PodGroup)
        assert group.metadata.annotations == {marks.CHECKPOINT_GRACE: "5m", marks.MIN_RUNTIME: "20m"}


@on_virtual_time
async def test_members_are_labelled_and_the_scheduler_name_is_configured() -> None:
    """Pods of the minimum carry the group's label, those beyond do not; all name the configured scheduler."""
    async with asking(made, sets=[PCS]) as coscheduling:
        gang = a_gang(PCS)
        labels = []
        for index in range(3):
            pod = a_pod(gang, gang.spec.pod_groups[0], index)
            coscheduling.prepare_pod(pod, gang)
            assert pod["spec"]["schedulerName"] == "plugins"
            labels.append(pod["metadata"]["labels"].get("scheduling.x-k8s.io/pod-group"))
        assert labels == ["model-0", "model-0", None]
