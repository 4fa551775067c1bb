"""A process made of caches, controllers and other runnables, started and stopped in order.

Start: health endpoints, caches, their sync, the lease, then controllers and runnables. Stop is the reverse: the process
is no longer ready, controllers and runnables finish what is under way, events are sent for a moment, the lease is
released, what needs no lease still answers clients that do not know of the stop yet, then caches and endpoints go. If
any part ends with an error, everything is stopped in the same order and the error names the part.
"""

# ruff: noqa: A002 - "type" is the word for what an answer is decoded as

import asyncio
import signal
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
import structlog

from spinney.api.resource import Resource
from spinney.kube.cache import WatchCache
from spinney.kube.client import Client
from spinney.kube.controller import Controller
from spinney.kube.delegation import Delegation
from spinney.kube.discovery import served
from spinney.kube.errors import ApiError, ConnectionFailed, KubeError, TooManyRequests
from spinney.kube.events import EventRecorder, Urgency
from spinney.kube.guarding import fenced
from spinney.kube.indexes import IndexFunction
from spinney.kube.late_kinds import Follow, LateKinds
from spinney.kube.lease import LeaderElection, LeaseGivenAway
from spinney.kube.metrics import KubeMetrics
from spinney.kube.troubles import Troubles
from spinney.runtime import Clock, Runtime
from spinney.runtime.tasks import end, in_background

if TYPE_CHECKING:  # it brings a web server along, which a process without endpoints does not need
    from spinney.kube.serving import Answer, Check, HealthServer

T = TypeVar("T")

GRACE_SECONDS = 10.0
"""How long reconciles under way, and what a runnable has begun, may take to end when the process stops."""
REACH_AGAIN_SECONDS = 2.0
"""Between attempts to reach an API server that did not answer."""
OPTIONAL_SECONDS = 30.0
"""How long a start waits for kinds that could not be listed, and without which the process can do its work."""
EVENT_SECONDS = 0.5
"""How much of that time events that were recorded before may take after it; the rest of them is dropped."""

log = structlog.get_logger()


class ComponentFailed(RuntimeError):
    """A part of the process ended that should not have; the message names it, the cause says why."""


class Runnable(msgspec.Struct, frozen=True):
    """Something that runs beside the controllers until cancelled."""

    name: str
    run: Callable[[], Awaitable[None]]
    needs_lease: bool = True


