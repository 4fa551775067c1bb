"""A process starts and stops in order, and names the part that failed."""

import asyncio
import os
import signal
from collections import deque
from contextlib import nullcontext
from typing import Any

import aiohttp
import pytest
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from spinney.api.coordination import LEASE
from spinney.api.keys import Key
from spinney.kube.client import Client
from spinney.kube.controller import Controller
from spinney.kube.delegation import Delegation
from spinney.kube.guarding import NotLeading
from spinney.kube.lease import LeaderElection, LeaseLost
from spinney.kube.manager import OPTIONAL_SECONDS, ComponentFailed, Manager
from spinney.kube.metrics import KubeMetrics
from spinney.kube.serving import HealthServer
from spinney.runtime import Runtime, run_virtual
from spinney.server import ApiServer, ServerOptions
from spinney.sim.embedded.transport import InProcessTransport
from tests.kube.model import THING, ModelServer
from tests.kube.things import Thing
from tests.virtual_time import on_virtual_time, opening


class Process:
    """A manager with one controller, whose story is written down."""

    def __init__(self, *, with_lease: bool = True, identity: str = "one", server: ModelServer | None = None) -> None:
        self.runtime = Runtime.virtual()
        self.server = server or ModelServer(self.runtime)
        self.client = Client(self.server, self.runtime)
        self.election = LeaderElection(self.client, "op", "x", identity=identity, runtime=self.runtime)
        self.manager = Manager(self.client, self.runtime, election=self.election if with_lease else None)
        self.cache = self.manager.cache(THING, Thing)
        self.story: list[Any] = []
        self.controller = Controller("things", self.reconcile, runtime=self.runtime)
        self.controller.watch(self.cache)
        self.manager.add(self.controller)
        self.seconds = 0.0

    async def bind_for_ever(self) -> None:
        """Go on finishing what was begun when a stop is asked for."""
        try:
            await self.runtime.clock.sleep(1000)
        finally:
            await self.runtime.clock.sleep(1000)

    async def started(self) -> asyncio.Task[None]:
        """Return the running process, once it is ready and has had a second."""
        running = asyncio.create_task(self.manager.run())
        await self.manager.wait_until_ready()
        await self.runtime.clock.sleep(1)
        return running

    async def seconds_to_stop(self, **grace: float) -> float:
        """Start, ask for a stop, and return how long that takes."""
        running = await self.started()
        self.manager.stop(**grace)
        before = self.runtime.clock.monotonic()
        await running
        return self.runtime.clock.monotonic() - before

    async def reconcile(self, key: Key) -> None:
        """Write down that it ran; take as long as the test says."""
        assert self.cache.synced
        assert self.election.leading
        self.story.append(("began", key.name))
        await self.runtime.clock.sleep(self.seconds)
        self.story.append(("ended", key.name))


given_a_process = opening(lambda: nullcontext(Process()))


@given_a_process
async def test_controllers_run_once_caches_have_synced_and_the_lease_is_held(process: Process) -> None:
    """Reconciles begin only after sync and with the lease, and a stop releases it."""
    process.server.put("a", 1)
    running = await process.started()
    assert process.story == [("began", "a"), ("ended", "a")]
    process.manager.stop()
    await running
    assert (await process.client.get(LEASE, "op", "x"))["spec"]["holderIdentity"] == ""


@given_a_process
async def test_a_resource_can_be_read_before_the_process_runs(process: Process) -> None:
    """It is listed once, whoever follows it later is told of what was found, and the process goes on with it."""
    process.server.put("a", 1)
    process.manager.begin(THING, Thing)
    await process.cache.wait_for_sync()
    running = await process.started()
    process.server.put("b", 1)
    await process.runtime.clock.sleep(1)
    assert process.story == [("began", "a"), ("ended", "a"), ("began", "b"), ("ended", "b")]
    assert len(process.server.listed) == 1
    process.manager.stop()
    await running


@given_a_process
async def test_what_was_begun_is_ended_where_the_process_never_runs(process: Process) -> None:
    """A configuration that turns out to be wrong leaves no watch behind."""
    process.manager.begin(THING, Thing)
    await process.cache.wait_for_sync()
    others = asyncio.all_tasks()
    await process.manager.abandon()
    assert len(asyncio.all_tasks()) < len(others)
    process.server.put("a", 1)
    await process.runtime.clock.sleep(1)
    assert process.cache.keys() == []


