"""The metrics of the Kubernetes runtime, registered once per process in the registry that is passed in."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from spinney.kube.request_metrics import RequestMetrics

_SECONDS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class KubeMetrics:
    """Counters and gauges of caches, queues, controllers and the lease; labels name the controller or resource."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self.registry = registry if registry is not None else CollectorRegistry()
        self.requests = RequestMetrics(self.registry)
        self.watch_events = Counter(
            "spinney_watch_events", "Watch events absorbed.", ["resource"], registry=self.registry
        )
        self.watch_relists = Counter(
            "spinney_watch_relists",
            "Collections listed again after the watch fell behind.",
            ["resource"],
            registry=self.registry,
        )
        self.undecodable = Counter(
            "spinney_undecodable_objects",
            "Objects ignored because they did not have the expected shape.",
            ["resource"],
            registry=self.registry,
        )
        self.cached = Gauge("spinney_cached_objects", "Objects held.", ["resource"], registry=self.registry)
        self.reconciles = Counter(
            "spinney_reconciles",
            "Reconciles by result (done, requeued, failed).",
            ["controller", "result"],
            registry=self.registry,
        )
        self.reconcile_seconds = Histogram(
            "spinney_reconcile_seconds",
            "How long a reconcile took.",
            ["controller"],
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.queue_depth = Gauge("spinney_workqueue_depth", "Keys waiting.", ["controller"], registry=self.registry)
        self.queue_seconds = Histogram(
            "spinney_workqueue_seconds",
            "How long a key waited for its reconcile.",
            ["controller"],
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.resyncs = Counter(
            "spinney_resync_reconciles",
            "Reconciles that only the safety resync asked for.",
            ["controller"],
            registry=self.registry,
        )
        self.repairs = Counter(
            "spinney_resync_repairs",
            "Resync reconciles that wrote something: an event was missed. Expected to stay zero.",
            ["controller"],
            registry=self.registry,
        )
        self.events = Counter(
            "spinney_events",
            "Kubernetes events by outcome (sent, merged, dropped, failed).",
            ["outcome"],
            registry=self.registry,
        )
        self.failed_rounds = Counter(
            "spinney_failed_rounds",
            "Rounds of a loop, such as scheduling cycles, that failed as a whole.",
            ["loop"],
            registry=self.registry,
        )
        self.failed_in_a_row = Gauge(
            "spinney_failed_rounds_in_a_row",
            "How many rounds of a loop have failed in a row; 0 while all is well.",
            ["loop"],
            registry=self.registry,
        )
        self.leading = Gauge(
            "spinney_leading", "1 while this process holds the lease.", ["lease"], registry=self.registry
        )
        self.lease_renewal_seconds = Histogram(
            "spinney_lease_renewal_seconds",
            "How long after it was due a renewal succeeded.",
            ["lease"],
            buckets=_SECONDS,
            registry=self.registry,
        )
