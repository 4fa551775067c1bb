"""A served embedded cluster with a stock Go component of Kubernetes 1.37 as its client."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from spinney.api.struct import JSON
from spinney.runtime import Runtime
from spinney.server import ApiServer, HttpServer
from spinney.testing.controlplane.binaries import Binaries, GoMissing, find_binaries
from spinney.testing.controlplane.process import ServerProcess
from spinney.testing.controlplane.tether import Tether
from tests.server.api import Api

CONTENT_TYPES = pytest.mark.parametrize(
    "content_type", ["application/json", "application/vnd.kubernetes.protobuf"], ids=["json", "protobuf"]
)

Command = Callable[[Binaries, Path], Sequence[str | Path]]  # from the binaries and a kubeconfig


@asynccontextmanager
async def with_component(directory: Path, command: Command) -> AsyncIterator[Api]:
    """Serve over TLS and run ``command`` for the time of the block."""
    try:
        binaries = find_binaries("1.37")
    except GoMissing as missing:
        pytest.skip(f"NO STOCK COMPONENTS: {missing}")
    runtime = Runtime.system()
    server = ApiServer(runtime)
    async with server.running(), HttpServer(server) as http:
        kubeconfig = directory / "kubeconfig"
        http.write_kubeconfig(kubeconfig)
        with Tether() as tether:
            started = command(binaries, kubeconfig)
            process = ServerProcess("component", started, directory=directory, clock=runtime.clock, tether=tether)
            try:
                yield Api(server)
            finally:
                process.stop()
    runtime.executor.close()


async def until(api: Api, collection: str, holds: Callable[[list[JSON]], bool], **query: str) -> list[Any]:
    """Wait until ``holds`` for the objects of a collection, and return them."""
    listed = await api.get(collection, **query)
    present = {item["metadata"]["name"]: item for item in listed["items"]}
    revision = listed["metadata"]["resourceVersion"]
    async with api.watch(collection, None, resourceVersion=revision, **query) as watch:
        while not holds(list(present.values())):
            event = await watch.next()
            name = event["object"]["metadata"]["name"]
            present[name] = event["object"]
            if event["type"] == "DELETED":
                del present[name]
    return list(present.values())
