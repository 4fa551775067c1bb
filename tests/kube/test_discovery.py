"""What a server serves is learnt in one answer where the server can give it, and otherwise group by group."""

from collections.abc import Mapping
from typing import Any

import pytest
from aiohttp import web

from spinney.api.coordination import LEASE
from spinney.api.core import NODE, POD
from spinney.api.resource import Resource
from spinney.kube.client import Client
from spinney.kube.discovery import served
from spinney.kube.errors import UndecodableResponse
from spinney.kube.http import Endpoint, HttpTransport
from spinney.runtime import Runtime
from tests.kube.tinyserver import serving, status_answer

AWAY = Resource(group="metrics.example", version="v1", kind="Reading", plural="readings")
ABSENT = Resource(group="nowhere.example", version="v1", kind="Nothing", plural="nothings")

OLD_FORM: Mapping[str, Any] = {
    "/api": {"kind": "APIVersions", "versions": ["v1"]},
    "/apis": {"kind": "APIGroupList", "groups": [{"name": "coordination.k8s.io", "versions": []}]},
    "/api/v1": {"kind": "APIResourceList", "resources": [{"name": "pods"}, {"name": "pods/status"}]},
    "/apis/coordination.k8s.io/v1": {"kind": "APIResourceList", "resources": [{"name": "leases"}]},
    "/apis/metrics.example/v1": {"kind": "APIResourceList", "resources": [{"name": "readings"}]},
}


def aggregated(group: str, *resources: str, freshness: str = "Current") -> Mapping[str, Any]:
    version = {"version": "v1", "resources": [{"resource": name} for name in resources], "freshness": freshness}
    metadata = {"name": group, "creationTimestamp": None} if group else {"creationTimestamp": None}
    return {"metadata": metadata, "versions": [version]}


NEW_FORM: Mapping[str, Any] = {
    "/api": {"kind": "APIGroupDiscoveryList", "items": [aggregated("", "pods")]},
    "/apis": {
        "kind": "APIGroupDiscoveryList",
        "items": [aggregated("coordination.k8s.io", "leases"), aggregated("metrics.example", freshness="Stale")],
    },
}


async def asked(answers: Mapping[str, Any], *resources: Resource) -> tuple[set[Resource], list[str]]:
    """Return what a server with these answers is found to serve, and the paths it was asked for."""
    async with serving() as server:

        async def answer(request: web.BaseRequest) -> web.StreamResponse:
            if request.path not in answers:
                return status_answer(404, "NotFound", "the server could not find the requested resource")
            return web.json_response(answers[request.path])

        server.answer = answer
        client = Client(HttpTransport(Endpoint(server.url)), Runtime.virtual())
        found = set(await served(client, resources))
        await client.close()
        return found, sorted(request.path for request in server.requests)


async def test_all_groups_are_read_in_one_answer() -> None:
    """Two requests tell about the core group and every other."""
    assert await asked(NEW_FORM, POD, NODE, LEASE, ABSENT) == ({POD, LEASE}, ["/api", "/apis"])


async def test_a_server_without_the_aggregated_form_is_asked_group_by_group() -> None:
    """A server that answers in the old form is asked about each group and version."""
    found, paths = await asked(OLD_FORM, POD, NODE, LEASE, ABSENT)
    assert found == {POD, LEASE}
    assert set(paths) == {"/api", "/apis", "/api/v1", "/apis/coordination.k8s.io/v1", "/apis/nowhere.example/v1"}


async def test_one_group_is_asked_alone() -> None:
    """Who wants to know about one group does not read about all of them."""
    assert await asked(OLD_FORM, LEASE) == ({LEASE}, ["/apis/coordination.k8s.io/v1"])


async def test_a_stale_group_is_asked_itself() -> None:
    """Of a group whose server did not answer in time, the aggregated form knows nothing: it is asked."""
    answers = {**OLD_FORM, **NEW_FORM}
    assert await asked(answers, LEASE, AWAY) == ({LEASE, AWAY}, ["/apis", "/apis/metrics.example/v1"])


@pytest.mark.parametrize("answer", [["sign in"], {"message": "maintenance"}])
@pytest.mark.parametrize("kinds", [(NODE, LEASE), (LEASE,)])
async def test_an_answer_that_tells_nothing_is_an_error_of_the_server(kinds: tuple[Resource, ...], answer: Any) -> None:
    """What a proxy answers in its place is told with the request, as every answer of another shape is."""
    page = dict.fromkeys(["/api", "/apis", "/api/v1", "/apis/coordination.k8s.io/v1"], answer)
    with pytest.raises(UndecodableResponse, match=r"GET /apis?\S* did not answer with a \w+List"):
        await asked(page, *kinds)
