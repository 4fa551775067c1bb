"""Processes that die: an API server that comes back from its journal, and parts of the stack that are started again.

Each part has a runtime of its own, whose wall clock jumps; durations are everybody's, since time passes for all.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Protocol

from spinney.api.struct import JSON
from spinney.backends.registry import InitializationFailed
from spinney.kube.client import Client
from spinney.kube.errors import ConnectionFailed, ConnectionRefused, KubeError
from spinney.operator.admission.rules import Admission
from spinney.operator.operator import Operator
from spinney.runtime import InlineExecutor, Runtime, VirtualClock
from spinney.server import ApiServer, Request, Response, ServerOptions
from spinney.server.admission.calling import CallFailed
from spinney.server.store import Collection, StoreEvent
from tests.operator.storms import StormyTransport, Weather

_MAY_END = (KubeError, InitializationFailed)
"""What ends a process that cannot begin; whoever runs it starts it again."""

Listener = Callable[[Collection, StoreEvent], None]
Connect = Callable[[str], Client]
"""Gives a part of the stack a client of its own, by the name under which it writes."""


class JumpingClock(VirtualClock):
    """A clock whose wall time somebody sets. Mutable."""

    def __init__(self) -> None:
        super().__init__()
        self.offset = timedelta()

    def now(self) -> datetime:
        return super().now() + self.offset


def a_runtime(seed: int, part: str) -> tuple[Runtime, JumpingClock]:
    """Return the runtime of one part, and its clock."""
    clock = JumpingClock()
    return Runtime(clock, random.Random(f"{seed} {part}"), InlineExecutor()), clock


class MortalServer:
    """An API server on a data directory that can be killed and started again. Mutable.

    A request under way when it is killed has no answer, whether or not it was carried out; watches break.
    """

    def __init__(self, runtime: Runtime, directory: Path, listener: Listener, reviewers: "Reviewers") -> None:
        self._runtime = runtime
        self._reviewers = reviewers
        self._options = ServerOptions(data_directory=directory)
        self._listener = listener
        self._parts = AsyncExitStack()
        self._reading: dict[asyncio.Timeout, None] = {}  # in the order in which they began
        self.server: ApiServer | None = None
        self.kills = 0

    async def start(self) -> None:
        """Start, with everything that was acknowledged."""
        self.server = ApiServer(self._runtime, self._options, webhooks=self._reviewers)
        self.server.context.store.listen(self._listener)
        self._parts = AsyncExitStack()
        await self._parts.enter_async_context(self.server.running())

    async def kill(self) -> None:
        """Die at once."""
        assert self.server is not None, "what does not run cannot die"
        dying, self.server = self.server, None
        self.kills += 1
        for scope in self._reading:
            scope.reschedule(0)  # now
        await self._parts.aclose()
        dying.close()

    async def handle(self, request: Request) -> Response:
        """Answer a request, unless the server is down or dies meanwhile."""
        server = self.server
        if server is None:
            raise ConnectionRefused(f"{request.method} {request.path}: the server is down")
        answer = await server.handle(request)
        if self.server is not server:
            raise ConnectionFailed(f"{request.method} {request.path}: the server died")
        if isinstance(answer.body, bytes):
            return answer
        return Response(answer.status, answer.headers, self._read(server, answer.body))

    async def _read(self, server: ApiServer, body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """Pass on what comes while the server lives; who waits for more when it dies is told at once."""
        while self.server is server:
            try:
                async with asyncio.timeout(None) as scope:
                    self._reading[scope] = None
                    chunk = await anext(body, None)
            except TimeoutError:
                break
            finally:
                self._reading.pop(scope, None)
            if chunk is None:
                return
            yield chunk
        raise ConnectionFailed("the server died")


class Reviewers:
    """The operators that answer admission reviews: one is found as a Service finds one, if any is ready. Mutable."""

    def __init__(self, weather: Weather) -> None:
        self._weather = weather
        self._ready: list[Admission] = []

    def attach(self, operator: Operator) -> None:
        """Have an operator answer while it runs and is synced, whether or not it leads."""
        operator.manager.add_runnable("webhooks", lambda: self._serve(operator.admission), needs_lease=False)

    async def _serve(self, admission: Admission) -> None:
        self._ready.append(admission)
        try:
            await asyncio.Event().wait()
        finally:
            self._ready.remove(admission)

    async def call(self, client: JSON, body: bytes, timeout: float) -> bytes:
        """Carry a review there and its answer back."""
        if not self._ready:
            raise CallFailed("no endpoints available for the service")
        if self._weather.strikes():
            self._weather.faults["review lost"] += 1
            raise CallFailed("the answer was lost")
        self._weather.faults["reviews"] += 1
        return await self._weather.chance.choice(self._ready).answer(client["service"]["path"], body)

    async def close(self) -> None:
        """Nothing is open."""


class Part(Protocol):
    """Something that runs until it is cancelled."""

    async def run(self) -> None:
        """Run."""


@dataclass
class Lives:
    """A part of the stack that is started again whenever it died. Mutable."""

    name: str
    seed: int
    server: MortalServer
    weather: Weather
    make: Callable[[Connect], Part]
    lines: list[StormyTransport] = field(default_factory=list)
    clock: JumpingClock = field(default_factory=JumpingClock)
    kills: int = 0
    ends: int = 0
    _killed: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self) -> None:
        """Live one life after the other until cancelled."""
        for life in range(1_000_000):
            runtime, clock = a_runtime(self.seed, f"{self.name} {life}")
            clock.offset, self.clock = self.clock.offset, clock
            self._killed, self.lines = asyncio.Event(), []
            running = asyncio.create_task(self.make(partial(self._connect, runtime)).run())
            killed = asyncio.create_task(self._killed.wait())
            try:
                await asyncio.wait({running, killed}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for line in self.lines:
                    line.dead.set()
                for task in (running, killed):
                    task.cancel()
                ended = await asyncio.gather(running, killed, return_exceptions=True)
            if not self._killed.is_set():
                self.ends += 1
                if not isinstance(ended[0], _MAY_END):
                    raise AssertionError(f"{self.name} ended by itself: {ended[0]!r}") from ended[0]
            await asyncio.sleep(0.1 + self.weather.chance.random() * 5)

    def kill(self) -> None:
        """End the present life; nothing it asked for is answered any more."""
        self.kills += 1
        for line in self.lines:
            line.dead.set()
        self._killed.set()

    def _connect(self, runtime: Runtime, name: str) -> Client:
        line = StormyTransport(self.server, self.weather)
        self.lines.append(line)
        return Client(line, runtime, field_manager=name)