@given_a_process
async def test_a_stop_lets_reconciles_finish_and_then_releases_the_lease(process: Process) -> None:
    """The reconcile under way ends before the lease is given up."""
    process.seconds = 5
    process.server.put("a", 1)
    running = await process.started()
    process.manager.stop()
    await process.runtime.clock.sleep(1)
    assert process.election.leading
    await running
    assert process.story == [("began", "a"), ("ended", "a")]
    assert not process.election.leading


@given_a_process
async def test_a_reconcile_that_does_not_end_is_cancelled_after_the_grace_period(process: Process) -> None:
    """A stop takes no longer than the grace period."""
    process.seconds = 1000
    process.server.put("a", 1)
    assert await process.seconds_to_stop() == pytest.approx(10, abs=1)


@given_a_process
async def test_a_runnable_that_goes_on_finishing_is_cancelled_after_the_grace_period(process: Process) -> None:
    """Whoever asks for a stop says how long what was begun may take; then the process ends without it."""
    process.manager.add_runnable("binding", process.bind_for_ever)
    assert await process.seconds_to_stop(grace_seconds=2) == pytest.approx(2, abs=1)


@given_a_process
async def test_reconciles_and_runnables_have_one_grace_period_together(process: Process) -> None:
    """A reconcile and a runnable that both go on do not make a stop twice as long."""
    process.seconds = 1000
    process.server.put("a", 1)
    process.manager.add_runnable("binding", process.bind_for_ever)
    assert await process.seconds_to_stop(grace_seconds=4) == pytest.approx(4, abs=1)


@given_a_process
async def test_a_runnable_begins_nothing_new_while_reconciles_finish(process: Process) -> None:
    """A scheduler's loop ends when a stop is asked for: it does not go on deciding until the controllers are done."""
    process.seconds = 8
    process.server.put("a", 1)
    rounds = 0

    async def schedule() -> None:
        nonlocal rounds
        while True:
            rounds += 1
            await process.runtime.clock.sleep(1)

    process.manager.add_runnable("scheduling", schedule)
    running = await process.started()
    process.manager.stop()
    before = rounds
    await running
    assert rounds == before
    assert process.story == [("began", "a"), ("ended", "a")]


@pytest.mark.parametrize("situation", ["unsynced", "not leading"])
@given_a_process
async def test_a_process_can_be_stopped_before_it_leads(process: Process, situation: str) -> None:
    """A stop while waiting for caches or for the lease ends the process without error."""
    if situation == "unsynced":
        process.server.down = True
    else:
        other = LeaderElection(process.client, "op", "x", identity="other", runtime=process.runtime)
        await other.acquire()
    running = asyncio.create_task(process.manager.run())
    await process.runtime.clock.sleep(5)
    process.manager.stop()
    await running
    assert process.story == []


def test_a_part_that_fails_is_named_and_stops_the_process() -> None:
    """An error in a runnable, a cache's subscriber or a controller ends the process with an error that names it."""

    async def main(breaks: str) -> None:
        process = Process()

        async def runnable() -> None:
            await process.runtime.clock.sleep(3)
            if breaks == "webhook":
                raise OSError("port taken")
            await asyncio.Event().wait()

        def subscriber(_: object) -> None:
            if breaks == "cache of things":
                raise OSError("ledger broken")

        process.manager.add_runnable("webhook", runnable)
        process.cache.subscribe(subscriber)
        process.server.put("a", 1)
        with pytest.raises(ComponentFailed, match=breaks) as caught:
            await process.manager.run()
        assert isinstance(caught.value.__cause__, OSError)
        assert not process.election.leading

    run_virtual(main("webhook"))
    run_virtual(main("cache of things"))


@given_a_process
async def test_an_api_server_that_is_away_is_waited_for(process: Process) -> None:
    """A process that begins in an outage goes on as soon as it is over, and says once that it waits."""
    process.server.down = True
    with capture_logs() as told:
        reached = asyncio.create_task(process.manager.reach())
        await process.runtime.clock.sleep(3600)
        assert not reached.done()
        process.server.down = False
        await process.runtime.clock.sleep(10)
    assert await reached
    assert [line["event"] for line in told] == ["waiting for the API server"]


