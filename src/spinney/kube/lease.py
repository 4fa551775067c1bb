"""Leader election by Lease.

The holder renews every ``retry_period``. A holder that has not renewed for ``renew_deadline`` stops; another process
may take the lease only after it has seen no renewal for ``lease_duration``, which is longer. Both sides count on their
own monotonic clock (the holder from before its request was sent, the others from when they saw the renewal), so
differing wall clocks do not matter, and the holder has always stopped before the lease can be taken.

Stopping has two parts: :meth:`LeaderElection.run` cancels what it was given to run, and
:class:`~spinney.kube.guarding.FencedTransport` refuses writes the moment the deadline has passed, which also holds for
a process that was suspended and does not know yet.
"""

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import msgspec
import structlog

from spinney.api.coordination import LEASE, Lease, LeaseSpec
from spinney.api.meta import ObjectMeta
from spinney.api.time import micro_timestamp
from spinney.kube.client import Client
from spinney.kube.errors import AlreadyExists, Conflict, KubeError, NotFound
from spinney.kube.metrics import KubeMetrics
from spinney.kube.retrying import NEVER
from spinney.kube.troubles import Troubles
from spinney.runtime import Runtime

log = structlog.get_logger()


class LeaseLost(KubeError):
    """The lease could not be renewed in time; this process must stop what the lease protects."""


class LeaseGivenAway(Exception):
    """This process cannot do its work, so another replica should; it says why."""


@dataclass(frozen=True, slots=True)
class LeaseTimes:
    """The three periods of an election, in seconds; the defaults are those of every Kubernetes component."""

    lease_duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0

    def __post_init__(self) -> None:
        if not 0 < self.retry_period * 2 <= self.renew_deadline < self.lease_duration:
            raise ValueError(
                f"lease times {self} cannot work: expected retry_period * 2 <= renew_deadline < lease_duration"
            )


def process_identity(runtime: Runtime) -> str:
    """Return who this process is in elections.

    In a pod (POD_NAME and POD_UID, from the downward API) that is the pod: its container is started again only after
    the former one has ended, so what restarts after a crash has the lease at once instead of waiting for it to expire.
    """
    name, uid = os.environ.get("POD_NAME"), os.environ.get("POD_UID")
    return f"{name}_{uid}" if name and uid else f"{socket.gethostname()}_{runtime.uid()}"


