"""Tasks that run beside others for a while."""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar, overload

T = TypeVar("T")
U = TypeVar("U")


@overload
async def together(first: Coroutine[Any, Any, T], second: Coroutine[Any, Any, U], /) -> tuple[T, U]: ...
@overload
async def together(*work: Coroutine[Any, Any, T]) -> Sequence[T]: ...
async def together(*work: Coroutine[Any, Any, Any]) -> Sequence[Any]:
    """Run coroutines at the same time and return what each gives; if one fails, its error comes when all have ended."""
    tasks = [asyncio.create_task(each) for each in work]
    try:
        return await asyncio.gather(*tasks)
    except BaseException:
        await end(*tasks)
        raise


async def end(*tasks: asyncio.Task[Any]) -> None:
    """Cancel tasks and wait until each has ended, however it does."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def is_being_cancelled() -> bool:
    """Tell whether the task that runs was asked to end; a ``CancelledError`` in one that was not is a fault."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


class BackgroundTasks:
    """Tasks that are not waited for one by one, kept until they end: the event loop itself may forget them. Mutable."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(self, work: Coroutine[Any, Any, None], name: str | None = None) -> None:
        """Run something to its end."""
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def finish(self) -> None:
        """Wait until all have ended, also those that are begun meanwhile; they are cancelled if this is."""
        try:
            while self._tasks:
                await asyncio.wait(self._tasks)
        finally:
            for late in self._tasks:
                late.cancel()


@asynccontextmanager
async def in_background(*work: Coroutine[Any, Any, Any]) -> AsyncIterator[list[asyncio.Task[Any]]]:
    """Run coroutines for the time of the block, which is given their tasks; the error of one ends the block, too.

    A block that went on would wait for ever for what that one was to bring about.
    """
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(each) for each in work]
            yield tasks
            for task in tasks:
                task.cancel()
    except BaseExceptionGroup as failed:
        raise failed.exceptions[0] from failed.exceptions[0].__cause__
