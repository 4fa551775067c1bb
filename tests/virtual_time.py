"""Tests on virtual time."""

from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from functools import wraps
from inspect import Signature, signature
from typing import Any, Concatenate, ParamSpec, TypeVar

from spinney.runtime import run_virtual

P = ParamSpec("P")
W = TypeVar("W")
Story = Callable[Concatenate[W, P], Coroutine[Any, Any, None]]


def on_virtual_time(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Run a test on a loop of its own, where time jumps to the next timer."""

    @wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        run_virtual(test(*args, **kwargs))

    return run


def opening(opened: Callable[[], AbstractAsyncContextManager[W]]) -> Callable[[Story[W, P]], Callable[P, None]]:
    """Run a test on virtual time, with what is opened for it as its first argument."""

    def decorate(test: Story[W, P]) -> Callable[P, None]:
        @wraps(test)
        def run(*args: P.args, **kwargs: P.kwargs) -> None:
            async def live() -> None:
                async with opened() as world:
                    await test(world, *args, **kwargs)

            run_virtual(live())

        _, *fixtures = signature(test).parameters.values()
        run.__signature__ = Signature(fixtures)  # type: ignore[attr-defined]  # what is opened is no fixture
        return run

    return decorate
