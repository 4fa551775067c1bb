"""Device claims in a simulation: pods that go give up their devices, and claims can be shown as they have become."""

from collections.abc import Mapping

import msgspec

from spinney.api.resource_claims import (
    AllocatedDevice,
    Allocation,
    ClaimConsumer,
    DeviceAllocation,
    ResourceClaim,
)
from spinney.cluster.dra.book import ClaimBook, claims_of
from spinney.cluster.pods import PodRecord
from spinney.cluster.state import PodChange
from spinney.cluster.statuses import ALIVE
from spinney.kube.keys import key_of


def give_up_devices(book: ClaimBook, change: PodChange) -> None:
    """End the reservations of a pod that is gone, was made anew, or has ended."""
    old, new = change
    if old is None or not old.pod.spec.resource_claims:
        return
    if new is not None and new.uid == old.uid and new.status in ALIVE:
        return
    for key in claims_of(old.pod):
        claim = book.claims.get(key)
        if claim is not None and old.uid in claim.consumers:
            book.release(key, old.uid)


def as_it_is(found: ResourceClaim, book: ClaimBook, pods: Mapping[str, PodRecord]) -> ResourceClaim:
    """Return a claim with the devices and users it has now; ``pods`` are by uid."""
    state = book.claims.get(key_of(found))
    if state is None:
        return found
    before = {each.uid: each for each in found.status.reserved_for}
    users = [
        before.get(uid) or ClaimConsumer(resource="pods", name=pods[uid].name, uid=uid)
        for uid in sorted(state.consumers)
        if uid in before or uid in pods
    ]
    allocation = found.status.allocation
    if not state.devices:
        allocation = None
    elif allocation is None:
        results = tuple(
            AllocatedDevice(
                request=each.request, driver=each.driver, pool=each.pool, device=each.name, admin_access=each.admin
            )
            for each in state.devices
        )
        allocation = Allocation(devices=DeviceAllocation(results=results))
    status = msgspec.structs.replace(found.status, allocation=allocation, reserved_for=tuple(users))
    return msgspec.structs.replace(found, status=status)
