"""Running one part of a cluster for the time of a block."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final, Protocol

from spinney.kube.manager import Manager

GRACE_SECONDS: Final = 0.5
"""How long what is under way may take to end. A test or user that stops such a cluster waits for it, and the next
process takes up what is left, as after a crash.
"""


class Part(Protocol):
    """What runs around a manager: the operator, a scheduler, the controllers of workloads."""

    @property
    def manager(self) -> Manager:
        """The caches and controllers of the part."""
        ...

    async def run(self) -> None:
        """Run until its manager is stopped."""
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
            stop(part)
            await asyncio.wait({task})


def stop(part: Part) -> None:
    """Ask a part to stop; :func:`running` waits for it."""
    part.manager.stop(grace_seconds=GRACE_SECONDS)
