"""Executors run blocking functions, in line or beside the loop."""

import asyncio
import threading

import pytest

from spinney.runtime import InlineExecutor, Runtime, ThreadExecutor


async def test_a_thread_executor_leaves_the_loop_free() -> None:
    """While a function blocks in its worker thread, the loop runs on and can release it."""
    executor = ThreadExecutor()
    gate = threading.Event()
    try:
        blocked = asyncio.create_task(executor.run(gate.wait, timeout=30))
        await asyncio.sleep(0)
        assert not blocked.done()
        gate.set()
        assert await blocked is True
    finally:
        executor.close()


async def test_an_inline_executor_runs_in_the_calling_thread() -> None:
    """Under virtual time the function runs at once, in the same thread."""
    assert await InlineExecutor().run(threading.get_ident) == threading.get_ident()


@pytest.mark.parametrize("runtime", [Runtime.virtual(), Runtime.system()], ids=["inline", "threads"])
async def test_errors_come_back_to_the_caller(runtime: Runtime) -> None:
    """What the function raises is raised where it was awaited."""

    def fail(message: str) -> None:
        raise ValueError(message)

    with pytest.raises(ValueError, match="boom"):
        await runtime.executor.run(fail, message="boom")
    runtime.executor.close()
