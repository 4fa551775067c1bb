"""Leader election: at most one leader, who stops before anybody can take over. All on virtual time."""

import asyncio
import gc
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, nullcontext
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from spinney.api.coordination import LEASE, Lease
from spinney.kube.client import Client
from spinney.kube.errors import ConnectionRefused
from spinney.kube.guarding import FencedTransport, NotLeading
from spinney.kube.lease import LeaderElection, LeaseLost, LeaseTimes, process_identity
from spinney.kube.transport import Request, Response, StreamingResponse
from spinney.runtime import Runtime
from tests.examples import examples
from tests.kube.model import THING, ModelServer, stopped
from tests.virtual_time import on_virtual_time, opening


class Partition:
    """A transport that can be cut off from the server, at once or in the middle of a request."""

    def __init__(self, server: ModelServer) -> None:
        self.server = server
        self.cut = False
        self.instead: Response | None = None
        """What a gateway answers in place of the server."""

    async def request(self, request: Request) -> Response:
        """Pass a request on, unless cut off; an answer that was under way is lost too."""
        if self.instead is not None:
            return self.instead
        if self.cut:
            raise ConnectionRefused(f"{request}: cut off")
        response = await self.server.request(request)
        if self.cut:
            raise ConnectionRefused(f"{request}: cut off")
        return response

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[StreamingResponse]:
        async with self.server.stream(request) as response:
            yield response

    async def close(self) -> None:
        """Do nothing."""


class Race:
    """A server with one lease, and candidates for it."""

    def __init__(self, seed: int = 0) -> None:
        self.runtime = Runtime.virtual(seed)
        self.server = ModelServer(self.runtime)
        self.client = Client(self.server, self.runtime)
        self.sleep = self.runtime.clock.sleep

    def candidate(self, identity: str) -> tuple[LeaderElection, Partition]:
        """Return a candidate and the line that connects it."""
        line = Partition(self.server)
        client = Client(line, self.runtime)
        return LeaderElection(client, "op", "x", identity=identity, runtime=self.runtime), line

    async def lease(self) -> Lease:
        return await self.client.get(LEASE, "op", "x", type=Lease)


given_a_race = opening(lambda: nullcontext(Race()))


def _cancel(task: "asyncio.Task[None]", _: object) -> None:
    task.cancel()


async def forever() -> None:
    """Lead without end."""
    await asyncio.Event().wait()


@given_a_race
async def test_one_leads_and_the_other_waits(race: Race) -> None:
    """The first candidate leads for as long as it renews; the second does not get the lease."""
    first, _ = race.candidate("first")
    second, _ = race.candidate("second")
    leading = asyncio.create_task(first.run(forever))
    await race.sleep(1)
    waiting = asyncio.create_task(second.run(forever))
    await race.sleep(600)
    assert (first.leading, second.leading) == (True, False)
    lease = await race.lease()
    assert (lease.spec.holder_identity, lease.spec.lease_duration_seconds) == ("first", 15)
    await stopped(waiting)
    await stopped(leading)


@given_a_race
async def test_a_stopped_leader_releases_at_once(race: Race) -> None:
    """When the leader stops, the next candidate need not wait for the lease to expire."""
    first, _ = race.candidate("first")
    second, _ = race.candidate("second")
    leading = asyncio.create_task(first.run(forever))
    await race.sleep(1)
    waiting = asyncio.create_task(second.run(forever))
    await race.sleep(60)
    await stopped(leading)
    await race.sleep(5)
    assert second.leading
    assert (await race.lease()).spec.lease_transitions == 1
    await stopped(waiting)


