"""Giving back what a predecessor had prepared for pods that it did not come to bind.

A scheduler that dies between allocating a pod's device claims and binding the pod leaves claims that hold devices for a
pod on no node. They would bind the pod to that node for ever, also when its gang no longer fits there. So at start,
before the first cycle, such reservations are ended; the gang is placed anew, there or elsewhere. Volumes need no such
care: a claim that was told a node is being provisioned there.
"""

import asyncio

import structlog

from spinney.binding.device_claims import DeviceClaims
from spinney.binding.placement import ClaimAllocation, Placement
from spinney.cluster.dra.book import claims_of
from spinney.cluster.statuses import PodStatus
from spinney.scheduler.intake.inventory import Inventory

log = structlog.get_logger()


def abandoned(inventory: Inventory) -> list[Placement]:
    """Return the pods of ours that are on no node though claims are reserved for them, each with those claims."""
    if not inventory.claims.claims:
        return []
    found: list[Placement] = []
    for record in inventory.cluster.pods():
        served = record.pod.spec.scheduler_name in inventory.scheduler_names
        if not served or record.status is not PodStatus.PENDING or not record.pod.spec.resource_claims:
            continue
        held = (inventory.claims.claims.get(key) for key in claims_of(record.pod))
        claims = tuple(
            ClaimAllocation(claim.key, ()) for claim in held if claim is not None and record.uid in claim.consumers
        )
        if claims:
            found.append(Placement(record.key, record.uid, "", claims=claims))
    return found


async def give_back_claims(inventory: Inventory, claims: DeviceClaims) -> None:
    """End the reservations of pods that were never bound; what cannot be written now is only logged."""
    pods = abandoned(inventory)
    if pods:
        log.info("claims of pods that were not bound are given back", pods=len(pods))
        await asyncio.gather(*map(claims.release, pods))
