"""Kubeflow's jobs of version 1 made into pods by the training operator's own controllers are gangs."""

import pytest

from tests.operators.conftest import Ground
from tests.operators.published import for_our_nodes, published
from tests.operators.staging import a_stage

pytestmark = [pytest.mark.real, pytest.mark.operators, pytest.mark.timeout(1800)]

EXAMPLES = {
    "PyTorchJob": ("pytorch/simple.yaml", {"master": 1, "worker": 1}),
    "TFJob": ("tensorflow/simple.yaml", {"default": 2}),
    "XGBoostJob": ("xgboost/xgboostjob.yaml", {"default": 3}),
    "PaddleJob": ("paddlepaddle/simple-cpu.yaml", {"default": 2}),
    "JAXJob": ("jax/cpu-demo/demo.yaml", {"default": 2}),
}
"""The published example of each kind, and what it needs."""


async def test_every_kind_comes_up_whole(ground: Ground) -> None:
    """Each published example waits whole while a node is lacking, and runs when it is there."""
    async with a_stage(ground, "training", nodes=1) as stage:
        for kind, (path, floors) in EXAMPLES.items():
            (example,) = published("training").documents(f"examples/{path}")
            assert example["kind"] == kind
            example["metadata"].pop("namespace", None)
            pods = sum(floors.values())
            if len(stage.world.fleet.names) < pods - 1:
                await stage.add_nodes(1)
            async with stage.applied(for_our_nodes(example)):
                await stage.until_floors(floors)
                await stage.until_refused(pods)
                await stage.add_nodes(1)
                await stage.until_running(pods)
            while len(stage.world.fleet.names) > 1:
                await stage.remove_node()


async def test_a_worker_that_is_lost_joins_again(ground: Ground) -> None:
    """One worker of a PyTorchJob is made anew, and the gang is what it was."""
    (example,) = published("training").documents("examples/pytorch/simple.yaml")
    example["metadata"].pop("namespace")
    async with a_stage(ground, "training", nodes=2) as stage, stage.applied(for_our_nodes(example)):
        await stage.until_running(2)
        before = stage.uids()
        await stage.lose("pytorch-simple-worker-0")
        await stage.until(lambda: len(stage.running()) == 2 and len(stage.uids() & before) == 1)
        assert stage.floors() == [{"master": 1, "worker": 1}]
