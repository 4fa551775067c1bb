"""Running one part of a cluster for the time of a block."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Protocol

from spinney.kube.manager import Manager


class Part(Protocol):
    """What runs around a manager: the operator, a scheduler, the controllers of workloads."""

    @property
    def manager(self) -> Manager:
        """The caches and controllers of the part."""
        ...

    async def run(self) -> None:
        """Run until stopped."""
        ...

    def stop(self) -> None:
        """Ask for a graceful stop."""
        ...


@asynccontextmanager
async def running(part: Part) -> AsyncIterator[None]:
    """Run a part for the time of the block, which begins when it is ready; its failure ends the block."""
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(part.run(), name=type(part).__name__)
        ready = tasks.create_task(part.manager.wait_until_ready())
        await asyncio.wait({task, ready}, return_when=asyncio.FIRST_COMPLETED)
        try:
            yield
        finally:
            ready.cancel()
            part.stop()
            await asyncio.wait({task})
