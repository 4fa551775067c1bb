"""How many suspended workloads wait in each queue: they have no pods, so nothing else shows them."""

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from spinney.explain.amounts import counted
from spinney.kube.client import Client
from spinney.kube.discovery import find_kind
from spinney.kube.errors import Forbidden, NotFound
from spinney.queueing.suspended import GROUPS, SELECTOR, SuspendedWorkload
from spinney.sim.snapshots.snapshot import Unseen, forbidden


class SuspendedCounts(NamedTuple):
    """The workloads that wait suspended, by queue, and which kinds may not be listed."""

    by_queue: Mapping[str, int] = {}
    unseen: tuple[Unseen, ...] = ()


async def suspended_counts(client: Client) -> SuspendedCounts:
    """Return how many workloads of each queue wait suspended, in all namespaces."""
    counts: Counter[str] = Counter()
    unseen: list[Unseen] = []
    for kind, group in GROUPS.items():
        resource = await find_kind(client, group, kind)
        if resource is None:
            continue
        try:
            async for page in client.pages(resource, type=SuspendedWorkload, label_selector=SELECTOR):
                counts.update(each.queue for each in page.items if _waits(each))
        except Forbidden as refusal:
            unseen.append(forbidden(resource, refusal))
        except NotFound:  # its CRD was removed since the kind was found
            continue
    return SuspendedCounts(counts, tuple(unseen))


def waiting_suspended(number: int) -> str:
    """Return the sentence about so many workloads of a queue."""
    return f"{counted(number, 'suspended workload')} of it {'waits' if number == 1 else 'wait'}, without pods"


def _waits(workload: SuspendedWorkload) -> bool:
    try:
        return workload.waits
    except msgspec.ValidationError:  # a CRD may have no schema; the scheduler leaves it out as well
        return False
