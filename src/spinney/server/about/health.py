"""How the server is, and which Kubernetes it says it is.

Health is at ``/livez``, ``/readyz`` and the older ``/healthz``: whole, in detail (``?verbose``) and check by check.
"""

import platform
from collections.abc import Callable, Mapping

from spinney.api.struct import JSON
from spinney.server.exchange.message import Request, Response
from spinney.server.exchange.status import no_such_path

ENDPOINTS = ("healthz", "livez", "readyz")

Check = Callable[[], bool]


class HealthChecks:
    """The checks of one server, in the order in which they are told."""

    def __init__(self, checks: Mapping[str, Check]) -> None:
        self._checks = checks

    def paths(self) -> list[str]:
        """Return where the checks are, below an endpoint."""
        return [f"/{name}" for name in self._checks]

    def serve(self, request: Request) -> Response:
        """Answer a request about health."""
        endpoint, _, name = request.path.strip("/").partition("/")
        if name:
            check = self._checks.get(name)
            if check is None:
                raise no_such_path()
            return _text(200, "ok") if check() else _text(500, f"{name} has failed")
        excluded = request.query.get("exclude", "")
        lines, failed = [], False
        for each, check in self._checks.items():
            if each == excluded:
                lines.append(f"[+]{each} excluded: ok")
            elif check():
                lines.append(f"[+]{each} ok")
            else:
                failed = True
                lines.append(f"[-]{each} failed: reason withheld")
        if failed:
            return _text(500, "\n".join([*lines, f"{endpoint} check failed", ""]))
        verbose = "verbose" in request.query
        return _text(200, "\n".join([*lines, f"{endpoint} check passed", ""]) if verbose else "ok")


def _text(status: int, text: str) -> Response:
    headers = {"content-type": "text/plain; charset=utf-8", "x-content-type-options": "nosniff"}
    return Response(status, {**headers, "cache-control": "no-cache, private"}, text.encode())


def git_version(kubernetes_version: str) -> str:
    """Return the version clients parse: the Kubernetes minor that is played, marked as Spinney's."""
    return f"v{kubernetes_version}.0+spinney"


def version_info(kubernetes_version: str) -> JSON:
    """Return the body of ``/version``."""
    major, minor = kubernetes_version.split(".")
    return {
        "major": major,
        "minor": minor,
        "emulationMajor": major,
        "emulationMinor": minor,
        "minCompatibilityMajor": major,
        "minCompatibilityMinor": str(int(minor) - 1),
        "gitVersion": git_version(kubernetes_version),
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "none",
        "compiler": f"python{platform.python_version()}",
        "platform": f"{platform.system().lower()}/{platform.machine()}",
    }