@given_a_race
async def test_a_container_that_is_started_again_has_its_lease_at_once(
    race: Race, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a crash the next container of the same pod goes on; another pod waits until the lease has expired."""

    def started(pod: str) -> LeaderElection:
        monkeypatch.setenv("POD_NAME", pod)
        monkeypatch.setenv("POD_UID", f"uid-of-{pod}")
        return race.candidate(process_identity(race.runtime))[0]

    clock = race.runtime.clock
    await started("a").acquire()  # and is killed: nothing renews, nothing releases
    crashed = clock.monotonic()
    await started("a").acquire()
    assert clock.monotonic() - crashed < 1
    await started("b").acquire()
    assert clock.monotonic() - crashed >= 15


@given_a_race
async def test_a_cut_off_leader_stops_before_another_takes_over(race: Race) -> None:
    """A leader that cannot renew cancels its work after the deadline; the other takes over only after that."""
    first, line = race.candidate("first")
    second, _ = race.candidate("second")
    times: dict[str, float] = {}

    async def lead(name: str) -> None:
        times[f"{name} started"] = race.runtime.clock.monotonic()
        try:
            await forever()
        finally:
            times[f"{name} stopped"] = race.runtime.clock.monotonic()

    leading = asyncio.create_task(first.run(lambda: lead("first")))
    await race.sleep(1)
    waiting = asyncio.create_task(second.run(lambda: lead("second")))
    await race.sleep(30)
    line.cut = True
    with pytest.raises(LeaseLost, match="x/op of first was not renewed within 10 s; the process ends, and stands by"):
        await leading
    await race.sleep(30)
    assert times["first stopped"] - 31 <= 12
    assert times["first stopped"] < times["second started"]
    await stopped(waiting)


@given_a_race
async def test_a_short_outage_does_not_cost_the_lease(race: Race) -> None:
    """An outage shorter than the deadline goes by unnoticed."""
    first, line = race.candidate("first")
    leading = asyncio.create_task(first.run(forever))
    for _ in range(10):
        await race.sleep(20)
        line.cut = True
        await race.sleep(5)
        line.cut = False
    assert first.leading
    assert not leading.done()
    await stopped(leading)


@given_a_race
async def test_who_waits_tells_an_outage_once(race: Race) -> None:
    """A standby without an API server says so, and when that is over; it asks for the lease every few seconds."""
    first, line = race.candidate("first")
    waiting = asyncio.create_task(first.run(forever))
    line.cut = True
    with capture_logs() as told:
        await race.sleep(600)
        line.cut = False
        await race.sleep(10)
    events = [line["event"] for line in told if line["log_level"] != "debug"]
    assert events == ["waiting for the lease", "lease not reached", "lease reached again", "lease acquired"]
    await stopped(waiting)


@given_a_race
async def test_who_is_answered_by_a_gateway_does_not_lead(race: Race) -> None:
    """In JSON, and with a 200, it says to reads and writes that it is being maintained; that is no lease."""
    first, _ = race.candidate("first")
    second, line = race.candidate("second")
    await first.acquire()
    line.instead = Response(200, {}, b'{"message":"maintenance"}')
    waiting = asyncio.create_task(second.run(forever))
    for _ in range(20):
        await race.sleep(1)
        assert not second.leading
    await stopped(waiting)


@given_a_race
async def test_a_lease_taken_by_force_is_noticed(race: Race) -> None:
    """If somebody else's name is written into the lease, the leader stops at its next renewal."""
    first, _ = race.candidate("first")
    leading = asyncio.create_task(first.run(forever))
    await race.sleep(10)
    await race.client.patch(LEASE, "op", {"spec": {"holderIdentity": "usurper"}}, "x")
    with pytest.raises(LeaseLost, match="lease x/op of first was taken: usurper holds it now; the process ends"):
        await leading
    assert not first.leading


@given_a_race
async def test_an_error_of_the_leader_is_raised_and_the_lease_released(race: Race) -> None:
    """What the led function raises comes out of run, and the lease is free at once."""
    first, _ = race.candidate("first")

    async def crash() -> None:
        await race.sleep(3)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await first.run(crash)
    assert (await race.lease()).spec.holder_identity == ""


@given_a_race
async def test_a_leader_that_is_stopped_as_it_loses_its_lease_ends_quietly(race: Race) -> None:
    """Nobody waits for the lost lease any more; that it was lost is not told as an error that nobody handled."""
    told: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))
    one, line = race.candidate("one")
    await one.acquire()
    line.cut = True
    holding = asyncio.create_task(one.hold(forever))
    await asyncio.sleep(0)
    (renewing,) = (task for task in asyncio.all_tasks() if task.get_name().startswith("renew lease"))
    renewing.add_done_callback(partial(_cancel, holding))
    await asyncio.wait({holding})
    assert holding.cancelled()
    del holding, renewing
    gc.collect()
    assert told == []


