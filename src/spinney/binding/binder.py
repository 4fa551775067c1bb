"""Binding pods, many at a time, gang by gang.

A gang's pods are bound concurrently, bounded over all gangs by one semaphore so that a thousand-pod gang does not
open a thousand connections.

What pods need before they may be bound (:mod:`spinney.binding.prebind`) is prepared for the whole gang first.

A bind whose outcome is unknown (no answer, or a server error) is tried again for a while: the pod keeps the room it was
given, so the gang is completed where it was meant to be. A pod the API server already shows on the wanted node counts
as bound: that is what a retry after a lost answer looks like. Any other refusal is final for this placement and
reported to the caller, who gives the room back and places the pod anew (:mod:`spinney.binding.repair`).
"""

import asyncio
from collections.abc import Mapping, Sequence

import structlog

from spinney.api.core import POD, Pod
from spinney.api.events import ObjectReference
from spinney.binding.placement import BindFailure, GangOutcome, GangPlacement, Placement, pod_reference
from spinney.binding.prebind import PreBindInterrupted, PreBindRefused, Preparation
from spinney.explain.amounts import first_few
from spinney.kube.client import Client
from spinney.kube.errors import ApiError, Conflict, ConnectionFailed, KubeError, UndecodableResponse
from spinney.kube.events import EventRecorder
from spinney.kube.keys import Key
from spinney.kube.retrying import exponential

log = structlog.get_logger()

PARALLEL = 32  # at ten milliseconds a bind, three thousand a second; a connection costs a TLS handshake
ATTEMPTS = 6
Needs = Sequence[tuple[Preparation, Placement]]
_SHOWN_NODES = 8  # of a gang, in an event
_FIRST_DELAY, _LONGEST_DELAY = 0.1, 5.0


class Binder:
    """Writes placements to the API server."""

    def __init__(self, client: Client, events: EventRecorder, *, pre_bind: Sequence[Preparation] = ()) -> None:
        self._client = client
        self._events = events
        self._slots = asyncio.Semaphore(PARALLEL)
        self._pre_bind = pre_bind

    async def bind(self, gang: GangPlacement) -> GangOutcome:
        """Bind every pod of ``gang`` and return what became of each; never raises for an API refusal."""
        needs = [(step, each) for each in gang.placements for step in self._pre_bind if step.needs(each)]
        if needs and (refusals := await self._prepare(needs)):
            return self._refused(gang, refusals)
        answers: Sequence[KubeError | None]
        with self._events.giving_way():
            if len(gang.placements) == 1:  # most gangs are a single pod, and a task costs as much as a request
                answers = (await self._bind_one(gang.placements[0], gang.told_of),)
            else:
                answers = await asyncio.gather(*(self._bind_one(each, gang.told_of) for each in gang.placements))
        bound = tuple(p for p, error in zip(gang.placements, answers, strict=True) if error is None)
        if bound and gang.told_of is not None:
            where = first_few(sorted({placement.node for placement in bound}), _SHOWN_NODES)
            self._assigned(gang.told_of, f"{len(bound)} of {len(gang.placements)} pods to {where}")
        failed = tuple(
            BindFailure(p, error) for p, error in zip(gang.placements, answers, strict=True) if error is not None
        )
        if failed:
            log.warning("gang bound in part", gang=gang.gang, bound=len(bound), failed=len(failed))
            lost = {failure.placement.pod for failure in failed}
            await self._release([(step, each) for step, each in needs if each.pod in lost])
        return GangOutcome(bound, failed)

    def interrupt(self) -> None:
        """Give up waiting for what pods need before they are bound: the process stops."""
        for step in self._pre_bind:
            step.interrupt()

    async def _prepare(self, needs: Needs) -> dict[Key, KubeError]:
        """Prepare everything; if something is refused, take back all of it and return the refusals by pod."""
        answers = await asyncio.gather(*(self._prepare_one(step, placement) for step, placement in needs))
        found = zip(needs, answers, strict=True)
        refusals = {placement.pod: error for (_, placement), error in found if error is not None}
        if refusals and not any(isinstance(error, PreBindInterrupted) for error in refusals.values()):
            await self._release(needs)
        return refusals

    async def _prepare_one(self, step: Preparation, placement: Placement) -> KubeError | None:
        try:
            await step.prepare(placement)
        except KubeError as error:
            return error
        return None

    async def _release(self, needs: Needs) -> None:
        await asyncio.gather(*(step.release(placement) for step, placement in needs))

    def _refused(self, gang: GangPlacement, refusals: Mapping[Key, KubeError]) -> GangOutcome:
        """Report a gang of which nothing was bound, because some pod lacks something."""
        for placement in gang.placements:
            if placement.pod in refusals:
                self._report(placement, refusals[placement.pod])
        first, reason = next(iter(refusals.items()))
        others = PreBindRefused(f"not bound, because {first} of the same gang was not: {reason}")
        failed = tuple(BindFailure(each, refusals.get(each.pod, others)) for each in gang.placements)
        return GangOutcome((), failed)

    def _report(self, placement: Placement, error: KubeError) -> None:
        log.warning("bind refused", pod=str(placement.pod), node=placement.node, error=str(error))
        pod = pod_reference(placement.pod, placement.uid)
        self._events.event(pod, "Warning", "FailedBinding", f"Failed to bind to {placement.node}: {error}")

    async def _bind_one(self, placement: Placement, told_of: ObjectReference | None) -> KubeError | None:
        try:
            await self._bind_persistently(placement)
        except KubeError as error:
            self._report(placement, error)
            return error
        if told_of is None:
            self._assigned(pod_reference(placement.pod, placement.uid), f"{placement.pod} to {placement.node}")
        return None

    def _assigned(self, about: ObjectReference, what: str) -> None:
        self._events.event(about, "Normal", "Scheduled", f"Successfully assigned {what}")

    async def _bind_persistently(self, placement: Placement) -> None:
        for attempt in range(ATTEMPTS):
            try:
                async with self._slots:
                    await self._post_binding(placement)
            except KubeError as error:
                if attempt == ATTEMPTS - 1 or not is_outcome_unknown(error):
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


def is_outcome_unknown(error: KubeError) -> bool:
    """Tell whether a write that failed so may have happened, or may succeed if it is tried again."""
    unanswered = isinstance(error, ConnectionFailed | UndecodableResponse)
    return unanswered or (isinstance(error, ApiError) and error.status >= 500)
