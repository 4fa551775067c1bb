"""What schedulers tell of themselves: their last cycles, read from their endpoints as the viewer.

Of several replicas only the one that leads has something to tell, and which one that is changes. So an address is asked
at every place that its name stands for: behind a headless Service that is each replica.
"""

import asyncio
import socket
from collections.abc import Mapping, Sequence
from typing import Final, Protocol
from urllib.parse import urlencode, urlsplit

import aiohttp
import msgspec
from aiohttp.abc import AbstractResolver, ResolveResult

from spinney.api.struct import Struct, decode
from spinney.kube.credentials import bearer
from spinney.scheduler.process.cycle_log import CycleRecord
from spinney.scheduler.process.endpoint import CYCLES

_SECONDS = 5.0
_LARGEST = 8 * 1024 * 1024
_STANDS_BY: Final = 503


class SchedulerUnreadable(Exception):
    """A scheduler's endpoint gave no answer that could be used; ``status`` is that of the answer, if there was one."""

    def __init__(self, message: str, status: int = _STANDS_BY) -> None:
        super().__init__(message)
        self.status = status


class SchedulerAddress(Protocol):
    """Where a scheduler answers."""

    @property
    def name(self) -> str:
        """Return what to call it."""
        ...

    async def read(self, path: str, query: Mapping[str, str], token: str | None) -> bytes:
        """Return what it answers to a viewer; raises :class:`SchedulerUnreadable`."""
        ...


class RemoteScheduler:
    """A scheduler that is reached by HTTP. A viewer's token goes to it as it goes to the API server."""

    def __init__(self, url: str, *, resolver: AbstractResolver | None = None) -> None:
        self.name = url.rstrip("/")
        self._resolver = resolver

    async def read(self, path: str, query: Mapping[str, str], token: str | None) -> bytes:
        """Return what it answers; it asks the API server whether the token may read the path."""
        places = await self._places(path)
        answers = await asyncio.gather(*(self._ask(place, path, query, token) for place in places))
        refusals = [answer for answer in answers if isinstance(answer, SchedulerUnreadable)]
        for answer in answers:
            if isinstance(answer, bytes):
                return answer
        raise min(refusals, key=lambda refusal: refusal.status == _STANDS_BY)

    async def _places(self, path: str) -> Sequence[ResolveResult]:
        """Return where it may answer: of each replica one."""
        resolver = self._resolver or aiohttp.ThreadedResolver()
        try:
            async with asyncio.timeout(_SECONDS):
                return await resolver.resolve(urlsplit(self.name).hostname or "", family=socket.AF_UNSPEC)
        except (OSError, TimeoutError) as error:
            raise SchedulerUnreadable(f"{self.name}{path}: {error or 'no address in time'}") from error

    async def _ask(
        self, place: ResolveResult, path: str, query: Mapping[str, str], token: str | None
    ) -> bytes | SchedulerUnreadable:
        headers = dict([bearer(token)]) if token is not None else {}
        limits, connector = aiohttp.ClientTimeout(total=_SECONDS), aiohttp.TCPConnector(resolver=_Place(place))
        jar = aiohttp.DummyCookieJar()
        try:
            async with (
                aiohttp.ClientSession(timeout=limits, connector=connector, cookie_jar=jar) as session,
                session.get(f"{self.name}{path}?{urlencode(query)}", headers=headers, allow_redirects=False) as answer,
            ):
                body = await answer.content.read(_LARGEST)
                if answer.status == 200:
                    return body
                said = " ".join(body[:300].decode(errors="replace").split())
                return SchedulerUnreadable(f"{self.name}{path} answered {answer.status}: {said}", answer.status)
        except (aiohttp.ClientError, TimeoutError) as error:
            return SchedulerUnreadable(f"{self.name}{path}: {error or 'no answer in time'}")


class _Place(AbstractResolver):
    """Takes every name for one place."""

    def __init__(self, place: ResolveResult) -> None:
        self._place = place

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        return [{**self._place, "port": port}]

    async def close(self) -> None:
        """Keep nothing."""


class Cycles(Struct, frozen=True, kw_only=True):
    """The cycles of one scheduler, oldest first."""

    scheduler: str
    cycles: tuple[CycleRecord, ...] = ()
    problem: str = ""


async def cycles_of(
    scheduler: SchedulerAddress, *, after: int, token: str | None, namespaces: Sequence[str] | None
) -> Cycles:
    """Return the cycles of a scheduler; decisions about namespaces that the viewer may not read are left out."""
    try:
        found = decode(tuple[CycleRecord, ...], await scheduler.read(CYCLES, {"after": str(after)}, token))
    except (SchedulerUnreadable, msgspec.DecodeError) as error:
        return Cycles(scheduler=scheduler.name, problem=str(error))
    if namespaces is not None:
        found = tuple(_without_others(each, frozenset(namespaces)) for each in found)
    return Cycles(scheduler=scheduler.name, cycles=found)


def _without_others(record: CycleRecord, namespaces: frozenset[str]) -> CycleRecord:
    """Return a cycle with the decisions about some namespaces; for whom one of them lost pods is nobody's business."""
    kept = tuple(
        msgspec.structs.replace(each, text="") if each.what == "evicted" else each
        for each in record.decisions
        if each.namespace in namespaces
    )
    return msgspec.structs.replace(record, decisions=kept)
