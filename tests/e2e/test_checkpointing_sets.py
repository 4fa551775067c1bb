"""A PodCliqueSet that declares that it checkpoints, and one that needs its place: from annotation to eviction."""

from spinney.api.conditions import find_condition
from spinney.api.core import POD
from spinney.api.labels import CHECKPOINT_BY, CHECKPOINT_GRACE, CHECKPOINT_READY
from spinney.api.podgang import DISRUPTION_TARGET
from spinney.api.scheduling import PRIORITY_CLASS
from spinney.api.struct import JSON
from tests.e2e.backends import SPINNEY, everywhere
from tests.e2e.harness import Stage, Stages
from tests.e2e.workloads.parts import a_clique, a_set

TRAINING = "train-0-worker"


async def a_class(stage: Stage, name: str, value: int) -> str:
    """Create a priority class; its name is not that of another scenario's on the same cluster."""
    unique = f"{name}-{stage.namespace}"
    await stage.client.create(PRIORITY_CLASS, {"metadata": {"name": unique}, "value": value})
    return unique


def disruption(stage: Stage) -> str:
    """Return why the training gang says that it is going to be disrupted; empty if it does not."""
    found = find_condition(stage.gang("train-0").status.conditions, DISRUPTION_TARGET)
    return found.reason if found is not None else ""


def of_class(manifest: JSON, priority: str) -> JSON:
    """Return a set whose gangs and pods are of a priority class."""
    template = manifest["spec"]["template"]
    template["priorityClassName"] = priority
    for clique in template["cliques"]:
        clique["spec"]["podSpec"]["priorityClassName"] = priority
    return manifest


@everywhere(SPINNEY)
async def test_a_set_is_asked_and_goes_when_it_is_ready(a_stage: Stages) -> None:
    """Its gang says so in a condition, and gives its nodes up when one of its pods answers."""
    async with a_stage(3) as stage:
        low, high = await a_class(stage, "low", 10), await a_class(stage, "high", 90)
        train = of_class(a_set("train", [a_clique("worker", 3)]), low)
        train["metadata"]["annotations"] = {CHECKPOINT_GRACE: "10m"}
        await stage.deploy(train)
        await stage.until_ready(3)
        before = stage.uids(TRAINING)
        await stage.deploy(of_class(a_set("urgent", [a_clique("worker", 3)]), high))

        await stage.until(lambda: all(CHECKPOINT_BY in pod.metadata.annotations for pod in stage.pods(TRAINING)))
        await stage.until(
            lambda: find_condition(stage.gang("train-0").status.conditions, DISRUPTION_TARGET) is not None
        )
        target = find_condition(stage.gang("train-0").status.conditions, DISRUPTION_TARGET)
        assert target is not None
        assert target.reason == "CheckpointRequested"
        await stage.until(lambda: all(pod.status.nominated_node_name for pod in stage.pods("urgent-0-worker")))
        assert stage.uids(TRAINING) == before

        speaker = stage.pods(TRAINING)[0]
        said = {CHECKPOINT_READY: speaker.metadata.annotations[CHECKPOINT_BY]}
        await stage.client.patch(POD, speaker.metadata.name, {"metadata": {"annotations": said}}, stage.namespace)
        await stage.until(lambda: len(stage.ready("urgent-0-worker")) == 3)
        assert not stage.uids(TRAINING) & before
        for name in (low, high):
            await stage.client.delete(PRIORITY_CLASS, name)
