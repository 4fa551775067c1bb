"""Binding pods, many at a time, gang by gang.

A gang's pods are bound concurrently, bounded over all gangs by one semaphore so that a thousand-pod gang does not
open a thousand connections.

A bind whose outcome is unknown (no answer, or a server error) is tried again for a while: the pod keeps the room it was
given, so the gang is completed where it was meant to be. A pod the API server already shows on the wanted node counts
as bound: that is what a retry after a lost answer looks like. Any other refusal is final for this placement and
reported to the caller, who gives the room back and places the pod anew (:mod:`spinney.binding.repair`).
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import structlog

from spinney.api.core import POD, Pod
from spinney.binding.placement import BindFailure, GangOutcome, GangPlacement, Placement, pod_reference
from spinney.kube.backoff import exponential
from spinney.kube.client import Client
from spinney.kube.errors import ApiError, Conflict, ConnectionFailed, KubeError
from spinney.kube.events import EventRecorder

log = structlog.get_logger()

PreBind = Callable[[Placement], Awaitable[None]]
"""Work a pod needs before it may be bound, such as provisioning a volume on the chosen node; raises to refuse."""

PARALLEL = 32  # at ten milliseconds a bind, three thousand a second; a connection costs a TLS handshake
ATTEMPTS = 6
_FIRST_DELAY, _LONGEST_DELAY = 0.1, 5.0


class Binder:
    """Writes placements to the API server."""

    def __init__(
        self,
        client: Client,
        events: EventRecorder,
        *,
        parallel: int = PARALLEL,
        pre_bind: tuple[PreBind, ...] = (),
    ) -> None:
        self._client = client
        self._events = events
        self._slots = asyncio.Semaphore(parallel)
        self._pre_bind = pre_bind

    async def bind(self, gang: GangPlacement) -> GangOutcome:
        """Bind every pod of ``gang`` and return what became of each; never raises for an API refusal."""
        answers: Sequence[KubeError | None]
        if len(gang.placements) == 1:  # most gangs are a single pod, and a task costs as much as a request
            answers = (await self._bind_one(gang.placements[0]),)
        else:
            answers = await asyncio.gather(*(self._bind_one(placement) for placement in gang.placements))
        bound = tuple(p for p, error in zip(gang.placements, answers, strict=True) if error is None)
        failed = tuple(
            BindFailure(p, error) for p, error in zip(gang.placements, answers, strict=True) if error is not None
        )
        if failed:
            log.warning("gang bound in part", gang=gang.gang, bound=len(bound), failed=len(failed))
        return GangOutcome(gang=gang.gang, bound=bound, failed=failed)

    async def _bind_one(self, placement: Placement) -> KubeError | None:
        pod = pod_reference(placement.pod, placement.uid)
        try:
            for prepare in self._pre_bind:
                await prepare(placement)
            await self._bind_persistently(placement)
        except KubeError as error:
            log.warning("bind refused", pod=str(placement.pod), node=placement.node, error=str(error))
            self._events.event(pod, "Warning", "FailedBinding", f"Failed to bind to {placement.node}: {error}")
            return error
        self._events.event(pod, "Normal", "Scheduled", f"Successfully assigned {placement.pod} to {placement.node}")
        return None

    async def _bind_persistently(self, placement: Placement) -> None:
        for attempt in range(ATTEMPTS):
            try:
                async with self._slots:
                    await self._post_binding(placement)
            except KubeError as error:
                if attempt == ATTEMPTS - 1 or not outcome_unknown(error):
                    raise
                log.info("bind tried again", pod=str(placement.pod), node=placement.node, error=str(error))
            else:
                return
            delay = exponential(attempt, first=_FIRST_DELAY, longest=_LONGEST_DELAY)
            await self._client.runtime.clock.sleep(delay)

    async def _post_binding(self, placement: Placement) -> None:
        try:
            await self._client.bind(
                placement.pod.namespace,
                placement.pod.name,
                placement.uid,
                placement.node,
                annotations=placement.annotations,
            )
        except Conflict:
            pod = await self._client.get(POD, placement.pod.name, placement.pod.namespace, type=Pod)
            if pod.metadata.uid != placement.uid or pod.spec.node_name != placement.node:
                raise


def outcome_unknown(error: KubeError) -> bool:
    """Tell whether a write that failed so may have happened, or may succeed if it is tried again."""
    return isinstance(error, ConnectionFailed) or (isinstance(error, ApiError) and error.status >= 500)
