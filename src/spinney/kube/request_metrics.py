"""What is counted about requests to the API server: how many, with which answer, how long, and how many again."""

from typing import Final

from prometheus_client import CollectorRegistry, Counter, Histogram

from spinney.kube.errors import ApiError, ConnectionRefused, KubeError

_SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_VERBS: Final = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


class RequestMetrics:
    """Counters of one client; labels are verbs, kinds and statuses, never names or namespaces."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._requests = Counter(
            "spinney_api_requests",
            "Requests to the API server by verb, resource and HTTP status; `refused` where no connection was made, "
            "`failed` where no answer came.",
            ["verb", "resource", "code"],
            registry=registry,
        )
        self._seconds = Histogram(
            "spinney_api_request_seconds",
            "How long the API server took to answer, by verb; watches until their first byte.",
            ["verb"],
            buckets=_SECONDS,
            registry=registry,
        )
        self._answers: dict[tuple[str, str, str], tuple[Counter, Histogram]] = {}
        """By verb, resource and code: looking a series up by its labels takes longer than counting."""
        self._retries = Counter(
            "spinney_api_retries",
            "Requests that were sent again, by verb and by what came of the one before.",
            ["verb", "code"],
            registry=registry,
        )

    def answered(self, method: str, path: str, code: str, seconds: float, *, watch: bool = False) -> None:
        """Count a request and its answer."""
        labels = (_verb(method, path, watch=watch), resource_in(path), code)
        series = self._answers.get(labels)
        if series is None:
            series = self._answers[labels] = (self._requests.labels(*labels), self._seconds.labels(labels[0]))
        requests, took = series
        requests.inc()
        took.observe(seconds)

    def again(self, method: str, path: str, error: KubeError) -> None:
        """Count a request that is to be sent again."""
        self._retries.labels(_verb(method, path, watch=False), code_of(error)).inc()


def code_of(error: KubeError) -> str:
    """Return the word for what went wrong: a status, or that there was none."""
    if isinstance(error, ApiError):
        return str(error.status)
    return "refused" if isinstance(error, ConnectionRefused) else "failed"


def resource_in(path: str) -> str:
    """Return the resource, and the subresource, that a path is about; empty for paths that are about none."""
    steps = _after_version(path)
    if len(steps) > 2 and steps[0] == "namespaces":
        steps = steps[2:]
    if not steps:
        return ""
    return steps[0] if len(steps) < 3 else f"{steps[0]}/{steps[2]}"


def _after_version(path: str) -> list[str]:
    steps = path.strip("/").split("/")
    if steps[0] == "api":
        return steps[2:]
    return steps[3:] if steps[0] == "apis" else []


def _verb(method: str, path: str, *, watch: bool) -> str:
    if watch:
        return "watch"
    if method != "GET":
        return _VERBS.get(method, method.lower())
    steps = _after_version(path)
    named = len(steps) == 2 or len(steps) > 3 or (len(steps) == 3 and steps[0] != "namespaces")
    return "get" if named or not steps else "list"
