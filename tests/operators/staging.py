"""Our stack and other people's operators on one cluster."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.grouping.staging import Stage
from tests.grouping.world import a_world
from tests.operators.conftest import Ground


@asynccontextmanager
async def a_stage(ground: Ground, *operators: str, nodes: int) -> AsyncIterator[Stage]:
    """Run our stack and these operators on a cluster with some nodes."""
    for name in operators:
        await ground.install(name)
    async with a_world(ground.cluster, nodes=nodes, workloads=ground.cluster.embedded) as world:
        yield Stage(world, ground.operators.logs)
