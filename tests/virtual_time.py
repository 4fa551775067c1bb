"""Tests on virtual time."""

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, ParamSpec

from spinney.runtime import run_virtual

P = ParamSpec("P")


def on_virtual_time(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Run a test on a loop of its own, where time jumps to the next timer."""

    @wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        run_virtual(test(*args, **kwargs))

    return run
