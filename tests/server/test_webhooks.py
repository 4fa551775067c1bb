"""Webhooks: over real TLS, and the rules of when they are asked and what their answers mean."""

import asyncio
import base64
import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from aiohttp import web

from spinney.api.struct import JSON
from spinney.runtime import Runtime
from spinney.runtime.certificates import serving_certificate
from spinney.runtime.serving import stop_serving
from spinney.server import ApiServer, ServerOptions
from spinney.server.admission.calling import CallFailed
from tests.server.api import (
    CONFIG_MAPS,
    DEFINITIONS,
    MERGE,
    NODES,
    PODS,
    WIDGETS,
    Api,
    a_config_map,
    a_definition,
    a_pod,
    a_widget,
    an_api,
)

_MUTATING = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
_VALIDATING = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"


class Hooks:
    """Webhooks in this process, by the path of their service; fills ``WebhookCaller``."""

    def __init__(self, **hooks: Callable[[JSON], JSON]) -> None:
        self.hooks = hooks
        self.asked: list[tuple[str, JSON]] = []

    async def call(self, client: JSON, body: bytes, timeout: float) -> bytes:
        name = client["service"]["path"].strip("/")
        request = json.loads(body)["request"]
        self.asked.append((name, request))
        if name not in self.hooks:
            raise CallFailed(f"nobody at {name}")
        response = {"uid": request["uid"], "allowed": True, **self.hooks[name](request)}
        return json.dumps({"response": response}).encode()

    async def close(self) -> None:
        return None


