"""Asking a backend about a workload where there is no cluster.

A backend judges a PodCliqueSet by the set alone, or by what it finds in the cluster. It is asked with a client that
reaches nothing: an answer that came about without a request is the answer admission would give, and everything else
stays open. A backend whose ``init`` needs the cluster may answer differently after it, so it is only believed where it
declares that it does not (``validates_before_init``).
"""

from contextlib import AbstractAsyncContextManager
from typing import Any

from spinney.api.grove import PodCliqueSet
from spinney.api.podgang import PodGang
from spinney.api.topology_binding import ClusterTopologyBinding
from spinney.backends import BackendContext, BackendUnavailable, Degradation, SchedulerBackend
from spinney.kube.client import Client
from spinney.kube.events import EventRecorder
from spinney.kube.transport import Request, Response, StreamingResponse
from spinney.runtime import Runtime


class NeedsCluster(Exception):
    """A backend wanted to know something that only a cluster knows."""


async def judge(kind: type[SchedulerBackend], config: Any, pcs: PodCliqueSet, *, runtime: Runtime) -> list[Degradation]:
    """Return what a backend says of a set; raises :class:`Rejected`, or :class:`NeedsCluster` where it stays open."""
    client = Client(Unreachable(), runtime)
    backend = kind(BackendContext(client, EventRecorder(client, "validate"), runtime.clock, _Nothing()), config)
    try:
        await backend.init()
    except (NeedsCluster, BackendUnavailable) as error:
        if not backend.validates_before_init:
            raise NeedsCluster(backend.name) from error
    return await backend.validate_pod_clique_set(pcs, None)


class Unreachable:
    """A transport to no cluster."""

    async def request(self, request: Request) -> Response:
        raise NeedsCluster(request.path)

    def stream(self, request: Request) -> AbstractAsyncContextManager[StreamingResponse]:
        raise NeedsCluster(request.path)

    async def close(self) -> None:
        return


class _Nothing:
    """Look-ups where nothing is."""

    def pod_gang(self, namespace: str, name: str) -> PodGang | None:
        return None

    def pod_clique_set(self, gang: PodGang) -> PodCliqueSet | None:
        return None

    def topology_binding(self, name: str) -> ClusterTopologyBinding | None:
        return None
