"""A fleet on virtual time: an hour passes in its events alone, and a seed replays it exactly."""

import asyncio
from contextlib import AsyncExitStack

from spinney.api.coordination import LEASE
from spinney.api.core import NODE, POD
from spinney.api.struct import JSON
from spinney.kube.client import Client
from spinney.nodes import ClusterSpec, Fleet
from spinney.runtime import Runtime, run_virtual
from spinney.runtime.tasks import end
from spinney.server import ApiServer
from spinney.sim.embedded.transport import InProcessTransport
from tests.nodes.builders import a_pod_manifest

SPEC = """
nodes: [{name: "n{index}", count: 3, capacity: {cpu: 8}}]
pods: {start: 1s..3s, init: exp(2s), ready: 1s..10s, stop: exp(1s)}
"""


async def an_hour(seed: int, pods: int = 12) -> list[JSON]:
    """Let pods live on three nodes for an hour and return every version that each of them had."""
    runtime = Runtime.virtual(seed)
    client = Client(InProcessTransport(ApiServer(runtime)), runtime)
    versions: list[JSON] = []

    async def record() -> None:
        async for event in client.watch(POD, "default", resource_version="0", timeout_seconds=7200):
            versions.append({"type": event.type, **event.object})  # noqa: PERF401 - what came before a cancel counts

    async with AsyncExitStack() as stack:
        await stack.enter_async_context(Fleet(client, ClusterSpec.parse(SPEC), runtime=runtime).running())
        recording = asyncio.create_task(record())
        for number in range(pods):
            failing = {"spinney.dev/fail-after": "exp(10m)"}
            manifest = a_pod_manifest(f"p{number}", node=f"n{number % 3}", annotations=failing)
            await client.create(POD, manifest, "default")
        await runtime.clock.sleep(3000)
        for number in range(0, pods, 2):
            await client.delete(POD, f"p{number}", "default")
        await runtime.clock.sleep(600)
        await end(recording)
    return versions


def test_a_seed_replays_an_hour_exactly() -> None:
    """Two runs of one seed are the same to the last timestamp and resource version."""
    first, second = (run_virtual(an_hour(seed=5)) for _ in range(2))
    assert first == second
    assert {version["type"] for version in first} == {"ADDED", "MODIFIED", "DELETED"}


def test_another_seed_is_another_hour() -> None:
    """Latencies come from the runtime's randomness and from nowhere else."""
    assert run_virtual(an_hour(seed=5)) != run_virtual(an_hour(seed=6))


def test_pods_without_latency_cost_one_status_write_each() -> None:
    """From bound to ready is one version of the pod after the one it was created with."""

    async def versions() -> list[str]:
        runtime = Runtime.virtual()
        client = Client(InProcessTransport(ApiServer(runtime)), runtime)
        spec = ClusterSpec.parse("nodes: [{name: n0, capacity: {cpu: 8}}]")
        before = (await client.list(POD, "default")).resource_version
        async with Fleet(client, spec, runtime=runtime).running():
            waits = [{"name": "one", "image": "i"}, {"name": "two", "image": "i"}]
            await client.create(POD, a_pod_manifest("p", init_containers=waits), "default")
            await runtime.clock.sleep(60)
        watch = client.watch(POD, "default", resource_version=before, timeout_seconds=1)
        return [event.object["status"].get("phase", "") async for event in watch]

    assert run_virtual(versions()) == ["Pending", "Running"]


def test_heartbeats_keep_their_intervals() -> None:
    """In ten minutes a node renews its lease every ten seconds and writes its status every five minutes."""

    async def beats() -> tuple[int, int]:
        runtime = Runtime.virtual()
        client = Client(InProcessTransport(ApiServer(runtime)), runtime)
        spec = ClusterSpec.parse("nodes: [{name: 'n{index}', count: 7}]")
        async with Fleet(client, spec, runtime=runtime).running():
            lease = await client.get(LEASE, "n3", "kube-node-lease")
            node = await client.get(NODE, "n3")
            await runtime.clock.sleep(605)
        leases = client.watch(
            LEASE,
            "kube-node-lease",
            field_selector="metadata.name=n3",
            resource_version=lease["metadata"]["resourceVersion"],
            timeout_seconds=1,
        )
        nodes = client.watch(
            NODE,
            field_selector="metadata.name=n3",
            resource_version=node["metadata"]["resourceVersion"],
            timeout_seconds=1,
        )
        return len([event async for event in leases]), len([event async for event in nodes])

    renewals, statuses = run_virtual(beats())
    assert 59 <= renewals <= 61
    assert statuses == 2
