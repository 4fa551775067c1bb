"""Binding pods, many at a time, gang by gang.

A gang's pods are bound concurrently, bounded over all gangs by one semaphore so that a thousand-pod gang does not
open a thousand connections. A pod the API server already shows on the wanted node counts as bound: that is what a
retry after a lost answer looks like. Any other refusal is final for this placement and reported to the caller, who
holds the capacity of the pods that were bound and completes or releases the gang (:mod:`spinney.binding.repair`).
"""

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from spinney.api.core import POD, Pod
from spinney.binding.placement import BindFailure, GangOutcome, GangPlacement, Placement, pod_reference
from spinney.kube.client import Client
from spinney.kube.errors import ApiError, Conflict
from spinney.kube.events import EventRecorder

log = structlog.get_logger()

PreBind = Callable[[Placement], Awaitable[None]]
"""Work a pod needs before it may be bound, such as provisioning a volume on the chosen node; raises to refuse."""


class Binder:
    """Writes placements to the API server."""

    def __init__(
        self,
        client: Client,
        events: EventRecorder,
        *,
        parallel: int = 64,
        pre_bind: tuple[PreBind, ...] = (),
    ) -> None:
        self._client = client
        self._events = events
        self._slots = asyncio.Semaphore(parallel)
        self._pre_bind = pre_bind

    async def bind(self, gang: GangPlacement) -> GangOutcome:
        """Bind every pod of ``gang`` and return what became of each; never raises for an API refusal."""
        answers = await asyncio.gather(*(self._bind_one(placement) for placement in gang.placements))
        bound = tuple(p for p, error in zip(gang.placements, answers, strict=True) if error is None)
        failed = tuple(
            BindFailure(p, error) for p, error in zip(gang.placements, answers, strict=True) if error is not None
        )
        if failed:
            log.warning("gang bound in part", gang=gang.gang, bound=len(bound), failed=len(failed))
        return GangOutcome(gang=gang.gang, bound=bound, failed=failed)

    async def _bind_one(self, placement: Placement) -> ApiError | None:
        pod = pod_reference(placement.pod, placement.uid)
        try:
            for prepare in self._pre_bind:
                await prepare(placement)
            async with self._slots:
                await self._post_binding(placement)
        except ApiError as error:
            log.warning("bind refused", pod=str(placement.pod), node=placement.node, error=str(error))
            self._events.event(pod, "Warning", "FailedBinding", f"Failed to bind to {placement.node}: {error}")
            return error
        self._events.event(pod, "Normal", "Scheduled", f"Successfully assigned {placement.pod} to {placement.node}")
        return None

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
