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


@asynccontextmanager
async def in_background(*work: Coroutine[Any, Any, Any]) -> AsyncIterator[list[asyncio.Task[Any]]]:
    """Run coroutines for the time of the block, which is given their tasks."""
    tasks = [asyncio.create_task(each) for each in work]
    try:
        yield tasks
    finally:
        await end(*tasks)
