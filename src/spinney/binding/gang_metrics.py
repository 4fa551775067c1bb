"""What both schedulers tell Prometheus about gangs: how long they waited and were bound, and who was evicted.

The number of series is bounded. Sizes are classes, not numbers. The first :data:`MOST_QUEUES` queues that are seen have
series of their own, all others are counted together as :data:`OTHER_QUEUES`; the series of a queue end when the queue
is deleted, and its place is free for another. Labels never name pods, gangs or namespaces.
"""

from collections.abc import Collection, Iterator
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Histogram

MOST_QUEUES: Final = 200
OTHER_QUEUES: Final = "(other)"
"""No queue can have this name: it is none that Kubernetes allows."""

_SIZES: Final = ((1, "1"), (8, "2-8"), (64, "9-64"), (512, "65-512"))
_LARGEST: Final = "513+"
_WAIT_SECONDS: Final = (1, 5, 15, 60, 300, 900, 3600, 14400, 86400)
_BIND_SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


def size_class(pods: int) -> str:
    """Return the class of gangs of so many pods."""
    return next((name for most, name in _SIZES if pods <= most), _LARGEST)


class LabelValues:
    """The values of one label that have series of their own; all others share one. Mutable."""

    def __init__(self, most: int, *, other: str) -> None:
        self._most = most
        self._other = other
        self._named: set[str] = set()

    def of(self, value: str) -> str:
        """Return what a value is called in metrics; it keeps its place until it is forgotten."""
        if value not in self._named:
            if len(self._named) >= self._most:
                return self._other
            self._named.add(value)
        return value

    def forget(self, value: str) -> None:
        """Give the place of a value that is gone to another."""
        self._named.discard(value)

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._named))


class GangMetrics:
    """Histograms and counters of one scheduler."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.queues = LabelValues(MOST_QUEUES, other=OTHER_QUEUES)
        self._wait = Histogram(
            "spinney_gang_wait_seconds",
            "How long gangs waited, from the creation of their youngest pod until they were bound, by queue and number "
            "of pods. A single pod is a gang of 1.",
            ["queue", "size"],
            buckets=_WAIT_SECONDS,
            registry=registry,
        )
        self._bind = Histogram(
            "spinney_bind_seconds",
            "How long it took to bind what was decided together, volumes and devices included, by outcome (bound, "
            "failed).",
            ["outcome"],
            buckets=_BIND_SECONDS,
            registry=registry,
        )
        self._victims = Counter(
            "spinney_victims",
            "Pods that were evicted, by their queue and by what asked for it: an action of the session scheduler "
            "(preempt, reclaim, consolidation, relocation, stalegangeviction), `release` of a part-bound gang.",
            ["queue", "reason"],
            registry=registry,
        )
        self.checkpoints = Counter(
            "spinney_checkpoint_requests",
            "Gangs that were asked to checkpoint before they are evicted, by what became of it (asked, ready, "
            "timed_out, withdrawn).",
            ["outcome"],
            registry=registry,
        )
        for outcome in ("asked", "ready", "timed_out", "withdrawn"):
            self.checkpoints.labels(outcome)
        self._lost = Counter(
            "spinney_lost_gpu_seconds",
            "Work that evicted pods lost: GPUs times the time since they were bound, or since the last checkpoint of "
            "their gang, by what asked for the eviction.",
            ["reason"],
            registry=registry,
        )
        self._series: dict[str, set[tuple[Histogram | Counter, str]]] = {}
        """By queue, the metrics that have series of it, and the other label of each."""
        for outcome in ("bound", "failed"):
            self._bind.labels(outcome)

    def waited(self, seconds: float, *, queue: str, pods: int) -> None:
        """Count a gang of so many pods that got its nodes."""
        label, size = self.queues.of(queue), size_class(pods)
        self._series.setdefault(label, set()).add((self._wait, size))
        self._wait.labels(label, size).observe(max(seconds, 0.0))

    def bound(self, seconds: float, *, failed: Collection[object] = ()) -> None:
        """Count binds that ended together; one that failed counts for all."""
        self._bind.labels("failed" if failed else "bound").observe(seconds)

    def evicted(self, pods: int, *, queue: str, reason: str) -> None:
        """Count pods of one queue that were evicted for one reason."""
        label = self.queues.of(queue)
        self._series.setdefault(label, set()).add((self._victims, reason))
        self._victims.labels(label, reason).inc(pods)

    def lost(self, gpu_seconds: float, *, reason: str) -> None:
        """Count work that was lost by an eviction."""
        self._lost.labels(reason).inc(gpu_seconds)

    def forget_queue(self, queue: str) -> None:
        """End the series of a queue that was deleted."""
        for metric, value in self._series.pop(queue, ()):
            metric.remove(queue, value)
        self.queues.forget(queue)
