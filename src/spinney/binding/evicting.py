"""Evicting victims: all that one job needs, or none.

Evictions go through the eviction subresource, so disruption budgets hold. The victims of one beneficiary only help
together; therefore each is tried first (a dry run), and nothing is evicted unless all of them may be. Victims are told
for whom they go, and the beneficiary what its room has cost others. Between the trial and the eviction a budget can
still be spent by another eviction; such an eviction is tried again for a while and then reported.
"""

import asyncio
from collections.abc import Awaitable
from typing import Final

import msgspec
import structlog

from spinney.api.events import ObjectReference
from spinney.binding.binder import is_outcome_unknown
from spinney.binding.placement import pod_reference
from spinney.explain.amounts import counted, first_few
from spinney.kube.client import Client
from spinney.kube.errors import KubeError, TooManyRequests
from spinney.kube.events import EventRecorder
from spinney.kube.keys import Key
from spinney.kube.reconciling import unless_gone
from spinney.kube.retrying import exponential

log = structlog.get_logger()

EVENT_REASON: Final = "Evict"
MADE_ROOM: Final = " to make room: "
"""What an event has in it that tells the job for whose sake others were evicted."""
REFUSED: Final = "EvictRefused"
SHOWN_PODS: Final = 5
"""Of those that leave, in an event."""
PARALLEL: Final = 16
ATTEMPTS: Final = 5
_FIRST_DELAY, _LONGEST_DELAY = 0.5, 8.0


class Victim(msgspec.Struct, frozen=True):
    """A pod to be evicted, and what it is told."""

    pod: Key
    uid: str
    message: str


class Disruption(msgspec.Struct, frozen=True):
    """Pods that go for one purpose. ``beneficiary`` is what events about their cost point at, if there is one."""

    name: str
    victims: tuple[Victim, ...]
    beneficiary: ObjectReference | None = None
    reason: str = EVENT_REASON
    """The word for it in events on the victims."""


class Evictor:
    """Carries out disruptions."""

    def __init__(self, client: Client, events: EventRecorder) -> None:
        self._client = client
        self._events = events
        self._slots = asyncio.Semaphore(PARALLEL)

    async def evict(self, disruption: Disruption) -> tuple[Victim, ...]:
        """Evict every victim, or none if one may not be; return those that were. Never raises for an API refusal."""
        victims = disruption.victims
        if disruption.beneficiary is not None and len(victims) > 1:
            answers = await asyncio.gather(*map(self._try, victims))
            refused = [(victim, error) for victim, error in zip(victims, answers, strict=True) if error is not None]
            if refused:
                victim, error = refused[0]
                self._say_refused(disruption, f"no pod was evicted, because {victim.pod} may not be: {error}")
                return ()
        answers = await asyncio.gather(*(self._evict(victim, disruption.reason) for victim in victims))
        gone = tuple(victim for victim, error in zip(victims, answers, strict=True) if error is None)
        lost = [(victim, error) for victim, error in zip(victims, answers, strict=True) if error is not None]
        if lost:
            victim, error = lost[0]
            self._say_refused(disruption, f"{len(gone)} pods were evicted, but {victim.pod} may not be: {error}")
        if gone and disruption.beneficiary is not None:
            shown = first_few([victim.pod for victim in gone], SHOWN_PODS)
            message = f"Evicted {counted(len(gone), 'pod')}{MADE_ROOM}{shown}"
            self._events.event(disruption.beneficiary, "Normal", EVENT_REASON, message)
        return gone

    async def _try(self, victim: Victim) -> KubeError | None:
        try:
            async with self._slots:
                await unless_gone(self._eviction(victim, dry_run=True))
        except KubeError as error:
            return None if is_outcome_unknown(error) else error
        return None

    async def _evict(self, victim: Victim, reason: str) -> KubeError | None:
        for attempt in range(ATTEMPTS):
            try:
                async with self._slots:
                    if not await unless_gone(self._eviction(victim)):
                        return None
            except KubeError as error:
                again = is_outcome_unknown(error) or isinstance(error, TooManyRequests)
                if attempt == ATTEMPTS - 1 or not again:
                    return error
            else:
                break
            delay = exponential(attempt, first=_FIRST_DELAY, longest=_LONGEST_DELAY)
            await self._client.runtime.clock.sleep(delay)
        self._events.event(pod_reference(victim.pod, victim.uid), "Warning", reason, f"Evicted: {victim.message}")
        return None

    def _eviction(self, victim: Victim, *, dry_run: bool = False) -> Awaitable[None]:
        return self._client.evict(victim.pod.namespace, victim.pod.name, uid=victim.uid, dry_run=dry_run)

    def _say_refused(self, disruption: Disruption, message: str) -> None:
        log.warning("eviction refused", purpose=disruption.name, reason=message)
        if disruption.beneficiary is not None:
            self._events.event(disruption.beneficiary, "Warning", REFUSED, message)
