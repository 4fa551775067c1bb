"""Where CPU-bound work runs: beside the event loop in production, in line under virtual time."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class Executor(ABC):
    """Runs a blocking function without the caller caring where."""

    @abstractmethod
    async def run(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Call ``function`` and return its result, or raise what it raised."""

    @abstractmethod
    def close(self) -> None:
        """Release threads; no more work may be given after this."""


class InlineExecutor(Executor):
    """Runs the function at once in the calling thread: deterministic, and it blocks the loop."""

    async def run(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return function(*args, **kwargs)

    def close(self) -> None:
        return None


class ThreadExecutor(Executor):
    """Runs functions in a worker thread, one after the other, so that watches, leases and binds go on meanwhile."""

    def __init__(self, name: str = "spinney-worker") -> None:
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix=name)

    async def run(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._pool, lambda: function(*args, **kwargs))

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)