@given_a_process
async def test_who_waits_for_the_api_server_may_be_stopped(process: Process) -> None:
    """A stop is not held up by an outage, nor by an answer that does not come."""
    process.server.latency = 3600
    reached = asyncio.create_task(process.manager.reach())
    await process.runtime.clock.sleep(60)
    process.manager.stop()
    before = process.runtime.clock.monotonic()
    assert not await reached
    assert process.runtime.clock.monotonic() == before


@given_a_process
async def test_losing_the_lease_ends_the_process(process: Process) -> None:
    """When renewals fail for too long, reconciles are cancelled and the reason is raised."""
    process.seconds = 1000
    process.server.put("a", 1)
    running = await process.started()
    process.server.down = True
    with pytest.raises(LeaseLost):
        await running
    assert process.story == [("began", "a")]


@given_a_process
async def test_the_clients_writes_are_fenced(process: Process) -> None:
    """The manager's client writes only while the lease is held; the one it was given is as it was."""
    with pytest.raises(NotLeading):
        await process.manager.client.create(THING, {"metadata": {"name": "a"}}, "x")
    await process.client.create(THING, {"metadata": {"name": "a"}}, "x")


@on_virtual_time
async def test_a_cache_is_shared() -> None:
    """Whoever asks for the same kind and selection gets the same cache, with the indexes of both."""
    process = Process(with_lease=False)
    again = process.manager.cache(THING, Thing, indexes={"value": lambda thing: [thing.value]})
    assert again is process.cache
    assert again.has_index("value")
    assert process.manager.cache(THING, Thing, label_selector="a=b") is not process.cache


async def test_health_and_metrics_are_served() -> None:
    """The endpoints say whether the process is alive and ready and what it counted, naming what is wrong."""
    runtime = Runtime.system()
    server = ModelServer(runtime)
    server.down = True
    metrics = KubeMetrics(CollectorRegistry())
    health = HealthServer(metrics.registry, host="127.0.0.1", port=0)
    manager = Manager(Client(server, runtime), runtime, health=health, metrics=metrics)
    cache = manager.cache(THING, Thing)
    reaching = asyncio.create_task(manager.reach())
    await health.wait_until_serving()
    host, port = health.address
    async with aiohttp.ClientSession(f"http://{host}:{port}") as session:

        async def get(path: str) -> tuple[int, str]:
            async with session.get(path) as response:
                return response.status, await response.text()

        assert await get("/livez") == (200, "ok\n")
        status, text = await get("/readyz")
        assert (status, text.partition(":")[0]) == (503, "API server")
        server.down, server.list_faults = False, deque(["refuse"] * 100)
        assert await reaching
        assert await get("/readyz") == (503, "start: not complete yet\n")
        running = asyncio.create_task(manager.run())
        await asyncio.sleep(0)
        assert await get("/readyz") == (503, "caches: not synced: things.test.spinney.dev\n")
        server.list_faults.clear()
        await cache.wait_for_sync()
        assert await get("/readyz") == (200, "ok\n")
        status, text = await get("/metrics")
        assert status == 200
        assert 'spinney_cached_objects{resource="things.test.spinney.dev"} 0.0' in text
        assert await get("/healthz") == (200, "ok\n")
        assert (await get("/nonsense"))[0] == 404
    manager.stop()
    await running
    runtime.executor.close()


async def test_readiness_waits_for_the_lease_and_ends_with_a_stop() -> None:
    """A process that has not found out who leads is not ready, nor one that was asked to stop."""
    runtime = Runtime.system()
    server = ModelServer(runtime)
    client = Client(server, runtime)
    election = LeaderElection(client, "op", "x", identity="one", runtime=runtime)
    assert election.unsettled() == "lease x/op was not read yet"
    health = HealthServer(CollectorRegistry(), host="127.0.0.1", port=0)
    manager = Manager(client, runtime, election=election, health=health)
    answered = asyncio.Event()

    async def finishing() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await answered.wait()

    manager.add_runnable("finishing", finishing, needs_lease=False)
    running = asyncio.create_task(manager.run())
    await manager.wait_until_ready()
    assert election.unsettled() is None
    host, port = health.address
    async with aiohttp.ClientSession(f"http://{host}:{port}") as session:
        manager.stop(grace_seconds=60)
        async with session.get("/readyz") as response:
            assert (response.status, await response.text()) == (503, "stopping: a stop was asked for\n")
    answered.set()
    await running
    runtime.executor.close()


