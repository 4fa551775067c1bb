"""The metrics of the Kubernetes runtime, registered once per process in the registry that is passed in."""

from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from spinney.kube.request_metrics import RequestMetrics

_SECONDS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class KubeMetrics:
    """Counters and gauges of caches, queues, controllers and the lease; labels name the controller or resource."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self.registry = registry if registry is not None else CollectorRegistry()
        self.requests = RequestMetrics(self.registry)
        counter, gauge = partial(Counter, registry=self.registry), partial(Gauge, registry=self.registry)
        histogram = partial(Histogram, buckets=_SECONDS, registry=self.registry)
        self.watch_events = counter("spinney_watch_events", "Watch events absorbed.", ["resource"])
        self.watch_relists = counter(
            "spinney_watch_relists", "Collections listed again after the watch fell behind.", ["resource"]
        )
        self.undecodable = counter(
            "spinney_undecodable_objects", "Objects ignored because they did not have the expected shape.", ["resource"]
        )
        self.cached = gauge("spinney_cached_objects", "Objects held.", ["resource"])
        self.reconciles = counter(
            "spinney_reconciles", "Reconciles by result (done, requeued, failed).", ["controller", "result"]
        )
        self.reconcile_seconds = histogram("spinney_reconcile_seconds", "How long a reconcile took.", ["controller"])
        self.queue_depth = gauge("spinney_workqueue_depth", "Keys waiting.", ["controller"])
        self.queue_seconds = histogram(
            "spinney_workqueue_seconds", "How long a key waited for its reconcile.", ["controller"]
        )
        self.resyncs = counter(
            "spinney_resync_reconciles", "Reconciles that only the safety resync asked for.", ["controller"]
        )
        self.repairs = counter(
            "spinney_resync_repairs",
            "Resync reconciles that wrote something: an event was missed. Expected to stay zero.",
            ["controller"],
        )
        self.events = counter(
            "spinney_events", "Kubernetes events by outcome (sent, merged, dropped, failed).", ["outcome"]
        )
        self.failed_rounds = counter(
            "spinney_failed_rounds", "Rounds of a loop, such as scheduling cycles, that failed as a whole.", ["loop"]
        )
        self.failed_in_a_row = gauge(
            "spinney_failed_rounds_in_a_row",
            "How many rounds of a loop have failed in a row; 0 while all is well.",
            ["loop"],
        )
        self.leading = gauge("spinney_leading", "1 while this process holds the lease.", ["lease"])
        self.lease_renewal_seconds = histogram(
            "spinney_lease_renewal_seconds", "How long after it was due a renewal succeeded.", ["lease"]
        )
