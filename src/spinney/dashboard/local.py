"""The dashboard on loopback, for the cluster that runs in this process."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version

from spinney.dashboard.access import Access
from spinney.dashboard.advising import Adviser
from spinney.dashboard.serving import Dashboard
from spinney.dashboard.viewers import Viewers
from spinney.kube.client import Client
from spinney.kube.read_only import ReadOnlyTransport
from spinney.runtime import ThreadExecutor
from spinney.sim.embedded import EmbeddedCluster

HOST = "127.0.0.1"


@asynccontextmanager
async def dashboard_of(cluster: EmbeddedCluster, *, port: int = 0) -> AsyncIterator[str]:
    """Serve an embedded cluster's dashboard for the time of the block; gives its address. It only reads."""
    runtime = cluster.runtime
    # Questions take seconds; the cluster's own worker is the scheduler's.
    executor = ThreadExecutor(name="spinney-dashboard")

    def connect(_: str | None) -> Client:
        return Client(ReadOnlyTransport(cluster.connect("spinney-dashboard").transport), runtime)

    viewers = Viewers(connect, runtime, source="the embedded cluster", lasting=True)
    access = Access(host=HOST, mode="kubeconfig", tls=False)
    try:
        dashboard = Dashboard(viewers, access, Adviser(executor), version=version("spinney"))
        async with dashboard.serving(port) as address:
            yield address
    finally:
        executor.close()
