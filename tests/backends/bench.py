"""A context for asking a backend about translations, on an embedded cluster or on none."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TypeVar

from spinney.api.core import NAMESPACE
from spinney.api.grove import PodCliqueSet
from spinney.api.podgang import POD_GANG, PodGang
from spinney.api.schema.crd import manifests
from spinney.api.topology_binding import ClusterTopologyBinding
from spinney.backends import BackendContext, SchedulerBackend
from spinney.kube.client import Client
from spinney.kube.crds import install_crds
from spinney.kube.events import EventRecorder
from spinney.runtime import Runtime
from spinney.server import ApiServer, ServerOptions
from spinney.sim.embedded.transport import InProcessTransport
from spinney.testing.backends import Lookup

B = TypeVar("B", bound=SchedulerBackend)


@asynccontextmanager
async def asking(
    make: Callable[[BackendContext], B],
    *,
    sets: Sequence[PodCliqueSet] = (),
    bindings: Sequence[ClusterTopologyBinding] = (),
    options: ServerOptions | None = None,
) -> AsyncIterator[B]:
    """Give an initialised backend on an embedded cluster that has every CRD."""
    runtime = Runtime.virtual(seed=3)
    server = ApiServer(runtime, options)
    client = Client(InProcessTransport(server), runtime)
    async with server.running():
        await client.create(NAMESPACE, {"metadata": {"name": "test"}})
        await install_crds(client, manifests())
        lookup = Lookup(
            sets={pcs.metadata.name: pcs for pcs in sets},
            bindings={binding.metadata.name: binding for binding in bindings},
        )
        backend = make(BackendContext(client, EventRecorder(client, "test"), runtime.clock, lookup))
        await backend.init()
        yield backend


async def stored(backend: SchedulerBackend, gang: PodGang) -> PodGang:
    """Store a gang and return it as the API server has it."""
    return await backend.context.client.apply(POD_GANG, gang, type=PodGang)
