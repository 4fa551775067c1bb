"""How many suspended workloads wait in each queue: they have no pods, so nothing else shows them."""

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from spinney.api.conditions import is_true
from spinney.api.kueue import ADMITTED, FINISHED, WORKLOAD, Workload
from spinney.explain.amounts import counted
from spinney.kube.client import Client
from spinney.kube.discovery import find_kind
from spinney.kube.errors import Forbidden, InternalError, NotFound
from spinney.queueing.suspended import GROUPS, SELECTOR, SuspendedWorkload
from spinney.sim.snapshots.snapshot import ClusterSnapshot, Unseen, failed, forbidden
from spinney.sim.whatif.loading import KueueQueues


class SuspendedCounts(NamedTuple):
    """The workloads that wait suspended, by queue, and which kinds may not or cannot be listed."""

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
        except InternalError as failure:
            unseen.append(failed(resource, failure))
        except NotFound:  # its CRD was removed since the kind was found
            continue
    return SuspendedCounts(counts, tuple(unseen))


def with_kueues(by_queue: Mapping[str, int], snapshot: ClusterSnapshot) -> Mapping[str, int]:
    """Return these numbers with those of the workloads that Kueue has not admitted, where its queues are shown."""
    kueues = KueueQueues.of(snapshot)
    waiting = (each for each in snapshot.of(WORKLOAD, Workload) if _waits_for_kueue(each))
    queues = (kueues.led_to(each.metadata.namespace or "", each.spec.queue_name) for each in waiting)
    return Counter(by_queue) + Counter(queue for queue in queues if queue)


def _waits_for_kueue(workload: Workload) -> bool:
    """Tell whether Kueue still has to admit a workload that has no pods until then."""
    conditions = workload.status.conditions
    has_pods = any(each.kind == "Pod" for each in workload.metadata.owner_references)
    return workload.spec.active and not has_pods and not any(is_true(conditions, each) for each in (ADMITTED, FINISHED))


def waiting_suspended(number: int) -> str:
    """Return the sentence about so many workloads of a queue."""
    return f"{counted(number, 'suspended workload')} of it {'waits' if number == 1 else 'wait'}, without pods"


def _waits(workload: SuspendedWorkload) -> bool:
    try:
        return workload.waits
    except msgspec.ValidationError:  # a CRD may have no schema; the scheduler leaves it out as well
        return False
