# mypy: disable-error-code="untyped-decorator"
"""A kopf operator on the embedded server: handlers, finalizers, status and events, over TLS."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from spinney.server import ApiServer, HttpServer
from tests.server.api import DEFINITIONS, WIDGETS, Api, a_definition, a_widget

pytestmark = [pytest.mark.real, pytest.mark.filterwarnings("ignore::DeprecationWarning")]
kopf = pytest.importorskip("kopf", reason="kopf is not installed: `make test-real` does")


def _handlers() -> Any:
    """An operator that says in the status of each widget what it saw, and speaks up when one changes or goes."""
    registry = kopf.OperatorRegistry()

    @kopf.on.startup(registry=registry)
    def configure(settings: Any, **_: Any) -> None:
        settings.posting.enabled = True

    @kopf.on.login(registry=registry)
    def login(**arguments: Any) -> Any:
        return kopf.login_with_kubeconfig(**arguments)

    @kopf.on.create("example.com", "v1", "widgets", id="created", registry=registry)
    async def created(spec: Any, **_: Any) -> dict[str, Any]:
        return {"size": spec.get("size")}

    @kopf.on.update("example.com", "v1", "widgets", id="updated", registry=registry)
    async def updated(spec: Any, body: Any, diff: Any, **_: Any) -> dict[str, Any]:
        kopf.info(body, reason="Resized", message=f"{diff[0].old} became {diff[0].new}")
        return {"size": spec.get("size")}

    @kopf.on.delete("example.com", "v1", "widgets", registry=registry)
    async def deleted(name: str, body: Any, **_: Any) -> None:
        kopf.info(body, reason="Goodbye", message=f"{name} goes")

    return registry


@contextlib.asynccontextmanager
async def _operating(http: HttpServer, directory: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    """Run the operator for the time of the block, which begins when it is ready."""
    config = directory / "config"
    http.write_kubeconfig(config)
    monkeypatch.setenv("KUBECONFIG", str(config))
    ready, stop = asyncio.Event(), asyncio.Event()
    operating = asyncio.create_task(
        kopf.operator(
            registry=_handlers(),
            namespaces=["default"],
            standalone=True,
            ready_flag=ready,
            stop_flag=stop,
            clusterwide=False,
            identity="test",
        )
    )
    await asyncio.wait({operating, asyncio.ensure_future(ready.wait())}, return_when=asyncio.FIRST_COMPLETED)
    assert not operating.done(), operating.exception()
    try:
        yield
    finally:
        stop.set()
        await operating


async def test_an_operator_follows_its_objects(
    server: ApiServer, http: HttpServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Handlers of creation, change and deletion run; their results, the finalizer and the events are on the server."""
    api = Api(server)
    await api.create(DEFINITIONS, a_definition())
    async with asyncio.timeout(60), _operating(http, tmp_path, monkeypatch):
        await api.create(WIDGETS, a_widget(size=1))
        made = await _until(api, lambda widget: _size(widget, "created") == 1)
        assert made["metadata"]["finalizers"] == ["kopf.zalando.org/KopfFinalizerMarker"]
        await api.patch(f"{WIDGETS}/w", {"spec": {"size": 5}})
        await _until(api, lambda widget: _size(widget, "updated") == 5)
        deleting = await api.delete(f"{WIDGETS}/w")
        assert "deletionTimestamp" in deleting["metadata"], "the finalizer holds it until the handler has run"
        async with api.watch(WIDGETS, resourceVersion=deleting["metadata"]["resourceVersion"]) as watch:
            while (await watch.next())["type"] != "DELETED":
                pass
        reasons: set[str] = set()
        async with api.watch("/api/v1/namespaces/default/events") as watch:
            while not {"Resized", "Goodbye"} <= reasons:
                event = (await watch.next())["object"]
                assert event["involvedObject"]["kind"] == "Widget"
                reasons.add(event["reason"])


def _size(widget: Any, handler: str) -> Any:
    return widget.get("status", {}).get(handler, {}).get("size")


async def _until(api: Api, holds: Any) -> Any:
    async with api.watch(WIDGETS) as watch:
        while True:
            widget = (await watch.next())["object"]
            if holds(widget):
                return widget
