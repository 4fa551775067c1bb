"""What a long-running process runs in: its lease, its metrics, and an end that lets begun work finish."""

import asyncio
from typing import Protocol

from prometheus_client import CollectorRegistry

from spinney.kube.client import Client
from spinney.kube.lease import LeaderElection, process_identity
from spinney.kube.manager import Manager
from spinney.kube.metrics import KubeMetrics
from spinney.kube.serving import HealthServer


class Process(Protocol):
    """Something that runs until it is asked to stop."""

    async def run(self) -> None:
        """Run until stopped."""

    def stop(self) -> None:
        """Ask for a graceful stop."""


def managed(
    client: Client, component: str, *, lease_namespace: str | None, endpoint: tuple[str, int | None]
) -> Manager:
    """Compose what a process runs in; with a lease the manager's client writes nothing without holding it.

    ``endpoint`` is the address and port of metrics and probes; without a port they are not served.
    """
    runtime, metrics, election = client.runtime, KubeMetrics(CollectorRegistry()), None
    if lease_namespace is not None:
        identity = process_identity(runtime)
        election = LeaderElection(
            client, component, lease_namespace, identity=identity, runtime=runtime, metrics=metrics
        )
    address, port = endpoint
    health = HealthServer(metrics.registry, host=address, port=port) if port is not None else None
    return Manager(client, runtime, election=election, health=health, metrics=metrics)


async def until_cancelled(process: Process, name: str) -> None:
    """Run a process; on cancellation let it finish what it has begun before passing the cancellation on."""
    running = asyncio.create_task(process.run(), name=name)
    try:
        await asyncio.shield(running)
    except asyncio.CancelledError:
        process.stop()
        await running
        raise
