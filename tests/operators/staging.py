"""Our stack and other people's operators on one cluster."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from tests.grouping.staging import Stage
from tests.grouping.world import a_world
from tests.operators.conftest import Ground


@asynccontextmanager
async def a_stage(ground: Ground, *operators: str, nodes: int, **scheduler: Any) -> AsyncIterator[Stage]:
    """Run our stack and these operators on a cluster with some nodes; ``scheduler`` configures our scheduler."""
    for name in operators:
        await ground.install(name)
    embedded = ground.cluster.embedded
    async with a_world(ground.cluster, nodes=nodes, workloads=embedded, scheduler=scheduler) as world:
        yield Stage(world, ground.operators.logs)
