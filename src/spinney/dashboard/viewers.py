"""The views that are open: one for each visitor, shared by all their tabs, closed when nobody looks any more."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

from spinney.dashboard.access import Connect, NotAllowed, Visitor
from spinney.dashboard.view import RefreshPace, View
from spinney.kube.errors import Unauthorized
from spinney.runtime import Runtime
from spinney.runtime.tasks import end, in_background

MOST_VIEWS: Final = 64
IDLE_SECONDS: Final = 300.0
"""For how long a view is kept that nobody looks at."""


@dataclass
class _Open:
    view: View
    running: asyncio.Task[None]
    users: int = 0
    left: float = field(default=0.0)


class Viewers:
    """Opens and closes views. Mutable. ``lasting`` keeps the kubeconfig's view open, and with it what it has seen."""

    def __init__(
        self,
        connect: Connect,
        runtime: Runtime,
        *,
        source: str,
        namespaces: tuple[str, ...] = (),
        lasting: bool = False,
        pace: RefreshPace = RefreshPace(),  # noqa: B008 - a frozen value
        most: int = MOST_VIEWS,
    ) -> None:
        self._connect, self._runtime, self._source, self._namespaces = connect, runtime, source, namespaces
        self._lasting, self._pace, self._most = lasting, pace, most
        self._views: dict[str, _Open] = {}

    def __len__(self) -> int:
        return len(self._views)

    @asynccontextmanager
    async def running(self) -> AsyncIterator["Viewers"]:
        """Keep views for the time of the block."""
        try:
            async with in_background(self._close_idle()):
                if self._lasting:
                    self._opened(Visitor(None))
                yield self
        finally:
            for key in list(self._views):
                await self._close(key)

    @asynccontextmanager
    async def looking(self, visitor: Visitor) -> AsyncIterator[View]:
        """Hold a visitor's view, with everything read once, for the time of the block; raises :class:`NotAllowed`."""
        opened = self._views.get(visitor.key) or self._opened(visitor)
        opened.users += 1
        try:
            try:
                await opened.view.wait_until_ready()
            except Unauthorized as error:
                if self._views.get(visitor.key) is opened:
                    await self._close(visitor.key)
                raise NotAllowed(401, "the API server does not know this bearer token") from error
            with opened.view.seen():
                yield opened.view
        finally:
            opened.users -= 1
            opened.left = self._runtime.clock.monotonic()

    def _opened(self, visitor: Visitor) -> _Open:
        if len(self._views) >= self._most:
            raise NotAllowed(503, f"{self._most} viewers with tokens of their own are being served; try again later")
        client = self._connect(visitor.token)
        namespaces = visitor.namespaces or self._namespaces
        view = View(client, source=self._source, namespaces=namespaces, pace=self._pace)
        opened = _Open(view, asyncio.create_task(view.run(), name="dashboard's view"))
        self._views[visitor.key] = opened
        return opened

    async def _close_idle(self) -> None:
        clock = self._runtime.clock
        kept = Visitor(None).key if self._lasting else ""
        while True:
            await clock.sleep(IDLE_SECONDS / 10)
            now = clock.monotonic()
            for key, opened in list(self._views.items()):
                if key != kept and not opened.users and now - opened.left >= IDLE_SECONDS:
                    await self._close(key)

    async def _close(self, key: str) -> None:
        opened = self._views.pop(key)
        await end(opened.running)
        await opened.view.client.transport.close()
