"""TrainJobs made into JobSets and pods by Kubeflow Trainer's and JobSet's own controllers are gangs."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from spinney.api.struct import JSON
from spinney.queueing.virtual_gang import virtual_gang
from tests.operators.conftest import Ground
from tests.operators.staging import RUNTIME, a_stage, apply_torch_runtime

pytestmark = [pytest.mark.real, pytest.mark.operators, pytest.mark.timeout(1800)]

JOB = Path(__file__).resolve().parents[1] / "data" / "operators" / "trainjob.yaml"
TOLERATED = {"key": "example.com/reserved", "operator": "Exists"}


async def test_a_train_job_comes_up_whole(ground: Ground) -> None:
    """Training on four nodes with the published runtime waits whole on three, and a node more starts all of it."""
    async with a_stage(ground, "trainer", nodes=3) as stage:
        await apply_torch_runtime(stage)
        async with stage.applied(yaml.safe_load(JOB.read_text())):
            await stage.until_floors({"node-replica-0": 4})
            await stage.until_refused(4)
            await stage.add_nodes(1)
            await stage.until_running(4)
            lost = sorted(stage.running())[2]
            await stage.lose(lost)
            await stage.until(lambda: len(stage.running() - {lost}) == 4)
            assert stage.floors() == [{"node-replica-0": 4}]


async def test_what_a_train_job_asks_for_itself_is_foreseen(ground: Ground) -> None:
    """The pods that are made up for a suspended TrainJob ask for what those of the real controllers do."""
    manifest: JSON = yaml.safe_load(JOB.read_text())
    patched = {"name": "node", "template": {"spec": {"template": {"spec": {"tolerations": [TOLERATED]}}}}}
    spec = {"template": {"spec": {"replicatedJobs": [patched]}}}
    manifest["spec"]["runtimePatches"] = [{"manager": "example.com/us", "trainingRuntimeSpec": spec}]
    manifest["spec"]["trainer"]["resourcesPerNode"] = {"limits": {"nvidia.com/gpu": "4"}, "requests": {"cpu": "2"}}
    async with a_stage(ground, "trainer", nodes=1) as stage:
        await apply_torch_runtime(stage)
        runtime = await stage.world.client.get(RUNTIME, "torch-distributed")
        async with stage.applied(manifest):
            await stage.until(lambda: len(stage.pods()) == 4)
            real = list(stage.pods().values())
    metadata = {**manifest["metadata"], "namespace": "ns", "uid": "u"}
    given = {**runtime, "kind": RUNTIME.kind}
    made = virtual_gang(
        {**manifest, "metadata": metadata}, [given], names=["spinney-scheduler"], priorities={}, born=datetime.now(UTC)
    )
    assert len(made.pods) == len(real)
    for ours, theirs in zip(made.pods, real, strict=True):
        assert ours.spec.containers[0].resources == theirs.spec.containers[0].resources
        assert set(ours.spec.tolerations) <= set(theirs.spec.tolerations)
        assert any(each.key == TOLERATED["key"] for each in ours.spec.tolerations)
