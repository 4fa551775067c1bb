"""Requests to the API server are counted by verb, resource and answer, and so is each that is sent again."""

import pytest
from prometheus_client import CollectorRegistry

from spinney.api.core import CONFIG_MAP, POD
from spinney.kube.client import Client
from spinney.kube.errors import ConnectionRefused, NotFound
from spinney.kube.request_metrics import RequestMetrics, resource_in
from spinney.kube.transport import Response
from tests.scheduler.process.world import NS, World, given_a_world, status


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/api/v1/pods", "pods"),
        ("/api/v1/namespaces", "namespaces"),
        ("/api/v1/namespaces/a", "namespaces"),
        ("/api/v1/namespaces/a/pods", "pods"),
        ("/api/v1/namespaces/a/pods/b", "pods"),
        ("/api/v1/namespaces/a/pods/b/binding", "pods/binding"),
        ("/apis/scheduling.run.ai/v2/queues/q/status", "queues/status"),
        ("/apis/grove.io/v1alpha1/namespaces/a/podcliquesets", "podcliquesets"),
        ("/version", ""),
        ("/apis", ""),
    ],
)
def test_paths_name_resources(path: str, expected: str) -> None:
    """Names of objects and namespaces never become labels."""
    assert resource_in(path) == expected


@given_a_world
async def test_requests_and_retries_are_counted(world: World) -> None:
    """A read that finds no connection is sent again; both are counted, and so is what the server answers."""
    registry = CollectorRegistry()
    client = Client(world.transport, world.runtime).measured(RequestMetrics(registry))
    faults: list[Response | Exception] = [ConnectionRefused("nobody listens"), status(429, "TooManyRequests")]
    world.transport.fault = lambda method, path: faults.pop(0) if faults else None
    await client.list(POD, NS)
    with pytest.raises(NotFound):
        await client.get(CONFIG_MAP, "none", NS)

    def counted(metric: str, **labels: str) -> float | None:
        return registry.get_sample_value(metric, labels)

    assert counted("spinney_api_requests_total", verb="list", resource="pods", code="refused") == 1
    assert counted("spinney_api_requests_total", verb="list", resource="pods", code="429") == 1
    assert counted("spinney_api_requests_total", verb="list", resource="pods", code="200") == 1
    assert counted("spinney_api_retries_total", verb="list", code="refused") == 1
    assert counted("spinney_api_retries_total", verb="list", code="429") == 1
    assert counted("spinney_api_requests_total", verb="get", resource="configmaps", code="404") == 1
    assert counted("spinney_api_request_seconds_count", verb="list") == 3
