"""TrainJobs made into JobSets and pods by Kubeflow Trainer's and JobSet's own controllers are gangs."""

from pathlib import Path

import pytest
import yaml

from tests.operators.conftest import Ground
from tests.operators.staging import a_stage, apply_torch_runtime

pytestmark = [pytest.mark.real, pytest.mark.operators, pytest.mark.timeout(1800)]

JOB = Path(__file__).resolve().parents[1] / "data" / "operators" / "trainjob.yaml"


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
