"""Schedulers are asked as the viewer, and what the viewer may not read is left out of what they say."""

import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from urllib.parse import urlsplit

import pytest
from aiohttp import web
from aiohttp.abc import AbstractResolver, ResolveResult

from spinney.api.struct import encode
from spinney.dashboard.history import Prometheus, PrometheusUnreadable, Sample
from spinney.dashboard.schedulers import RemoteScheduler, cycles_of
from spinney.scheduler.process.cycle_log import CycleRecord, GangDecision

RECORD = CycleRecord(
    number=3,
    at=datetime(2026, 1, 1, tzinfo=UTC),
    seconds=0.1,
    pending=2,
    binds=1,
    evictions=1,
    unschedulable=0,
    decisions=(
        GangDecision(what="placed", gang="podgang/blue/b", namespace="blue", pods=1, text="on 1 node"),
        GangDecision(what="evicted", gang="podgang/red/r", namespace="red", pods=1, text="for blue/b"),
    ),
)


@asynccontextmanager
async def an_endpoint(
    status: int, body: bytes, *, host: str = "127.0.0.1", port: int = 0
) -> AsyncIterator[tuple[str, list[Mapping[str, str]]]]:
    """Serve one answer; gives the address, and the headers of the requests that come."""
    seen: list[Mapping[str, str]] = []

    async def answer(request: web.BaseRequest) -> web.Response:
        seen.append({**request.headers, "path": request.path_qs})
        return web.Response(status=status, body=body)

    runner = web.ServerRunner(web.Server(answer))
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port).start()
        host, port = runner.addresses[0][:2]
        yield f"http://{host}:{port}/", seen
    finally:
        await runner.cleanup()


async def test_longer_history_comes_from_prometheus() -> None:
    """Use, demand and fair share of known queues are put together by time; others are not passed on."""
    series = [{"metric": {"queue": queue}, "values": [[100, "8"], [200, "12"]]} for queue in ("mine", "of others")]
    async with an_endpoint(200, encode({"status": "success", "data": {"result": series}})) as (url, seen):
        found = await Prometheus(url).queues(end=200, hours=1, known={"mine"})

    assert found == {
        "mine": (
            Sample(at=100, allocated=8, requested=16, fair_share=8),
            Sample(at=200, allocated=12, requested=24, fair_share=12),
        )
    }
    assert len(seen) == 3
    assert not any("Authorization" in headers for headers in seen)


async def test_a_prometheus_that_cannot_be_read_says_so() -> None:
    """A refusal and nonsense are told with the address that gave them."""
    for status, body in ((503, b""), (200, b"<html>")):
        async with an_endpoint(status, body) as (url, _):
            with pytest.raises(PrometheusUnreadable, match="query_range"):
                await Prometheus(url).queues(end=200, hours=1, known=())


async def test_a_scheduler_is_asked_with_the_viewers_token() -> None:
    """It decides by that token whether the viewer may read its cycles."""
    async with an_endpoint(200, encode([RECORD])) as (url, seen):
        told = await cycles_of(RemoteScheduler(url), after=2, token="mine", namespaces=None)

    assert told.cycles == (RECORD,)
    assert seen[0]["Authorization"] == "Bearer mine"
    assert seen[0]["path"] == "/cycles?after=2"


async def test_decisions_about_hidden_namespaces_are_left_out() -> None:
    """Neither the other team's gang nor for whom one lost a pod is told."""
    async with an_endpoint(200, encode([RECORD])) as (url, _):
        told = await cycles_of(RemoteScheduler(url), after=0, token="mine", namespaces=("red",))

    assert "blue" not in encode(told).decode()
    assert [each.gang for each in told.cycles[0].decisions] == ["podgang/red/r"]


class Replicas(AbstractResolver):
    """A name that stands for several addresses, as that of a headless Service."""

    def __init__(self, *hosts: str) -> None:
        self._hosts = hosts

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        more = {"port": port, "family": socket.AF_INET, "proto": 0, "flags": socket.AI_NUMERICHOST}
        return [{"hostname": host, "host": each, **more} for each in self._hosts]  # type: ignore[typeddict-item]

    async def close(self) -> None:
        """Nothing is kept."""


@pytest.mark.parametrize("order", [("127.0.0.1", "127.0.0.2"), ("127.0.0.2", "127.0.0.1")])
async def test_the_replica_that_leads_is_heard(order: tuple[str, str]) -> None:
    """Whichever of the replicas behind a name is asked first: those that stand by have nothing to tell."""
    stands_by = b"this replica stands by: one holds lease spinney-system/spinney-scheduler"
    async with an_endpoint(200, encode([RECORD])) as (url, _):
        port = urlsplit(url).port
        assert port is not None
        scheduler = RemoteScheduler(f"http://replicas:{port}", resolver=Replicas(*order))
        async with an_endpoint(503, stands_by, host="127.0.0.2", port=port):
            told = await cycles_of(scheduler, after=0, token="mine", namespaces=None)
        assert told.cycles == (RECORD,)
    async with (
        an_endpoint(503, stands_by, host="127.0.0.2", port=port),
        an_endpoint(403, b"you may not get /cycles", port=port),
    ):
        told = await cycles_of(scheduler, after=0, token="mine", namespaces=None)
    assert "403: you may not" in told.problem


async def test_a_scheduler_that_cannot_be_read_says_why_and_costs_nothing_else() -> None:
    """A refusal, nonsense and silence are a problem of that scheduler alone."""
    for status, body, reason in ((403, b"you may not get /cycles", "403: you may not"), (200, b"<html>", "malformed")):
        async with an_endpoint(status, body) as (url, _):
            told = await cycles_of(RemoteScheduler(url), after=0, token=None, namespaces=None)
        assert reason in told.problem
        assert not told.cycles
    gone = await cycles_of(RemoteScheduler("http://127.0.0.1:1"), after=0, token=None, namespaces=None)
    assert "http://127.0.0.1:1/cycles" in gone.problem