class LeaderElection:
    """One process's part in an election. Mutable: it knows until when it may act as leader."""

    def __init__(
        self,
        client: Client,
        name: str,
        namespace: str,
        *,
        identity: str,
        runtime: Runtime,
        times: LeaseTimes = LeaseTimes(),  # noqa: B008 - a frozen value
        metrics: KubeMetrics | None = None,
    ) -> None:
        self.name = name
        self.namespace = namespace
        self.identity = identity
        self.times = times
        # A renewal is tried again by the election itself, on its own schedule and within its deadline.
        self._metrics = metrics or KubeMetrics()
        self._client = Client(
            client.transport,
            runtime,
            field_manager=client.field_manager,
            retry=NEVER,
            timeout=times.renew_deadline / 2,
            metrics=self._metrics.requests,
        )
        self._runtime = runtime
        self._observed: Lease | None = None
        self._observed_at = 0.0
        self._held_until = float("-inf")
        self._troubles = Troubles()

    @property
    def held_until(self) -> float:
        """Return the monotonic time up to which this process may act as leader, were no further renewal to succeed."""
        return self._held_until

    @property
    def leading(self) -> bool:
        """Tell whether this process may act as leader now."""
        return self._runtime.clock.monotonic() < self._held_until

    def unsettled(self) -> str | None:
        """Return why it is open who leads, or None: this process does, or the lease says who else."""
        return None if self.leading or self._holder() else f"lease {self.namespace}/{self.name} was not read yet"

    def standing_by(self) -> str | None:
        """Return that this process only stands by, and for whom, or None while it may act as leader."""
        if self.leading:
            return None
        holder = (self._holder() or "nobody").partition("_")[0]  # an identity is the name of a pod and its uid
        return f"this replica stands by: {holder} holds lease {self.namespace}/{self.name}"

    async def run(self, lead: Callable[[], Awaitable[None]]) -> None:
        """Wait for the lease, then run ``lead`` while renewing; release the lease when ``lead`` ends.

        If the lease is lost, ``lead`` is cancelled and :class:`LeaseLost` is raised.
        """
        await self.acquire()
        await self.hold(lead)

    async def hold(self, lead: Callable[[], Awaitable[None]]) -> None:
        """Run ``lead`` while renewing the lease just acquired; release it when ``lead`` ends."""
        leading = asyncio.ensure_future(lead())
        renewing = asyncio.create_task(self._renew_until_lost(), name=f"renew lease {self.name}")
        try:
            await asyncio.wait({leading, renewing}, return_when=asyncio.FIRST_COMPLETED)
            if not leading.done():
                await _cancel(leading)
                await renewing
            await leading
        finally:
            await _cancel(leading)
            await _cancel(renewing)
            self._metrics.leading.labels(self.name).set(0)
            await self.release()

    async def acquire(self) -> None:
        """Wait until this process holds the lease."""
        self._metrics.leading.labels(self.name).set(0)
        self._metrics.lease_renewal_seconds.labels(self.name)
        log.info("waiting for the lease", lease=self.name, namespace=self.namespace, identity=self.identity)
        while not await self._try():
            jitter = 1 + 1.2 * self._runtime.random.random()
            await self._runtime.clock.sleep(self.times.retry_period * jitter)
        self._metrics.leading.labels(self.name).set(1)
        log.info("lease acquired", lease=self.name, identity=self.identity)

    async def release(self) -> None:
        """Give the lease up at once, so that the next holder need not wait for it to expire."""
        if not self.leading or self._observed is None:
            return
        self._held_until = float("-inf")
        spec = msgspec.structs.replace(
            self._observed.spec, holder_identity="", lease_duration_seconds=1, renew_time=self._now()
        )
        try:
            await self._client.replace(LEASE, msgspec.structs.replace(self._observed, spec=spec), self.namespace)
        except KubeError as error:
            log.warning("lease not released, it will expire", lease=self.name, error=str(error))
        else:
            log.info("lease released", lease=self.name, identity=self.identity)

    async def _renew_until_lost(self) -> None:
        clock = self._runtime.clock
        due = clock.monotonic() + self.times.retry_period
        while True:
            await clock.sleep(max(0.0, due - clock.monotonic()))
            if await self._try():
                self._metrics.lease_renewal_seconds.labels(self.name).observe(clock.monotonic() - due)
                due += self.times.retry_period
                due = max(due, clock.monotonic())
                continue
            if not self.leading:
                raise LeaseLost(
                    f"lease {self.namespace}/{self.name} of {self.identity} {self._how_lost()}; "
                    "the process ends, and stands by when it is started again"
                )
            due = clock.monotonic() + self.times.retry_period

    async def _try(self) -> bool:
        """Acquire or renew once; on failure say why in the log and return False."""
        started = self._runtime.clock.monotonic()
        timeout = self.times.renew_deadline / 2
        if self._held_until > started:
            timeout = min(timeout, self._held_until - started)
        try:
            async with asyncio.timeout(timeout):
                held = await self._acquire_or_renew()
        except (Conflict, AlreadyExists):
            self._observed = None  # another process wrote it: look before the next try
            return False
        except (KubeError, TimeoutError) as error:
            say = log.warning if self._troubles.is_new(error) else log.debug
            say("lease not reached", lease=self.name, error=str(error) or "no answer in time")
            return False
        if self._troubles.end():
            log.info("lease reached again", lease=self.name)
        if held:
            self._held_until = started + self.times.renew_deadline
        return held

    async def _acquire_or_renew(self) -> bool:
        current = self._observed if self._holder() == self.identity else None
        if current is None:
            try:
                current = await self._client.get(LEASE, self.name, self.namespace, type=Lease)
            except NotFound:
                metadata = ObjectMeta(name=self.name, namespace=self.namespace)
                fresh = Lease(metadata=metadata, spec=self._spec(None))
                self._observe(await self._client.create(LEASE, fresh, self.namespace, type=Lease))
                return True
            self._observe(current)
            if self._held_by_another(current):
                self._held_until = float("-inf")
                return False
        renewed = msgspec.structs.replace(current, spec=self._spec(current.spec))
        self._observe(await self._client.replace(LEASE, renewed, self.namespace, type=Lease))
        return True

    def _held_by_another(self, lease: Lease) -> bool:
        holder = lease.spec.holder_identity
        if not holder or holder == self.identity:
            return False
        duration = lease.spec.lease_duration_seconds or self.times.lease_duration
        return self._runtime.clock.monotonic() < self._observed_at + duration

    def _observe(self, lease: Lease) -> None:
        if self._observed is None or self._observed.metadata.resource_version != lease.metadata.resource_version:
            self._observed_at = self._runtime.clock.monotonic()
        self._observed = lease

    def _spec(self, before: LeaseSpec | None) -> LeaseSpec:
        now = self._now()
        before = before or LeaseSpec()
        taken_over = before.holder_identity != self.identity
        transitions = before.lease_transitions or 0
        return msgspec.structs.replace(
            before,
            holder_identity=self.identity,
            lease_duration_seconds=max(1, round(self.times.lease_duration)),
            acquire_time=now if taken_over else before.acquire_time,
            renew_time=now,
            lease_transitions=transitions + 1 if taken_over and before.holder_identity is not None else transitions,
        )

    def _how_lost(self) -> str:
        """Return how the lease was lost, as far as it was read."""
        holder = self._holder()
        if holder not in (None, "", self.identity):
            return f"was taken: {holder} holds it now"
        if self._observed is None:
            return "was not renewed: another process has written it"
        return f"was not renewed within {self.times.renew_deadline:g} s"

    def _holder(self) -> str | None:
        return None if self._observed is None else self._observed.spec.holder_identity

    def _now(self) -> str:
        return micro_timestamp(self._runtime.clock.now())


async def _cancel(task: "asyncio.Future[None]") -> None:
    """Cancel a task and wait until it has ended; an error of its clean-up is reported, for nobody awaits it now."""
    if task.done():
        if not task.cancelled():
            task.exception()  # raised where it is awaited, or overtaken by another end at the same moment
        return
    task.cancel()
    await asyncio.wait({task})
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("clean-up failed after the lease ended", exc_info=error)
