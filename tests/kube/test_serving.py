"""Health and metrics are served where one says, to everybody; what names workloads is for those who may read it."""

import asyncio
import errno
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import aiohttp
import pytest
from prometheus_client import CollectorRegistry

from spinney.kube.client import Client
from spinney.kube.delegation import Delegation
from spinney.kube.lease import LeaderElection, LeaseTimes
from spinney.kube.manager import Manager
from spinney.kube.serving import HealthServer
from spinney.runtime import Runtime
from spinney.server import ApiServer, ServerOptions
from spinney.sim.embedded.transport import InProcessTransport

QUICK = LeaseTimes(lease_duration=3, renew_deadline=2, retry_period=0.1)


async def explanations(path: str, query: Mapping[str, str]) -> bytes | None:
    """Answer as a scheduler does."""
    del query
    return b"[]" if path == "/explanations" else None


@asynccontextmanager
async def served() -> AsyncIterator[tuple[str, int]]:
    """Serve on loopback, with explanations for those whom the API server lets read them; yield the address."""
    runtime = Runtime.system()
    api = ApiServer(runtime, ServerOptions(authorization="RBAC"))
    api.authenticator.trust("of-an-administrator")
    server = HealthServer(CollectorRegistry(), host="127.0.0.1", port=0)
    server.answer_others(explanations, Delegation(Client(InProcessTransport(api), runtime)).refusal)
    await server.start()
    try:
        yield server.address
    finally:
        await server.stop()
        runtime.executor.close()


async def asked(address: tuple[str, int], path: str, headers: Mapping[str, str]) -> int:
    """Return the status of an answer."""
    url = "http://{}:{}{}".format(*address, path)
    async with aiohttp.ClientSession(headers=headers) as session, session.get(url) as answer:
        return answer.status


async def test_nobody_is_served_on_another_address() -> None:
    """Whoever asks for one address is not heard on another of the same machine."""
    async with served() as (host, port):
        assert host == "127.0.0.1"
        with socket.socket() as other:
            other.setblocking(False)
            with pytest.raises(OSError) as refused:  # noqa: PT011 - the number is asserted below
                await asyncio.get_running_loop().sock_connect(other, ("127.0.0.2", port))
        assert refused.value.errno == errno.ECONNREFUSED


@pytest.mark.parametrize(
    ("path", "token", "expected"),
    [
        ("/explanations", "", 401),
        ("/explanations", "nonsense", 401),
        ("/explanations", "of-an-administrator", 200),
        ("/metrics", "", 200),
        ("/livez", "", 200),
    ],
)
async def test_other_hosts_need_a_token_for_what_names_workloads(
    path: str, token: str, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From another host explanations need a token whose owner may read them; health and metrics need none."""
    monkeypatch.setattr("spinney.kube.serving._is_this_host", lambda address: False)
    headers = {"authorization": f"Bearer {token}"} if token else {}
    async with served() as address:
        assert await asked(address, path, headers) == expected


async def test_this_host_needs_no_token() -> None:
    """``kubectl port-forward`` comes from loopback."""
    async with served() as address:
        assert await asked(address, "/explanations", {}) == 200


async def test_a_replica_that_stands_by_says_who_leads() -> None:
    """Its own answer would be taken for the leader's: that nothing waits, for instance. Metrics it answers."""
    runtime = Runtime.system()
    client = Client(InProcessTransport(ApiServer(runtime)), runtime)
    first, second = (
        LeaderElection(client, "spinney-scheduler", "default", identity=f"{name}_uid", runtime=runtime, times=QUICK)
        for name in ("first", "second")
    )
    health = HealthServer(CollectorRegistry(), host="127.0.0.1", port=0)
    manager = Manager(client, runtime, election=second, health=health)
    manager.answer_others(explanations)
    await first.acquire()
    running = asyncio.create_task(manager.run())
    await health.wait_until_serving()
    url = "http://{}:{}".format(*health.address)
    async with aiohttp.ClientSession() as session:
        async with session.get(f"{url}/metrics") as answer:
            assert answer.status == 200
        while True:
            async with session.get(f"{url}/explanations") as answer:
                assert answer.status == 503
                told = await answer.text()
            if "nobody" not in told:
                break
        assert told == "this replica stands by: first holds lease default/spinney-scheduler\n"
        await first.release()
        await manager.wait_until_ready()
        async with session.get(f"{url}/explanations") as answer:
            assert (answer.status, await answer.text()) == (200, "[]")
    manager.stop()
    await running
    runtime.executor.close()
