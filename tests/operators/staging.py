"""Our stack and other people's operators on one cluster."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from spinney.api.resource import Resource
from tests.grouping.staging import Stage
from tests.grouping.world import a_world
from tests.operators.conftest import Ground
from tests.operators.published import for_our_nodes, published

RUNTIME = Resource(
    "trainer.kubeflow.org", "v1alpha1", "ClusterTrainingRuntime", "clustertrainingruntimes", namespaced=False
)


@asynccontextmanager
async def a_stage(ground: Ground, *operators: str, nodes: int, **scheduler: Any) -> AsyncIterator[Stage]:
    """Run our stack and these operators on a cluster with some nodes; ``scheduler`` configures our scheduler.

    On the embedded cluster pods are told their gang while they are created, on the real one afterwards.
    """
    for name in operators:
        await ground.install(name)
    embedded = ground.cluster.embedded
    async with a_world(ground.cluster, nodes=nodes, workloads=embedded, scheduler=scheduler, at_creation=True) as world:
        yield Stage(world, ground.operators.logs)


async def apply_torch_runtime(stage: Stage) -> None:
    """Apply the runtime for PyTorch that Kubeflow Trainer publishes, with pods for our scheduler."""
    (runtime,) = published("trainer").documents("manifests/base/runtimes/torch_distributed.yaml")
    await stage.world.client.apply(RUNTIME, for_our_nodes(runtime))