@given_a_process
async def test_what_others_still_ask_lingers_after_a_stop(process: Process) -> None:
    """Webhooks are answered for a while after the lease was given up: API servers learn a little later."""
    clock = process.runtime.clock
    manager = Manager(process.client, process.runtime, election=process.election, linger_seconds=5)
    ended: list[float] = []

    async def serve() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(clock.monotonic())

    manager.add_runnable("webhooks", serve, needs_lease=False)
    running = asyncio.create_task(manager.run())
    await manager.wait_until_ready()
    stopped = clock.monotonic()
    manager.stop()
    await clock.sleep(1)
    assert not process.election.leading
    await running
    assert ended[0] - stopped >= 5


async def test_paths_of_components_are_for_those_who_may_read_them() -> None:
    """From another host a bearer token is needed, and the right to get the path; this host needs neither."""
    runtime = Runtime.system()
    api = ApiServer(runtime, ServerOptions(authorization="RBAC"))
    client = Client(InProcessTransport(api), runtime)
    api.authenticator.trust("of-an-administrator")
    guard = Delegation(client).refusal
    assert (await guard("", "/explanations") or (0, ""))[0] == 401
    assert (await guard("Bearer nonsense", "/explanations") or (0, ""))[0] == 401
    assert await guard("Bearer of-an-administrator", "/explanations") is None
    runtime.executor.close()


async def test_a_signal_stops_the_process_gracefully() -> None:
    """SIGTERM, as the kubelet sends it, is a graceful stop."""
    runtime = Runtime.system()
    manager = Manager(Client(ModelServer(runtime), runtime), runtime)
    manager.stop_on_signals()
    running = asyncio.create_task(manager.run())
    await manager.wait_until_ready()
    os.kill(os.getpid(), signal.SIGTERM)
    async with asyncio.timeout(60):
        await running
    runtime.executor.close()


@on_virtual_time
async def test_a_kind_that_one_part_needs_is_waited_for() -> None:
    """That another part of the process can do without it, or has begun to read it, changes nothing."""
    process = Process(with_lease=False)
    process.server.list_faults = deque(["refuse"] * 100)
    process.manager.begin(THING, Thing)
    process.manager.cache(THING, Thing, optional=True)
    running = asyncio.create_task(process.manager.run())
    ready = asyncio.create_task(process.manager.wait_until_ready())
    await process.runtime.clock.sleep(2 * OPTIONAL_SECONDS)
    assert not ready.done()
    process.server.list_faults.clear()
    await ready
    process.manager.stop()
    await running


async def test_a_process_that_works_without_a_kind_is_ready_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kind that it can do without, and that cannot be listed, is told beside that it is ready, until it can be."""
    monkeypatch.setattr("spinney.kube.manager.OPTIONAL_SECONDS", 0)
    runtime = Runtime.system()
    server = ModelServer(runtime)
    server.list_faults = deque(["refuse"] * 100)
    health = HealthServer(CollectorRegistry(), host="127.0.0.1", port=0)
    manager = Manager(Client(server, runtime), runtime, health=health)
    cache = manager.cache(THING, Thing, optional=True)
    running = asyncio.create_task(manager.run())
    await manager.wait_until_ready()
    host, port = health.address
    async with aiohttp.ClientSession(f"http://{host}:{port}") as session:
        async with session.get("/readyz") as response:
            told = await response.text()
            assert (response.status, told.splitlines()[0]) == (200, "ok")
            assert "kinds that cannot be listed: things.test.spinney.dev (" in told
        server.list_faults.clear()
        await cache.wait_for_sync()
        async with session.get("/readyz") as response:
            assert (response.status, await response.text()) == (200, "ok\n")
    manager.stop()
    await running
    runtime.executor.close()
