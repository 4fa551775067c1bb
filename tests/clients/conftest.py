"""A served embedded cluster and the clients that talk to it over TLS."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from spinney.runtime import Runtime
from spinney.server import ApiServer, HttpServer, ServerOptions
from tests.clients.kubectl import Kubectl, served


@pytest.fixture
async def server() -> AsyncIterator[ApiServer]:
    """An API server alone, as ``spinney up`` sets it up: no nodes, no controllers."""
    runtime = Runtime.system()
    server = ApiServer(runtime, ServerOptions(track_all_managers=True))
    async with server.running():
        yield server
    runtime.executor.close()


@pytest.fixture
async def http(server: ApiServer) -> AsyncIterator[HttpServer]:
    """The same server on TLS."""
    async with HttpServer(server) as http:
        yield http


@pytest.fixture
def kubectl(http: HttpServer, tmp_path: Path) -> Kubectl:
    """A kubectl whose kubeconfig names the server."""
    return served(http, tmp_path)