@given_a_race
async def test_a_suspended_leader_cannot_write_when_it_wakes(race: Race) -> None:
    """A process that slept through its lease has its next write refused before it reaches the server."""
    first, line = race.candidate("first")
    fenced = Client(FencedTransport(race.server, first, race.runtime), race.runtime)
    with pytest.raises(NotLeading):
        await fenced.create(THING, {"metadata": {"name": "early"}}, "x")
    await first.acquire()
    await fenced.create(THING, {"metadata": {"name": "a"}}, "x")
    line.cut = True  # nothing renews: as if every task of the process stood still
    await race.sleep(10.5)
    with pytest.raises(NotLeading, match="first does not hold lease x/op"):
        await fenced.create(THING, {"metadata": {"name": "b"}}, "x")
    assert (await fenced.get(THING, "a", "x"))["metadata"]["name"] == "a"


@given_a_race
async def test_a_leader_that_wakes_too_late_says_that_another_has_its_lease(race: Race) -> None:
    """It finds the lease written by somebody, and does not say that nobody holds it."""
    first, _ = race.candidate("first")
    second, _ = race.candidate("second")
    await first.acquire()
    await race.sleep(20)  # nothing renews: as if every task of the process stood still
    await second.acquire()
    with pytest.raises(LeaseLost, match="another process has written it"):
        await first.hold(forever)


@given_a_race
async def test_a_write_is_given_no_longer_than_the_lease_lasts(race: Race) -> None:
    """A write under way is abandoned before another process could take the lease."""
    first, _ = race.candidate("first")
    await first.acquire()
    await race.sleep(9)
    timeouts: list[float | None] = []

    class Recording(Partition):
        async def request(self, request: Request) -> Response:
            timeouts.append(request.timeout)
            return await super().request(request)

    fenced = Client(FencedTransport(Recording(race.server), first, race.runtime), race.runtime)
    await fenced.create(THING, {"metadata": {"name": "a"}}, "x")
    assert timeouts == [pytest.approx(6)]


@pytest.mark.parametrize("times", [(15, 15, 2), (15, 10, 6), (15, 10, 0)])
def test_impossible_times_are_refused(times: tuple[float, float, float]) -> None:
    """Periods under which two could lead, or nobody could renew, are refused with the rule."""
    with pytest.raises(ValueError, match="renew_deadline < lease_duration"):
        LeaseTimes(*times)


cuts = st.lists(st.tuples(st.sampled_from([0, 1, 2]), st.booleans(), st.floats(0.1, 25)), max_size=25)


@settings(max_examples=examples(60), deadline=None)
@given(cuts=cuts, seed=st.integers(0, 5), latency=st.sampled_from([0.0, 0.3, 2.0]))
@on_virtual_time
async def test_never_two_leaders(cuts: list[tuple[int, bool, float]], seed: int, latency: float) -> None:
    """Whatever the network does to three candidates, no two ever believe to lead, and no two are led."""
    race = Race(seed)
    race.server.latency = latency
    candidates = [race.candidate(name) for name in "abc"]
    leading: set[str] = set()

    def lead(name: str) -> Callable[[], Any]:
        async def run() -> None:
            assert not leading
            leading.add(name)
            try:
                await forever()
            finally:
                leading.remove(name)

        return run

    async def campaign(candidate: LeaderElection) -> None:
        while True:
            try:
                await candidate.run(lead(candidate.identity))
            except LeaseLost:
                await race.sleep(1)

    tasks = [asyncio.create_task(campaign(candidate)) for candidate, _ in candidates]

    async def check(seconds: float) -> None:
        end = race.runtime.clock.monotonic() + seconds
        while race.runtime.clock.monotonic() < end:
            await race.sleep(0.25)
            assert sum(candidate.leading for candidate, _ in candidates) <= 1

    for who, cut, seconds in cuts:
        candidates[who][1].cut = cut
        await check(seconds)
    for _, line in candidates:
        line.cut = False
    await check(60)
    assert sum(candidate.leading for candidate, _ in candidates) == 1
    for task in tasks:
        await stopped(task)
