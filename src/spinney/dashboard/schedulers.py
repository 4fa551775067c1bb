"""What schedulers tell of themselves: their last cycles, read from their endpoints as the viewer."""

from collections.abc import Mapping, Sequence
from typing import Protocol
from urllib.parse import urlencode

import aiohttp
import msgspec

from spinney.api.struct import Struct, decode
from spinney.kube.credentials import bearer
from spinney.scheduler.process.cycle_log import CycleRecord
from spinney.scheduler.process.endpoint import CYCLES

_SECONDS = 5.0
_LARGEST = 8 * 1024 * 1024


class SchedulerUnreadable(Exception):
    """A scheduler's endpoint gave no answer that could be used."""


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

    def __init__(self, url: str) -> None:
        self.name = url.rstrip("/")

    async def read(self, path: str, query: Mapping[str, str], token: str | None) -> bytes:
        """Return what it answers; it asks the API server whether the token may read the path."""
        headers = dict([bearer(token)]) if token is not None else {}
        limits = aiohttp.ClientTimeout(total=_SECONDS)
        try:
            async with (
                aiohttp.ClientSession(timeout=limits, cookie_jar=aiohttp.DummyCookieJar()) as session,
                session.get(f"{self.name}{path}?{urlencode(query)}", headers=headers, allow_redirects=False) as answer,
            ):
                body = await answer.content.read(_LARGEST)
                if answer.status != 200:
                    said = " ".join(body[:300].decode(errors="replace").split())
                    raise SchedulerUnreadable(f"{self.name}{path} answered {answer.status}: {said}")
                return body
        except (aiohttp.ClientError, TimeoutError) as error:
            raise SchedulerUnreadable(f"{self.name}{path}: {error or 'no answer in time'}") from error


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