def _hook(path: str, **fields: Any) -> JSON:
    rule = {"operations": ["CREATE", "UPDATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}
    return {
        "name": f"{path}.example.com",
        "clientConfig": {"service": {"namespace": "default", "name": "hooks", "path": f"/{path}"}},
        "rules": [rule],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        **fields,
    }


async def _configure(api: Api, collection: str, *hooks: JSON) -> None:
    await api.create(collection, {"metadata": {"name": "hooks"}, "webhooks": list(hooks)})


def _patch(*operations: JSON) -> JSON:
    encoded = base64.b64encode(json.dumps(operations).encode()).decode()
    return {"patchType": "JSONPatch", "patch": encoded}


def _label(name: str) -> JSON:
    return _patch({"op": "add", "path": "/metadata/labels", "value": {name: "yes"}})


async def test_a_mutating_webhook_changes_the_object() -> None:
    """A patch is applied before the object is stored, and warnings reach the client."""
    hooks = Hooks(label=lambda _: {**_label("seen"), "warnings": ["careful"]})
    api = an_api(webhooks=hooks)
    await _configure(api, _MUTATING, _hook("label"))
    answer = await api.send("POST", CONFIG_MAPS, a_config_map("a"))
    assert answer.body["metadata"]["labels"] == {"seen": "yes"}
    assert "careful" in answer.headers["warning"]
    (_, request) = hooks.asked[0]
    assert (request["operation"], request["namespace"], request["name"]) == ("CREATE", "default", "a")
    assert request["object"]["metadata"]["uid"]
    assert request["oldObject"] is None


async def test_a_validating_webhook_denies() -> None:
    """A denial is passed on with the webhook's name, message and code; nothing is stored."""
    deny = {"allowed": False, "status": {"code": 403, "message": "not today", "reason": "Forbidden"}}
    api = an_api(webhooks=Hooks(deny=lambda _: deny))
    await _configure(api, _VALIDATING, _hook("deny"))
    answer = await api.send("POST", CONFIG_MAPS, a_config_map("a"))
    assert answer.status == 403
    assert answer.body["message"] == 'admission webhook "deny.example.com" denied the request: not today'
    assert await api.names(CONFIG_MAPS) == []


async def test_updates_show_both_states_and_the_final_object() -> None:
    """A validating webhook sees the object as the mutating ones left it, and what it replaces."""
    hooks = Hooks(label=lambda _: _label("seen"), look=lambda _: {})
    api = an_api(webhooks=hooks)
    await api.create(CONFIG_MAPS, a_config_map("a", v="1"))
    await _configure(api, _MUTATING, _hook("label"))
    await _configure(api, _VALIDATING, _hook("look"))
    await api.patch(f"{CONFIG_MAPS}/a", {"data": {"v": "2"}})
    request = dict(hooks.asked)["look"]
    assert request["object"]["metadata"]["labels"] == {"seen": "yes"}
    assert (request["oldObject"]["data"], request["object"]["data"]) == ({"v": "1"}, {"v": "2"})


async def test_failure_policies() -> None:
    """A webhook that cannot be reached fails the write, or is skipped if it says so."""
    api = an_api(webhooks=Hooks())
    await _configure(api, _VALIDATING, _hook("gone"))
    answer = await api.send("POST", CONFIG_MAPS, a_config_map("a"))
    assert answer.status == 500
    assert 'failed calling webhook "gone.example.com"' in answer.body["message"]
    await api.patch(f"{_VALIDATING}/hooks", {"webhooks": [_hook("gone", failurePolicy="Ignore")]})
    await api.create(CONFIG_MAPS, a_config_map("a"))


async def test_selectors_and_rules_decide_who_is_asked() -> None:
    """A webhook hears only of the resources, operations, namespaces and labels it asked for."""
    hooks = Hooks(labelled=lambda _: {}, elsewhere=lambda _: {}, deletions=lambda _: {}, status=lambda _: {})
    api = an_api(webhooks=hooks)
    rule = {"operations": ["DELETE"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"]}
    status = {"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods/status"]}
    await _configure(
        api,
        _VALIDATING,
        _hook("labelled", objectSelector={"matchLabels": {"app": "x"}}),
        _hook("elsewhere", namespaceSelector={"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}}),
        _hook("deletions", rules=[rule]),
        _hook("status", rules=[status]),
    )
    await api.create(CONFIG_MAPS, a_config_map("a"))
    assert hooks.asked == []
    await api.create("/api/v1/namespaces/kube-system/configmaps", a_config_map("a"))
    await api.patch(f"{CONFIG_MAPS}/a", {"metadata": {"labels": {"app": "x"}}})
    await api.create(PODS, a_pod("p"))
    await api.patch(f"{PODS}/p/status", {"status": {"phase": "Running"}})
    await api.delete(f"{CONFIG_MAPS}/a")
    assert [name for name, _ in hooks.asked] == ["elsewhere", "labelled", "status", "deletions"]


def _of_status(resource: str) -> JSON:
    return {"operations": ["UPDATE"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": [f"{resource}/status"]}


async def test_what_a_webhook_changes_of_a_status_write_is_a_change() -> None:
    """A label that comes with the status of a node is stored, and is not said to have been there before."""
    hooks = Hooks(
        label=lambda _: _patch({"op": "add", "path": "/metadata/labels/seen", "value": "yes"}), look=lambda _: {}
    )
    api = an_api(webhooks=hooks)
    await api.create(NODES, {"metadata": {"name": "n", "labels": {"rack": "1"}}})
    await _configure(api, _MUTATING, _hook("label", rules=[_of_status("nodes")]))
    await _configure(api, _VALIDATING, _hook("look", rules=[_of_status("nodes")]))
    await api.patch(f"{NODES}/n/status", {"status": {}})
    request = dict(hooks.asked)["look"]
    assert request["oldObject"]["metadata"]["labels"] == {"rack": "1"}
    assert (await api.get(f"{NODES}/n"))["metadata"]["labels"] == {"rack": "1", "seen": "yes"}


async def test_a_webhook_changes_nothing_that_the_endpoint_is_not_about() -> None:
    """What a webhook does to the spec in a write of the status, or to the status in another write, is undone."""
    changes = (
        {"op": "add", "path": "/spec", "value": {"size": 9}},
        {"op": "add", "path": "/status", "value": {"by": "webhook"}},
    )
    hooks = Hooks(overreach=lambda _: _patch(*changes))
    api = an_api(webhooks=hooks)
    await api.create(DEFINITIONS, a_definition())
    await api.create(WIDGETS, a_widget("w", size=1))
    rule = {"operations": ["UPDATE"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["widgets"]}
    await _configure(api, _MUTATING, _hook("overreach", rules=[rule, _of_status("widgets")]))
    widget = await api.patch(f"{WIDGETS}/w", {"metadata": {"labels": {"a": "b"}}})
    assert "status" not in widget
    assert (widget["spec"], widget["metadata"]["generation"]) == ({"size": 9}, 2)
    hooks.hooks["overreach"] = lambda _: _patch({"op": "add", "path": "/spec/size", "value": 10})
    widget = await api.patch(f"{WIDGETS}/w/status", {"status": {"by": "controller"}})
    assert (widget["status"], widget["spec"], widget["metadata"]["generation"]) == (
        {"by": "controller"},
        {"size": 9},
        2,
    )


async def test_dry_runs_need_webhooks_without_side_effects() -> None:
    """A dry run is refused if a webhook that would be asked may act; others are told that it is one."""
    hooks = Hooks(acting=lambda _: {}, calm=lambda _: {})
    api = an_api(webhooks=hooks)
    await _configure(api, _VALIDATING, _hook("calm", sideEffects="NoneOnDryRun"))
    await api.create(CONFIG_MAPS, a_config_map("a"), dryRun="All")
    assert hooks.asked[0][1]["dryRun"] is True
    await api.patch(f"{_VALIDATING}/hooks", {"webhooks": [_hook("acting", sideEffects="Some")]})
    assert (await api.send("POST", CONFIG_MAPS, a_config_map("a"), query={"dryRun": "All"})).status == 400


async def test_a_patch_is_recomputed_when_the_object_moved_meanwhile() -> None:
    """A write that happens while a webhook thinks is not lost: the patch is applied to the newer object."""
    asked = asyncio.Event()
    go = asyncio.Event()

    class Slow(Hooks):
        async def call(self, client: JSON, body: bytes, timeout: float) -> bytes:
            if json.loads(body)["request"]["object"]["data"].get("slow") and not asked.is_set():
                asked.set()
                await go.wait()
            return await super().call(client, body, timeout)

    api = an_api(webhooks=Slow(look=lambda _: {}))
    await api.create(CONFIG_MAPS, a_config_map("a"))
    await _configure(api, _VALIDATING, _hook("look"))
    slow = asyncio.create_task(api.patch(f"{CONFIG_MAPS}/a", {"data": {"slow": "1"}}))
    await asked.wait()
    await api.patch(f"{CONFIG_MAPS}/a", {"data": {"quick": "1"}})
    go.set()
    assert (await slow)["data"] == {"slow": "1", "quick": "1"}


async def test_webhooks_over_tls() -> None:
    """A webhook behind a service is reached at its given address, and trusted only under its bundle."""
    certificate = serving_certificate(("hooks.default.svc",), now=datetime.now(UTC))

    async def deny(request: web.BaseRequest) -> web.Response:
        review = json.loads(await request.read())
        response = {"uid": review["request"]["uid"], "allowed": False, "status": {"message": "over TLS"}}
        return web.json_response({"response": response})

    runner = web.ServerRunner(web.Server(deny))
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=certificate.context()).start()
        address = f"127.0.0.1:{runner.addresses[0][1]}"
        options = ServerOptions(service_addresses={"default/hooks": address})
        server = ApiServer(Runtime.system(), options)
        api = Api(server)
        async with server.running():
            hook = _hook("deny")
            hook["clientConfig"]["caBundle"] = base64.b64encode(certificate.authority).decode()
            await _configure(api, _VALIDATING, hook)
            answer = await api.send("POST", CONFIG_MAPS, a_config_map("a"))
            assert answer.body["message"].endswith("denied the request: over TLS")
            stranger = serving_certificate(("other",), now=datetime.now(UTC))
            hook["clientConfig"]["caBundle"] = base64.b64encode(stranger.authority).decode()
            await api.patch(f"{_VALIDATING}/hooks", {"webhooks": [hook]}, MERGE)
            untrusted = await api.send("POST", CONFIG_MAPS, a_config_map("a"))
            assert untrusted.status == 500
            assert "cannot be reached" in untrusted.body["message"]
    finally:
        await stop_serving(runner)
