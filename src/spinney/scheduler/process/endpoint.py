"""What the scheduler's endpoint answers beside health and metrics: explanations, cycles, and what plugins serve.

``/explanations`` lists the gangs that the last cycle could not place, each explained in full; ``namespace`` and
``name`` narrow it down. ``/cycles`` lists the last cycles, what each cost and decided; ``after`` names the last one
already known. A path that a plugin of the newest session has registered is answered by that plugin, in the
worker that runs cycles: a slow answer holds up no watch and no bind.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from spinney.api.struct import encode
from spinney.explain.reasons import Explanation
from spinney.extensions.answers import fault_of, instance_of
from spinney.runtime import Executor
from spinney.runtime.faults import raised
from spinney.runtime.numbers import whole_number_in
from spinney.scheduler.cycle.scheduler import Scheduler
from spinney.scheduler.framework.extension_points import Hook, HttpHandler
from spinney.scheduler.framework.results import Unschedulable
from spinney.scheduler.process.cycle_log import CycleLog

EXPLANATIONS: Final = "/explanations"
CYCLES: Final = "/cycles"
_a_body: Final[Callable[[Any], bytes]] = instance_of(bytes, "bytes")


class PathFailed(RuntimeError):
    """A plugin that serves a path has raised."""


class RefusedGang(msgspec.Struct, frozen=True):
    """A gang that waits, as the endpoint shows it."""

    source: str
    namespace: str
    name: str
    message: str
    explanation: Explanation | None


class SchedulerEndpoint:
    """Answers requests. Mutable: it knows what the last cycle refused."""

    def __init__(self, scheduler: Scheduler, executor: Executor, cycles: CycleLog) -> None:
        self._scheduler = scheduler
        self._executor = executor
        self._cycles = cycles
        self._refused: Sequence[Unschedulable] = ()

    def refused(self, unschedulable: Sequence[Unschedulable]) -> None:
        """Take note of what a cycle could not place."""
        self._refused = unschedulable

    async def answer(self, path: str, query: Mapping[str, str]) -> bytes | None:
        """Answer a path, or return None if nobody serves it."""
        if path == EXPLANATIONS:
            return self._explanations(query)
        if path == CYCLES:
            return encode(self._cycles.after(whole_number_in(query.get("after", "")) or 0)) + b"\n"
        hook = self._scheduler.http_handlers.get(path)
        return await self._executor.run(_asked, hook, query) if hook is not None else None

    def _explanations(self, query: Mapping[str, str]) -> bytes:
        found = [
            RefusedGang(*each.gang, message=each.message, explanation=each.explanation)
            for each in self._refused
            if query.get("namespace", each.gang.namespace) == each.gang.namespace
            and query.get("name", each.gang.name) == each.gang.name
        ]
        return msgspec.json.encode(found) + b"\n"


def _asked(hook: Hook[HttpHandler], query: Mapping[str, str]) -> bytes:
    """Return what a plugin answers. What it raises stays in the worker: it may be what no future can hold."""
    try:
        return _a_body(hook.fn(query))
    except raised() as error:
        raise PathFailed(f"plugin {hook.plugin} {fault_of(error)}") from error
