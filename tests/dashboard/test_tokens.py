"""Off loopback everybody sees what their own token may read, and no more than that."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest

from spinney.api.core import NAMESPACE, POD, SERVICE_ACCOUNT
from spinney.api.rbac import CLUSTER_ROLE, CLUSTER_ROLE_BINDING, ROLE, ROLE_BINDING
from spinney.api.resource import Resource
from spinney.dashboard.access import NAMESPACES, Access
from spinney.dashboard.advising import Adviser
from spinney.dashboard.serving import Dashboard
from spinney.dashboard.view import RefreshPace
from spinney.dashboard.viewers import Viewers
from spinney.kube.client import Client
from spinney.kube.credentials import Credential, FixedCredential, bearer
from spinney.kube.guarding import ReadOnlyTransport
from spinney.kube.http import Endpoint, HttpTransport
from spinney.runtime import InlineExecutor, Runtime
from spinney.server import ApiServer, ServerOptions
from spinney.server.http.serving import HttpServer
from spinney.sim.embedded.transport import InProcessTransport

READ = ["get", "list", "watch"]


class Served:
    """A dashboard that asks for tokens, over a cluster with two teams."""

    def __init__(
        self, url: str, admin: Client, session: aiohttp.ClientSession, cut: Callable[[], Awaitable[None]]
    ) -> None:
        self.url, self.admin, self._session, self.cut = url, admin, session, cut

    async def state(self, token: str, namespaces: str = "") -> tuple[int, Any]:
        """Return what somebody with a token is shown."""
        headers = {"authorization": f"Bearer {token}"} | ({NAMESPACES: namespaces} if namespaces else {})
        async with self._session.get(self.url + "api/state", headers=headers) as answer:
            return answer.status, await answer.json()

    @asynccontextmanager
    async def events(self, token: str, namespaces: str = "") -> AsyncIterator[aiohttp.StreamReader]:
        """Follow what somebody with a token is told."""
        headers = {"authorization": f"Bearer {token}"} | ({NAMESPACES: namespaces} if namespaces else {})
        async with self._session.get(self.url + "api/events", headers=headers) as answer:
            yield answer.content

    async def token(self, name: str, kinds: Mapping[str, Sequence[str]], namespace: str | None) -> str:
        """Return a token that may read kinds (by API group) in a namespace, or everywhere."""
        await self.admin.create(SERVICE_ACCOUNT, {"metadata": {"name": name, "namespace": "default"}})
        rules = [{"apiGroups": [group], "resources": list(names), "verbs": READ} for group, names in kinds.items()]
        role, binding = (ROLE, ROLE_BINDING) if namespace else (CLUSTER_ROLE, CLUSTER_ROLE_BINDING)
        await self._create(role, {"metadata": {"name": name}, "rules": rules}, namespace)
        bound = {
            "metadata": {"name": name},
            "roleRef": {"apiGroup": role.group, "kind": role.kind, "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": "default"}],
        }
        await self._create(binding, bound, namespace)
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        path = SERVICE_ACCOUNT.path("default", name, "token")
        answer = await self.admin.raw("POST", path, body=json.dumps(request).encode())
        return str(json.loads(answer.body)["status"]["token"])

    async def _create(self, kind: Resource, found: Any, namespace: str | None) -> None:
        await self.admin.create(kind, found, namespace)


@asynccontextmanager
async def a_served() -> AsyncIterator[Served]:
    runtime = Runtime.system()
    server = ApiServer(runtime, ServerOptions(authorization="RBAC"))
    admin = Client(InProcessTransport(server), runtime)

    def connect(token: str | None) -> Client:
        assert token is not None
        endpoint = Endpoint(http.url, authorities=http.authority)
        transport = HttpTransport(endpoint, FixedCredential(Credential((bearer(token),))))
        return Client(ReadOnlyTransport(transport), runtime)

    try:
        async with server.running(), HttpServer(server) as http:
            for team in ("red", "blue"):
                await admin.create(NAMESPACE, {"metadata": {"name": team}})
                pod = {"metadata": {"name": f"{team}-pod", "labels": {"grove.io/podgang": f"{team}-gang"}}}
                spec = {"containers": [{"name": "main", "image": "x"}]}
                await admin.create(POD, {**pod, "spec": spec}, team)
            viewers = Viewers(connect, runtime, source="test", pace=RefreshPace(gather=0.0, rights=0.2), most=2)
            access = Access(host="127.0.0.1", mode="token", tls=False)
            dashboard = Dashboard(viewers, access, Adviser(InlineExecutor()), version="test")
            async with dashboard.serving(0) as url, aiohttp.ClientSession() as session:
                yield Served(url, admin, session, lambda: http.__aexit__(None, None, None))
    finally:
        runtime.executor.close()


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    """A cluster with RBAC, and a dashboard in front of it."""
    async with a_served() as found:
        yield found


async def test_without_a_token_or_with_a_foreign_one_nothing_is_shown(served: Served) -> None:
    """No token, and one the API server does not know, are 401; the page itself asks for one."""
    async with aiohttp.ClientSession() as session:
        for path in ("api/state", "api/events", "api/queues/history", "api/gangs/a/b/c", "api/gangs/a/b/c/why"):
            async with session.get(served.url + path) as answer:
                assert answer.status == 401, path
                assert answer.headers["www-authenticate"] == "Bearer"
        async with session.get(served.url) as answer:
            assert answer.status == 200
        async with session.get(served.url + "api/about") as answer:
            assert (await answer.json())["authentication"] == "token"
    assert (await served.state("nobody"))[0] == 401


async def test_a_namespace_that_may_not_be_read_is_not_shown(served: Served) -> None:
    """Who may list pods of one team sees that team, and is told that others are hidden."""
    token = await served.token("red", {"": ["pods"]}, "red")

    status, state = await served.state(token, "red,blue")

    assert status == 200
    assert state["namespaces"] == ["red"]
    assert "blue" not in json.dumps([state["gangs"], state["nodes"], state["queues"]])
    assert {each["what"] for each in state["unseen"]} >= {"pods", "nodes"}


async def test_namespaces_are_found_where_they_may_be_listed(served: Served) -> None:
    """Who may list namespaces need not name theirs."""
    token = await served.token("red", {"": ["pods"]}, "red")
    await served.admin.create(
        CLUSTER_ROLE,
        {"metadata": {"name": "n"}, "rules": [{"apiGroups": [""], "resources": ["namespaces"], "verbs": READ}]},
    )
    bound = {
        "metadata": {"name": "n"},
        "roleRef": {"apiGroup": CLUSTER_ROLE.group, "kind": "ClusterRole", "name": "n"},
        "subjects": [{"kind": "ServiceAccount", "name": "red", "namespace": "default"}],
    }
    await served.admin.create(CLUSTER_ROLE_BINDING, bound)

    assert (await served.state(token))[1]["namespaces"] == ["red"]


async def test_a_right_that_is_taken_away_takes_effect(served: Served) -> None:
    """What was shown disappears when the token may no longer read it, without a restart."""
    token = await served.token("all", {"": ["pods", "namespaces"]}, None)
    assert "namespaces" not in (await served.state(token))[1]

    async with served.events(token) as stream:
        await served.admin.delete(CLUSTER_ROLE_BINDING, "all")
        await stream.readuntil(b"event: reset")

    assert (await served.state(token))[1]["namespaces"] == []


async def test_the_number_of_views_is_bounded(served: Served) -> None:
    """A third token is asked to come back later; tokens nobody knows take no place."""
    for number in range(3):
        assert (await served.state(f"unknown-{number}"))[0] == 401
    for number in range(2):
        token = await served.token(f"viewer-{number}", {"": ["pods"]}, "red")
        assert (await served.state(token, "red"))[0] == 200
    token = await served.token("one-too-many", {"": ["pods"]}, "red")

    status, answer = await served.state(token, "red")

    assert status == 503
    assert "try again later" in answer["error"]


async def test_a_cluster_that_does_not_answer_is_said_to_be_out_of_date(served: Served) -> None:
    """Viewers keep what they saw, and are told that it may be old."""
    token = await served.token("red", {"": ["pods"]}, "red")
    assert "trouble" not in (await served.state(token, "red"))[1]

    async with served.events(token, "red") as stream:
        await served.cut()
        await stream.readuntil(b"the API server does not answer")

    assert "may be out of date" in (await served.state(token, "red"))[1]["trouble"]
