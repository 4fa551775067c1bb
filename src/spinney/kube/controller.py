"""Controllers: from changes in caches to reconciles, level-triggered.

A controller subscribes to caches, maps each change to the keys it concerns, and calls ``reconcile(key)`` for each key
through its work queue. A reconcile that raises is tried again with back-off; one that returns :class:`Requeue` is
called again later. Which change caused a reconcile is deliberately not passed on: a reconciler looks at the state.

The safety resync asks for every primary key once in a while. A reconcile that only the resync asked for and that then
writes something is a repair: some event was missed, or a mapping forgotten. Repairs are logged and counted, and tests
assert that there are none.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeVar

import msgspec
import structlog

from spinney.api.meta import OwnerReference
from spinney.api.resource import Resource
from spinney.kube.cache import Change, WatchCache
from spinney.kube.errors import Conflict, KubeError
from spinney.kube.keys import Key
from spinney.kube.metrics import KubeMetrics
from spinney.kube.queue import LONGEST_DELAY_SECONDS, Origin, QueueClosed, Work, WorkQueue
from spinney.kube.writes import counting_writes
from spinney.runtime import Runtime
from spinney.runtime.faults import raised_later
from spinney.runtime.tasks import in_background

Mapper = Callable[[Change[Any]], Iterable[Key]]


def itself(change: Change[Any]) -> Iterable[Key]:
    """Map a change to the changed object."""
    return (change.key,)


def to_controller_of(owner: Resource) -> Mapper:
    """Map an object to the owner of kind ``owner`` that controls it."""

    def owners_of(obj: Any, namespace: str) -> Iterable[Key]:
        for reference in obj.metadata.owner_references:
            if reference.controller and _is(reference, owner):
                yield Key(namespace if owner.namespaced else "", reference.name)

    return _of_both_sides(owners_of)


def to_label(label: str) -> Mapper:
    """Map an object to the object of its namespace that the value of ``label`` names."""

    def named_by(obj: Any, namespace: str) -> Iterable[Key]:
        name = obj.metadata.labels.get(label)
        return () if not name else (Key(namespace, name),)

    return _of_both_sides(named_by)


def _of_both_sides(keys_of: Callable[[Any, str], Iterable[Key]]) -> Mapper:
    """Look at an object before and after its change: one that moves from an owner, or label, to another wakes both."""

    def mapper(change: Change[Any]) -> Iterable[Key]:
        sides = (side for side in (change.old, change.new) if side is not None)
        return dict.fromkeys(key for side in sides for key in keys_of(side, change.key.namespace))

    return mapper


def _is(reference: OwnerReference, owner: Resource) -> bool:
    group, _, _ = reference.api_version.rpartition("/")
    return reference.kind == owner.kind and group == owner.group


T = TypeVar("T")

log = structlog.get_logger()

RESYNC_SECONDS = 600.0


class Requeue(msgspec.Struct, frozen=True):
    """Ask for another reconcile of the same key: after some seconds, or with growing back-off when None."""

    after: float | None = None


Reconcile = Callable[[Key], Awaitable[Requeue | None]]


class Controller:
    """Runs one reconcile function for the keys of one kind; reconciles of one key never overlap."""

    def __init__(
        self,
        name: str,
        reconcile: Reconcile,
        *,
        runtime: Runtime,
        workers: int = 4,
        resync_seconds: float = RESYNC_SECONDS,
        longest_delay: float = LONGEST_DELAY_SECONDS,
        metrics: KubeMetrics | None = None,
    ) -> None:
        self.name = name
        self.queue = WorkQueue(runtime, longest_delay=longest_delay)
        self._reconcile = reconcile
        self._runtime = runtime
        self._workers = workers
        self._resync_seconds = resync_seconds
        self._metrics = _Metrics(metrics or KubeMetrics(), name, self.queue)
        self._primaries: list[WatchCache[Any]] = []
        self._repairs = 0

    @property
    def repairs(self) -> int:
        """Return how many resync reconciles had something to write, which should be none."""
        return self._repairs

    def watch(
        self,
        cache: WatchCache[T],
        mapper: Callable[[Change[T]], Iterable[Key]] | None = None,
        *,
        unless: Callable[[Change[T]], bool] | None = None,
    ) -> None:
        """Reconcile upon changes in ``cache``: of the changed key itself, or of the keys ``mapper`` gives.

        A change for which ``unless`` holds asks for nothing.

        Without a mapper the cache holds the controller's primary kind, whose keys the safety resync asks for.
        """
        if mapper is None:
            self._primaries.append(cache)
        keys_of: Mapper = mapper or itself

        def enqueue(change: Change[T]) -> None:
            if unless is not None and unless(change):
                return
            for key in keys_of(change):
                self.queue.add(key)

        cache.subscribe(enqueue)

    def enqueue(self, key: Key) -> None:
        """Ask for a reconcile now."""
        self.queue.add(key)

    def enqueue_after(self, key: Key, seconds: float) -> None:
        """Ask for a reconcile after some seconds."""
        self.queue.add_after(key, seconds)

    async def run(self) -> None:
        """Reconcile until :meth:`stop`, then finish the reconciles under way."""
        async with in_background(self._resync()), asyncio.TaskGroup() as workers:
            for number in range(self._workers):
                workers.create_task(self._work(), name=f"{self.name} worker {number}")

    def stop(self) -> None:
        """Start no further reconcile; :meth:`run` returns when those under way are done."""
        self.queue.shut_down()

    async def _work(self) -> None:
        while True:
            try:
                work = await self.queue.get()
            except QueueClosed:
                return
            await self._one(work)

    async def _one(self, work: Work) -> None:
        key = work.key
        started = self._runtime.clock.monotonic()
        self._metrics.waited.observe(started - work.added)
        result = "failed"
        with counting_writes() as writes:
            try:
                requeue = await self._reconcile(key)
                result = "done" if requeue is None else "requeued"
                self._settle(key, requeue)
            except asyncio.CancelledError:
                self.queue.add(key)  # the process may lead again
                raise
            except raised_later() as error:  # whatever a reconcile raises is logged and tried again
                self._report(key, error, self.queue.add_backing_off(key))
            finally:
                asked_again = self.queue.done(key)
        self._metrics.results[result].inc()
        self._metrics.took.observe(self._runtime.clock.monotonic() - started)
        if work.origin is Origin.RESYNC:
            self._metrics.resyncs.inc()
            if writes.count and asked_again is not Origin.EVENT:
                self._repairs += 1
                self._metrics.repairs.inc()
                log.warning("resync repaired what no event asked for", controller=self.name, key=str(key))

    def _settle(self, key: Key, requeue: Requeue | None) -> None:
        if requeue is not None and requeue.after is None:
            self.queue.add_backing_off(key)
            return
        self.queue.forget(key)
        if requeue is not None and requeue.after is not None:
            self.queue.add_after(key, requeue.after)

    def _report(self, key: Key, error: BaseException, delay: float) -> None:
        fields = {"controller": self.name, "key": str(key), "retry_in": round(delay, 3), "error": str(error)}
        if isinstance(error, Conflict):
            log.debug("reconcile met a newer version", **fields)
        elif isinstance(error, KubeError):
            log.warning("reconcile failed", status=getattr(error, "status", None), **fields)
        else:
            log.exception("reconcile failed", exc_info=error, **fields)

    async def _resync(self) -> None:
        while True:
            await self._runtime.clock.sleep(self._resync_seconds * (0.9 + 0.2 * self._runtime.random.random()))
            for cache in self._primaries:
                for key in cache:
                    if not self.queue.is_pending(key):
                        self.queue.add(key, Origin.RESYNC)


class _Metrics:
    """The metrics of one controller, looked up once."""

    def __init__(self, metrics: KubeMetrics, name: str, queue: WorkQueue) -> None:
        metrics.queue_depth.labels(name).set_function(lambda: len(queue))
        self.waited = metrics.queue_seconds.labels(name)
        self.took = metrics.reconcile_seconds.labels(name)
        self.results = {result: metrics.reconciles.labels(name, result) for result in ("done", "requeued", "failed")}
        self.resyncs = metrics.resyncs.labels(name)
        self.repairs = metrics.repairs.labels(name)
