"""The dashboard on loopback, for the cluster that runs in this process."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from importlib.metadata import version

from spinney.dashboard.access import Access
from spinney.dashboard.advising import Adviser
from spinney.dashboard.schedulers import SchedulerUnreadable
from spinney.dashboard.serving import Dashboard
from spinney.dashboard.viewers import Viewers
from spinney.kube.client import Client
from spinney.kube.guarding import ReadOnlyTransport
from spinney.runtime import ThreadExecutor
from spinney.sim.embedded.stack import EmbeddedCluster

HOST = "127.0.0.1"


class LocalScheduler:
    """The session scheduler of an embedded cluster."""

    name = "spinney-scheduler"

    def __init__(self, cluster: EmbeddedCluster) -> None:
        self._endpoint = cluster.stack.schedulers.session.endpoint

    async def read(self, path: str, query: Mapping[str, str], token: str | None) -> bytes:
        answer = await self._endpoint.answer(path, query)
        if answer is None:
            raise SchedulerUnreadable(f"the scheduler answers no {path}")
        return answer


@asynccontextmanager
async def dashboard_of(cluster: EmbeddedCluster, *, port: int = 0, setting: str = "") -> AsyncIterator[str]:
    """Serve an embedded cluster's dashboard for the time of the block; gives its address. It only reads.

    ``setting`` is what chooses the port, for messages.
    """
    runtime = cluster.runtime
    # Questions take seconds; the cluster's own worker is the scheduler's.
    executor = ThreadExecutor(name="spinney-dashboard")

    def connect(_: str | None) -> Client:
        client = cluster.connect("spinney-dashboard")
        return client.over(ReadOnlyTransport(client.transport))

    viewers = Viewers(connect, runtime, source="the embedded cluster", lasting=True)
    access = Access(host=HOST, mode="kubeconfig", tls=False)
    try:
        dashboard = Dashboard(
            viewers, access, Adviser(executor), version=version("spinney"), schedulers=[LocalScheduler(cluster)]
        )
        async with dashboard.serving(port, setting=setting) as address:
            yield address
    finally:
        executor.close()