class Manager:
    """Composes one process. Mutable until :meth:`run`.

    With an election, :attr:`client` refuses writes while the lease is not held: give that one to the controllers.
    """

    def __init__(
        self,
        client: Client,
        runtime: Runtime,
        *,
        election: LeaderElection | None = None,
        health: "HealthServer | None" = None,
        metrics: KubeMetrics | None = None,
        linger_seconds: float = 0.0,
    ) -> None:
        self.client = client if election is None else fenced(client, election)
        self.unfenced = client
        """Writes whether or not the lease is held: for what every replica has to do."""
        self.runtime = runtime
        self.metrics = metrics or KubeMetrics()
        self._election = election
        self._health = health
        self._linger_seconds = linger_seconds
        self._caches: dict[tuple[Any, ...], WatchCache[Any]] = {}
        self._begun: dict[WatchCache[Any], asyncio.Task[None]] = {}
        self._needed: set[WatchCache[Any]] = set()
        self._controllers: list[Controller] = []
        self._runnables: list[Runnable] = []
        self._recorders: list[EventRecorder] = []
        self._urgency = Urgency()
        self._late_kinds: LateKinds | None = None
        self._unreached: str | None = None
        self._begun_to_run = False
        self._without_unlisted = False
        self._stopping = asyncio.Event()
        self._grace = GRACE_SECONDS
        self._ready = asyncio.Event()

    # ------------------------------------------------------------------------------------------------ composing

    def cache(
        self,
        resource: Resource,
        type: type[T],
        *,
        label_selector: str | None = None,
        indexes: Mapping[str, IndexFunction[T]] = {},
        optional: bool = False,
    ) -> WatchCache[T]:
        """Return the one cache of this resource, type and selection, made on first use; indexes add up.

        While one that is ``optional`` for all who ask for it cannot be listed, the process does its work without it.
        """
        identity = (resource, type, label_selector)
        cache = self._caches.get(identity)
        if cache is None:
            cache = self._caches[identity] = self.watch(resource, type, label_selector)
        for name, function in indexes.items():
            if not cache.has_index(name):
                cache.add_index(name, function)
        if not optional:
            self._needed.add(cache)
        return cache

    def watch(self, resource: Resource, type: type[T], label_selector: str | None = None) -> WatchCache[T]:
        """Return a new cache that is nobody else's, for the caller to run."""
        return WatchCache(
            self.client, resource, type, runtime=self.runtime, label_selector=label_selector, metrics=self.metrics
        )

    def begin(self, resource: Resource, type: type[Any]) -> None:
        """Begin to read a resource before :meth:`run`, which goes on with it; :meth:`abandon` it where that fails."""
        cache = self.cache(resource, type, optional=True)  # who needs it says so
        if cache not in self._begun:
            self._begun[cache] = asyncio.create_task(cache.run())

    async def begin_served(self, kinds: Mapping[Resource, type[Any]]) -> frozenset[Resource]:
        """Begin to read those of ``kinds`` that the API server serves, and return which."""
        found = await served(self.client, kinds)
        for resource, kind in kinds.items():
            if resource in found:
                self.begin(resource, kind)
        return found

    def follow_later(self, kinds: Mapping[Resource, type[Any]], follow: Follow) -> None:
        """Have ``follow`` called with the cache of each of ``kinds``, served by nobody yet, once it is while we run."""
        if self._late_kinds is None:
            self._late_kinds = LateKinds(self.client, self.watch)
            self.add_runnable("discovery", self._late_kinds.run, needs_lease=False)
        self._late_kinds.add(kinds, follow)

    async def abandon(self) -> None:
        """End what was begun and never run."""
        await end(*self._begun.values())
        self._begun.clear()
        if self._health is not None:
            await self._health.stop()

    def recorder(self, component: str) -> EventRecorder:
        """Return a new event recorder, flushed when the process stops."""
        recorder = EventRecorder(self.client, component, metrics=self.metrics, urgency=self._urgency)
        self._recorders.append(recorder)
        return recorder

    @property
    def elected(self) -> bool:
        """Tell whether other replicas may take over."""
        return self._election is not None

    @property
    def endpoint(self) -> tuple[str, int] | None:
        """Return where health and metrics are served, if they are; known once the process runs."""
        return self._health.address if self._health is not None else None

    def check_ready(self, name: str, check: "Check") -> None:
        """Have the process ready only while a check does not complain; nothing without endpoints."""
        if self._health is not None:
            self._health.check_ready(name, check)

    def answer_others(self, answer: "Answer") -> None:
        """Have paths of the process's endpoint that are not its own answered by a component; nothing without one.

        A replica that does not hold the lease has nothing to tell, and says who does.
        """
        if self._health is not None:
            standing_by = self._election.standing_by if self._election is not None else None
            self._health.answer_others(answer, Delegation(self.client).refusal, standing_by)

    def add(self, controller: Controller) -> None:
        """Run a controller while holding the lease."""
        self._controllers.append(controller)

    def add_runnable(self, name: str, run: Callable[[], Awaitable[None]], *, needs_lease: bool = True) -> None:
        """Run something else until the process stops: a scheduler's loop, a webhook server (``needs_lease=False``)."""
        self._runnables.append(Runnable(name, run, needs_lease))

    # ------------------------------------------------------------------------------------------------ running

    def stop(self, *, grace_seconds: float = GRACE_SECONDS) -> None:
        """Ask for a graceful stop; :meth:`run` returns when it is complete.

        What is under way has ``grace_seconds`` to end, all of it together, and is cancelled then.
        """
        self._grace = grace_seconds
        self._stopping.set()

    @property
    def stopping(self) -> bool:
        """Tell whether a stop was asked for."""
        return self._stopping.is_set()

    def stop_on_signals(self) -> None:
        """Have SIGTERM and SIGINT ask for a graceful stop; the kubelet sends the first before it kills."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stop)

    async def wait_until_ready(self) -> None:
        """Wait until the caches have synced and, with the lease held, the controllers run."""
        await self._ready.wait()

    async def reach(self) -> bool:
        """Wait until the API server answers; ``False`` if a stop was asked for before.

        A process that ended instead would be started again after ever longer rests, and be late after an outage.
        Health is served from here on; ready it is once it runs.
        """
        self._unreached = "it has not answered yet"
        if self._health is not None:
            self._health.check_ready("API server", lambda: self._unreached)
            self._health.check_ready("start", lambda: None if self._begun_to_run else "not complete yet")
            await self._health.start()
        async with in_background(self._stopping.wait(), self._answered()) as (stop, answered):
            await asyncio.wait({stop, answered}, return_when=asyncio.FIRST_COMPLETED)
            if answered.done():
                await answered
        return not self.stopping

    async def _answered(self) -> None:
        """Ask the API server until it answers."""
        troubles = Troubles()
        while (problem := await self._no_answer()) is not None:
            self._unreached = str(problem)
            if troubles.is_new(problem):
                log.warning("waiting for the API server", error=self._unreached)
            await self.runtime.clock.sleep(REACH_AGAIN_SECONDS)
        self._unreached = None

    async def _no_answer(self) -> KubeError | None:
        """Return why the API server does not answer; whatever it says is an answer, but that it cannot."""
        try:
            await self.unfenced.raw("GET", "/version")
        except (ConnectionFailed, TooManyRequests) as error:
            return error
        except ApiError as error:
            return error if error.status >= 500 else None
        return None

    async def run(self) -> None:
        """Run everything until :meth:`stop`, or until a part fails."""
        if self._health is not None:
            self._health.check_ready("stopping", lambda: "a stop was asked for" if self._stopping.is_set() else None)
            self._health.check_ready("caches", self._unsynced)
            self._health.note("kinds that cannot be listed", self._unlisted)
            if self._election is not None:
                self._health.check_ready("lease", self._election.unsettled)
            await self._health.start()
        self._begun_to_run = True
        try:
            async with _Parts(self._grace_period()) as parts:
                for cache in self._caches.values():
                    begun = self._begun.pop(cache, None)
                    parts.start(f"cache of {cache.resource}", cache.run() if begun is None else begun)
                if not await self._reaches(self._sync(), parts):
                    return
                for runnable in self._runnables:
                    if not runnable.needs_lease:
                        parts.start(runnable.name, runnable.run())
                if self._election is None:
                    await parts.watch_over(self._lead())
                else:
                    await self._lead_while_elected(self._election, parts)
                if self._linger_seconds:
                    await parts.watch_over(self.runtime.clock.sleep(self._linger_seconds))
        finally:
            if self._health is not None:
                await self._health.stop()
            log.info("stopped")

    async def _sync(self) -> None:
        for cache in self._caches.values():
            await (cache.wait_for_sync() if cache in self._needed else cache.wait_for_attempt())
        try:
            async with asyncio.timeout(OPTIONAL_SECONDS):
                for cache in self._caches.values():
                    await cache.wait_for_sync()
        except TimeoutError:
            log.error(  # noqa: TRY400 - it is told
                "started without kinds that cannot be listed; they are taken in as soon as they can be",
                problems={str(cache.resource): cache.problem for cache in self._caches.values() if not cache.synced},
            )
        self._without_unlisted = True
        log.info("caches synced", caches=sum(cache.synced for cache in self._caches.values()))

    async def _reaches(self, milestone: Awaitable[None], parts: "_Parts") -> bool:
        """Wait for a milestone; False if the process was asked to stop before."""
        reached = asyncio.ensure_future(milestone)
        stopping = asyncio.create_task(self._stopping.wait())
        try:
            await parts.watch_over(_first(reached, stopping))
            if reached.done():
                await reached
            return reached.done()
        finally:
            reached.cancel()
            stopping.cancel()
            await asyncio.wait({reached, stopping})

    async def _lead_while_elected(self, election: LeaderElection, parts: "_Parts") -> None:
        """Lead whenever the lease is ours, until asked to stop; a part that gives the lease away stands by again."""
        while await self._reaches(election.acquire(), parts):
            try:
                await parts.watch_over(election.hold(self._lead))
            except ComponentFailed as error:
                if not isinstance(error.__cause__, LeaseGivenAway):
                    raise
                log.error("lease given away", lease=election.name, problem=str(error.__cause__))  # noqa: TRY400 - it is told
            else:
                return
            # A replica that waits for the lease looks for it more often than that.
            if not await self._reaches(self.runtime.clock.sleep(election.times.lease_duration), parts):
                return

    async def _lead(self) -> None:
        """Run controllers and runnables until asked to stop, then let both finish within one grace period."""
        grace = self._grace_period()
        async with _Parts(grace) as parts:
            for runnable in self._runnables:
                if runnable.needs_lease:
                    parts.start(runnable.name, runnable.run())
            async with _Parts(grace) as controllers:
                for controller in self._controllers:
                    controllers.start(f"controller {controller.name}", controller.run())
                self._ready.set()
                await parts.watch_over(controllers.watch_over(self._asked_to_stop()))
                for controller in self._controllers:
                    controller.stop()
                parts.cancel()
                await controllers.finish()
        seconds = min(EVENT_SECONDS, grace.left())
        await asyncio.gather(*(recorder.close(seconds) for recorder in self._recorders))

    def _grace_period(self) -> "_GracePeriod":
        return _GracePeriod(self.runtime.clock, lambda: self._grace)

    async def _asked_to_stop(self) -> None:
        await self._stopping.wait()

    def _unsynced(self) -> str | None:
        if self._without_unlisted:
            return None
        waiting = [str(cache.resource) for cache in self._caches.values() if not cache.synced]
        return f"not synced: {', '.join(waiting)}" if waiting else None

    def _unlisted(self) -> str | None:
        """Return the kinds without which the process does its work, and why."""
        lacking = [f"{cache.resource} ({cache.problem})" for cache in self._caches.values() if not cache.synced]
        return ", ".join(lacking) or None


async def _first(*tasks: "asyncio.Future[Any]") -> None:
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)


class _GracePeriod:
    """How long several parts may take to end, one after the other. Mutable: begins when it is first asked for."""

    def __init__(self, clock: Clock, seconds: Callable[[], float]) -> None:
        self._clock = clock
        self._seconds = seconds
        self._end: float | None = None

    def left(self) -> float:
        """Return how many seconds are left of it."""
        now = self._clock.monotonic()
        if self._end is None:
            self._end = now + self._seconds()
        return max(0.0, self._end - now)


class _Parts:
    """Named tasks; on leaving the block they are cancelled in the reverse order of their start, or were before.

    One that has not ended when the grace period is over is cancelled once more, in the midst of what it finishes: the
    next process takes that up, as after a crash.
    """

    def __init__(self, grace: _GracePeriod) -> None:
        self._tasks: dict[asyncio.Future[None], str] = {}
        self._grace = grace
        self._cancelled = False

    async def __aenter__(self) -> "_Parts":
        return self

    async def __aexit__(self, *_: object) -> None:
        for task, name in reversed(self._tasks.items()):
            if not task.done():
                if not self._cancelled:
                    task.cancel()
                await _ended(task, name, self._grace.left())

    def start(self, name: str, run: Awaitable[None]) -> None:
        self._tasks[asyncio.ensure_future(run)] = name

    async def watch_over(self, main: Awaitable[None]) -> None:
        """Await ``main``; if one of the parts ends before it, cancel it and raise what happened."""
        task = asyncio.ensure_future(main)
        try:
            await asyncio.wait({task, *self._tasks}, return_when=asyncio.FIRST_COMPLETED)
            self._raise_if_any_ended()
            await task
        finally:
            if not task.done():
                task.cancel()
                await _ended(task, "the rest")

    def cancel(self) -> None:
        """Have all parts end at once; leaving the block waits for them."""
        self._cancelled = True
        for task in reversed(self._tasks):
            task.cancel()

    async def finish(self) -> None:
        """Wait for the parts to end on their own; those that do not in time are left to be cancelled."""
        if not self._tasks:
            return
        ended, late = await asyncio.wait(self._tasks, timeout=self._grace.left())
        for task in ended:
            if not task.cancelled() and (error := task.exception()) is not None:
                raise ComponentFailed(f"{self._tasks[task]} failed while stopping: {error}") from error
        if late:
            names = sorted(self._tasks[task] for task in late)
            log.info("not finished in time, cancelling", parts=names)

    def _raise_if_any_ended(self) -> None:
        for task, name in self._tasks.items():
            if task.done():
                error = None if task.cancelled() else task.exception()
                if error is None:
                    problem = "ended, though it should run until stopped"
                else:  # what the system says is a sentence
                    problem = f"failed: {error if isinstance(error, OSError) else repr(error)}"
                raise ComponentFailed(f"{name} {problem}") from error


async def _ended(task: "asyncio.Future[None]", name: str, grace_seconds: float | None = None) -> None:
    """Wait for the end of a task that was cancelled; an error of its clean-up is reported, for nobody awaits it."""
    _, late = await asyncio.wait({task}, timeout=grace_seconds)
    if late:
        log.info("not finished in time, cancelling", parts=[name])
        task.cancel()
        await asyncio.wait({task})
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("failed while stopping", part=name, exc_info=error)
