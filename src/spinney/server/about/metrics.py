"""What the server counts about itself, under the names that kube-apiserver gives it, for ``/metrics``.

Requests are counted into plain dictionaries, which costs next to nothing; the text that Prometheus reads is made when
a client asks for it. Only what is served becomes a label, so no client can make the server remember without bound.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from itertools import accumulate
from typing import NamedTuple

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric

from spinney.server.exchange.message import Request, Response
from spinney.server.kinds import KindRegistry
from spinney.server.store import Store

_CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_BUCKETS = (0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)
_VERBS = {"GET": "GET", "HEAD": "GET", "POST": "POST", "PUT": "PUT", "PATCH": "PATCH", "DELETE": "DELETE"}
_PATHS = ("/api", "/apis", "/openapi/v2", "/openapi/v3", "/version", "/healthz", "/livez", "/readyz", "/metrics")


class Labels(NamedTuple):
    """What requests are told apart by."""

    verb: str
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    scope: str = ""


class ServerMetrics:
    """The counts of one server; mutable."""

    def __init__(self, store: Store, registry: KindRegistry, version: str) -> None:
        self._store = store
        self._registry = registry
        self._version = version
        self._requests: Counter[tuple[Labels, int, str]] = Counter()
        self._durations: dict[Labels, list[int]] = {}
        self._seconds: Counter[Labels] = Counter()
        self._watches: Counter[Labels] = Counter()
        self._collectors = CollectorRegistry(auto_describe=False)
        self._collectors.register(self)
        ProcessCollector(registry=self._collectors)

    def answered(self, request: Request, response: Response, seconds: float) -> Response:
        """Count a request that was answered; a stream is counted for as long as a client follows it."""
        labels = self.labels(request)
        self._requests[labels, response.status, _dry_run(request)] += 1
        if not isinstance(response.body, bytes):
            return Response(response.status, response.headers, self._followed(labels, response.body))
        buckets = self._durations.get(labels)
        if buckets is None:
            buckets = self._durations[labels] = [0] * (len(_BUCKETS) + 1)
        buckets[bisect_left(_BUCKETS, seconds)] += 1
        self._seconds[labels] += seconds  # type: ignore[assignment]  # a counter of seconds has fractions
        return response

    def labels(self, request: Request) -> Labels:
        """Return what a request is counted under; what is not served has no name here."""
        verb = _VERBS.get(request.method, "other")
        parts = request.path.strip("/").split("/")
        start = 3 if parts[0] == "apis" else 2
        if parts[0] not in {"api", "apis"} or len(parts) <= start:
            path = next((each for each in reversed(_PATHS) if request.path.startswith(each)), "")
            return Labels(verb, subresource=path)
        group, version = (parts[1], parts[2]) if start == 3 else ("", parts[1])
        rest, scope = parts[start:], "cluster"
        if rest[0] == "namespaces" and len(rest) > 2 and self._registry.find(group, version, rest[2]):
            rest, scope = rest[2:], "namespace"
        kind = self._registry.find(group, version, rest[0])
        if kind is None:
            return Labels(verb)
        if len(rest) > 1:
            scope = "resource"
        elif verb in {"GET", "DELETE"}:
            verb = "LIST" if verb == "GET" else "DELETECOLLECTION"
        if verb in {"GET", "LIST"} and request.query.get("watch") in {"true", "1"}:
            verb = "WATCH"
        elif verb == "PATCH" and "apply-patch" in request.headers.get("content-type", ""):
            verb = "APPLY"
        below = rest[2] if len(rest) > 2 else ""
        known = not below or below in {"status", "scale"} or below in kind.subresources
        return Labels(verb, group, version, rest[0], below if known else "", scope)

    def serve(self) -> Response:
        """Answer ``/metrics``."""
        return Response(200, {"content-type": _CONTENT_TYPE}, generate_latest(self._collectors))

    def collect(self) -> Iterator[Metric]:
        """Return what Prometheus reads."""
        names = Labels._fields
        built = GaugeMetricFamily("kubernetes_build_info", "Which Kubernetes is played.", labels=("git_version",))
        built.add_metric((self._version,), 1)
        yield built
        requests = CounterMetricFamily(
            "apiserver_request",
            "Requests by what they were about and how they ended.",
            labels=(*names, "code", "dry_run"),
        )
        for (labels, code, dry_run), count in self._requests.items():
            requests.add_metric((*labels, str(code), dry_run), count)
        yield requests
        durations = HistogramMetricFamily(
            "apiserver_request_duration_seconds", "How long requests took; watches are not among them.", labels=names
        )
        for labels, counts in self._durations.items():
            buckets = zip([*map(str, _BUCKETS), "+Inf"], accumulate(counts), strict=True)
            durations.add_metric(labels, list(buckets), self._seconds[labels])
        yield durations
        watches = GaugeMetricFamily("apiserver_longrunning_requests", "Watches that are followed now.", labels=names)
        for labels, count in self._watches.items():
            watches.add_metric(labels, count)
        yield watches
        yield from self._objects()

    def _objects(self) -> Iterator[Metric]:
        names = ("group", "resource")
        counts = GaugeMetricFamily("apiserver_resource_objects", "Stored objects by kind.", labels=names)
        sizes = GaugeMetricFamily(
            "apiserver_resource_size_estimate_bytes", "What the stored objects take, as JSON.", labels=names
        )
        for collection in self._store.collections():
            resource, _, group = collection.name.partition(".")
            counts.add_metric((group, resource), len(collection))
            sizes.add_metric((group, resource), sum(len(record.raw) for record in collection.records()))
        yield counts
        yield sizes
        revision = GaugeMetricFamily("apiserver_storage_revision", "The resourceVersion of the newest write.")
        revision.add_metric((), self._store.revision)
        yield revision

    async def _followed(self, labels: Labels, stream: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        self._watches[labels] += 1
        try:
            async for chunk in stream:
                yield chunk
        finally:
            self._watches[labels] -= 1
            closing = getattr(stream, "aclose", None)
            if closing is not None:
                await closing()


def _dry_run(request: Request) -> str:
    """Return what is counted of ``dryRun``: only what it may be, for a client chooses what it sends."""
    given = request.query.get("dryRun", "")
    return given if given in {"", "All"} else "invalid"
