"""Device claims (DRA): before a pod is bound, its claims hold the devices that were chosen, and are reserved for it.

A claim that is not allocated yet is given its devices and its first consumer in one write of its status; one that is
allocated gets one more consumer. Both name the version they were decided on, so of two writers one fails and looks
again. A pod that was not bound loses its reservation; with the last one the devices are given back.
"""

import asyncio
from collections.abc import Awaitable, Callable
from weakref import WeakValueDictionary

import structlog

from spinney.api.resource_claims import RESOURCE_CLAIM, ResourceClaim
from spinney.api.struct import JSON
from spinney.binding.placement import ClaimAllocation, Placement
from spinney.binding.prebind import PreBindRefused
from spinney.cluster.dra.book import MAX_CONSUMERS
from spinney.kube.client import Client
from spinney.kube.errors import Conflict, KubeError, NotFound
from spinney.kube.keys import Key
from spinney.kube.reconciling import add_finalizer

log = structlog.get_logger()

PROTECTION = "resource.kubernetes.io/delete-protection"
"""The finalizer that keeps an allocated claim until its devices are given back."""
_ATTEMPTS = 5


class DeviceClaims:
    """Allocates and reserves claims of placed pods; fills ``PreBind``. Mutable: its writers of a claim take turns."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._locks: WeakValueDictionary[Key, asyncio.Lock] = WeakValueDictionary()

    def needs(self, placement: Placement) -> bool:
        """Tell whether the pod uses claims."""
        return bool(placement.claims)

    async def prepare(self, placement: Placement) -> None:
        """Allocate the pod's claims as decided, and reserve them for it."""
        for allocation in placement.claims:
            await self._persistently(self._reserve, allocation, placement)

    async def release(self, placement: Placement) -> None:
        """End the pod's reservations; claims that nobody else uses give their devices back."""
        for allocation in placement.claims:
            try:
                await self._persistently(self._unreserve, allocation, placement)
            except NotFound:
                continue
            except KubeError as error:
                log.warning("claim not given back", claim=str(allocation.claim), error=str(error))

    def interrupt(self) -> None:
        """Nothing here has to be waited for."""

    async def _persistently(
        self,
        write: Callable[[ClaimAllocation, Placement], Awaitable[None]],
        allocation: ClaimAllocation,
        placement: Placement,
    ) -> None:
        """Write to a claim, again if another writer was faster."""
        lock = self._locks.get(allocation.claim)
        if lock is None:
            lock = self._locks[allocation.claim] = asyncio.Lock()
        async with lock:
            for attempt in range(_ATTEMPTS):
                try:
                    await write(allocation, placement)
                except Conflict:
                    if attempt == _ATTEMPTS - 1:
                        raise
                else:
                    return

    async def _reserve(self, allocation: ClaimAllocation, placement: Placement) -> None:
        claim = await self._read(allocation.claim)
        if claim.metadata.deleting:
            raise PreBindRefused(f"claim {allocation.claim.name} is being deleted")
        if claim.status.allocation is None:
            if await add_finalizer(self._client, RESOURCE_CLAIM, claim, PROTECTION):
                claim = await self._read(allocation.claim)
            status: JSON = {"allocation": allocated_status(allocation, placement.node)}
        else:
            status = {}
            held = {(each.driver, each.pool, each.device) for each in claim.status.allocation.devices.results}
            if held != {each.published for each in allocation.devices}:
                raise PreBindRefused(f"claim {allocation.claim.name} was given other devices meanwhile")
            if any(consumer.uid == placement.uid for consumer in claim.status.reserved_for):
                return
            if len(claim.status.reserved_for) >= MAX_CONSUMERS:
                raise PreBindRefused(f"claim {allocation.claim.name} is reserved for {MAX_CONSUMERS} pods already")
        consumer = {"resource": "pods", "name": placement.pod.name, "uid": placement.uid}
        await self._write_status(claim, {**status, "reservedFor": [*_consumers(claim), consumer]})

    async def _unreserve(self, allocation: ClaimAllocation, placement: Placement) -> None:
        claim = await self._read(allocation.claim)
        others = [each for each in _consumers(claim) if each["uid"] != placement.uid]
        if len(others) == len(claim.status.reserved_for):
            return
        await self._write_status(claim, {"reservedFor": others, **({} if others else {"allocation": None})})

    async def _read(self, claim: Key) -> ResourceClaim:
        return await self._client.get(RESOURCE_CLAIM, claim.name, claim.namespace, type=ResourceClaim)

    async def _write_status(self, claim: ResourceClaim, status: JSON) -> None:
        metadata = claim.metadata
        patch = {"metadata": {"uid": metadata.uid, "resourceVersion": metadata.resource_version}, "status": status}
        await self._client.patch(RESOURCE_CLAIM, metadata.name, patch, metadata.namespace, subresource="status")


def allocated_status(allocation: ClaimAllocation, node: str) -> JSON:
    """Return the allocation of a claim as its status has it: devices of one node, usable from there."""
    results = [
        {
            "request": each.request,
            "driver": each.driver,
            "pool": each.pool,
            "device": each.name,
            **({"adminAccess": True} if each.admin else {}),
        }
        for each in allocation.devices
    ]
    devices: JSON = {"results": results}
    if allocation.config:
        devices["config"] = list(allocation.config)
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    return {"devices": devices, "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [field]}]}}


def _consumers(claim: ResourceClaim) -> list[JSON]:
    return [
        {"resource": each.resource, "name": each.name, "uid": each.uid}
        | ({"apiGroup": each.api_group} if each.api_group else {})
        for each in claim.status.reserved_for
    ]
