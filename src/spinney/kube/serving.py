"""The process's own endpoints: ``/healthz``, ``/livez``, ``/readyz`` and ``/metrics``.

Alive means that the event loop answers; ready means that, besides, the caches have synced. A failing answer lists which
checks failed. A component may answer further paths: to this host, which is what ``kubectl port-forward`` comes from,
and to others whom the API server lets read them. A replica that stands by answers these with 503: what it could say is
not what the leader does.
"""

import asyncio
import ipaddress
from collections.abc import Awaitable, Callable, Mapping

import structlog
from aiohttp import web
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from spinney.kube.errors import KubeError
from spinney.runtime.serving import listen, stop_serving

Check = Callable[[], str | None]
"""Returns None when all is well, else what is wrong."""

Answer = Callable[[str, Mapping[str, str]], Awaitable[bytes | None]]
"""Answers a path with its query; None is for paths it does not know, and what it raises is reported as a failure."""

Guard = Callable[[str, str], Awaitable[tuple[int, str] | None]]
"""Given an Authorization header and a path, returns the status and reason of a refusal, or None."""

log = structlog.get_logger()


class HealthServer:
    """Serves health and metrics over HTTP. Mutable: checks may be added while it runs."""

    def __init__(self, registry: CollectorRegistry, *, host: str = "", port: int = 8080, setting: str = "") -> None:
        self._registry = registry
        self._host = host or None  # every address: a pod is probed from outside
        self._port = port
        self._setting = setting  # what chooses them, for messages
        self._ready: dict[str, Check] = {}
        self._notes: dict[str, Check] = {}
        self._others: Answer | None = None
        self._guard: Guard | None = None
        self._standing_by: Check | None = None
        self._runner: web.ServerRunner | None = None
        self._address: tuple[str, int] | None = None
        self._serving = asyncio.Event()

    async def wait_until_serving(self) -> None:
        """Wait until the endpoints are being served."""
        await self._serving.wait()

    @property
    def address(self) -> tuple[str, int]:
        """Return the host and port being served."""
        if self._address is None:
            raise RuntimeError("the health server has not been started")
        return self._address

    def check_ready(self, name: str, check: Check) -> None:
        """Add a check whose failure means that this process cannot do its work yet."""
        self._ready[name] = check

    def note(self, name: str, check: Check) -> None:
        """Add a check whose failure a process that is ready tells besides: it can do its work, but not all of it."""
        self._notes[name] = check

    def answer_others(self, answer: Answer, guard: Guard, standing_by: Check | None = None) -> None:
        """Have other paths answered by a component, unless it stands by; for other hosts after a guard was asked."""
        self._others, self._guard, self._standing_by = answer, guard, standing_by

    async def start(self) -> None:
        """Begin to serve, if that has not begun yet; port 0 takes any free port."""
        if self._runner is not None:
            return
        self._runner = web.ServerRunner(web.Server(self._answer))
        await self._runner.setup()
        await listen(self._runner, self._host, self._port, setting=self._setting)
        host, port = self._runner.addresses[0][:2]
        self._address = (host, port)
        self._serving.set()

    async def stop(self) -> None:
        """Stop serving."""
        if self._runner is not None:
            runner, self._runner = self._runner, None
            await stop_serving(runner)

    async def _answer(self, request: web.BaseRequest) -> web.Response:
        match request.path.rstrip("/"):
            case "/healthz" | "/livez":
                return _report({}, {})
            case "/readyz":
                return _report(self._ready, self._notes)
            case "/metrics":
                return web.Response(body=generate_latest(self._registry), headers={"content-type": CONTENT_TYPE_LATEST})
            case path:
                return await self._answer_other(path, request)

    async def _answer_other(self, path: str, request: web.BaseRequest) -> web.Response:
        if self._standing_by is not None and (instead := self._standing_by()) is not None:
            return web.Response(status=503, text=f"{instead}\n")
        try:
            if self._guard is not None and not _is_this_host(request.remote):
                refused = await self._guard(request.headers.get("authorization", ""), path)
                if refused is not None:
                    return web.Response(status=refused[0], text=f"{refused[1]}\n")
            body = await self._others(path, request.query) if self._others is not None else None
        except KubeError as error:
            return web.Response(status=503, text=f"whether you may read this cannot be found out: {error}\n")
        except Exception as error:
            log.exception("request failed", path=path)
            return web.Response(status=500, text=f"{type(error).__name__}: {error}\n")
        if body is None:
            return web.Response(status=404, text="not found; try /healthz, /livez, /readyz or /metrics\n")
        return web.Response(body=body)


def _is_this_host(address: str | None) -> bool:
    return address is not None and ipaddress.ip_address(address.partition("%")[0]).is_loopback


def _report(checks: Mapping[str, Check], notes: Mapping[str, Check]) -> web.Response:
    problems = _failing(checks)
    if not problems:
        return web.Response(text="ok\n" + _failing(notes))
    return web.Response(status=503, text=problems)


def _failing(checks: Mapping[str, Check]) -> str:
    """Return a line for each check that fails."""
    return "".join(f"{name}: {problem}\n" for name, check in checks.items() if (problem := check()) is not None)
