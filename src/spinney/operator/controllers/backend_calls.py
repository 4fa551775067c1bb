"""Calls of scheduler backends, which may take long or never return, kept from holding up other gangs.

A reconcile waits a moment for the answer, which is all that a good backend needs. After that the call goes on without
it and the gang is looked at again when the answer is there; a backend that has such a call open is not waited for at
all. Each gang has one call at a time, each backend a limited number, and each call a time-out, after which it counts as
failed and is retried like any other failure.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Hashable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from spinney.kube.keys import Key
from spinney.runtime.faults import raised_later, told
from spinney.runtime.tasks import end

MOMENT_SECONDS: Final = 1.0
TIMEOUT_SECONDS: Final = 30.0
CALLS_AT_ONCE: Final = 32
"""How many calls one backend has to bear at the same time."""


@dataclass(frozen=True)
class CallOutcome:
    """How a call ended: well, or with what to show."""

    error: str | None = None


@dataclass(eq=False)
class _Call:
    purpose: Hashable
    task: "asyncio.Task[CallOutcome]"


@dataclass
class BackendCalls:
    """The calls under way. Mutable; ``wake`` asks for another look at a gang whose call has ended."""

    wake: Callable[[Key], None]
    _calls: dict[Key, _Call] = field(default_factory=dict)
    _slots: dict[str, asyncio.Semaphore] = field(default_factory=dict)
    _late: Counter[str] = field(default_factory=Counter)

    async def run(self) -> None:
        """Wait until cancelled, then end what is under way: a process without the lease must not write."""
        try:
            await asyncio.Event().wait()
        finally:
            await end(*(call.task for call in self._calls.values()))

    async def outcome(
        self, key: Key, purpose: Hashable, backend: str, call: Callable[[], Awaitable[None]]
    ) -> CallOutcome | None:
        """Return how the call for this purpose ended; begins it if need be. ``None``: it has not, ``wake`` will tell.

        The answer to a call that was begun for another purpose is dropped, once it is there.
        """
        present = self._calls.get(key)
        if present is not None and present.task.done():
            del self._calls[key]
            if present.purpose == purpose:
                return present.task.result()
            present = None
        if present is not None:
            return None
        task = asyncio.create_task(self._bounded(backend, call), name=f"{backend} for {key}")
        self._calls[key] = _Call(purpose, task)
        if not self._late[backend]:
            await asyncio.wait({task}, timeout=MOMENT_SECONDS)
        if task.done():
            del self._calls[key]
            return task.result()
        self._late[backend] += 1
        task.add_done_callback(lambda _: self._ended(key, backend))
        return None

    def forget(self, key: Key) -> None:
        """Give up on a gang that is gone."""
        with suppress(KeyError):
            self._calls.pop(key).task.cancel()

    def _ended(self, key: Key, backend: str) -> None:
        self._late[backend] -= 1
        self.wake(key)

    async def _bounded(self, backend: str, call: Callable[[], Awaitable[None]]) -> CallOutcome:
        slots = self._slots.setdefault(backend, asyncio.Semaphore(CALLS_AT_ONCE))
        async with slots:
            try:
                async with asyncio.timeout(TIMEOUT_SECONDS) as limit:
                    await call()
            except raised_later() as error:  # a backend may raise anything; it is shown on the gang and retried
                if limit.expired():
                    return CallOutcome(f"{backend}: no answer within {TIMEOUT_SECONDS:.0f} s")
                return CallOutcome(f"{backend}: {told(error)}")
        return CallOutcome()
