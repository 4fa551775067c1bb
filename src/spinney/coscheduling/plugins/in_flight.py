"""Whether room is being made already: victims are on their way out of a node that was promised, or were asked to go."""

from collections.abc import Iterable, Iterator
from datetime import datetime

from spinney.api.time import timestamp
from spinney.cluster.pods import PodRecord
from spinney.cluster.statuses import PodStatus
from spinney.coscheduling.framework.handle import Services
from spinney.coscheduling.groups.group import Group


def awaits_victims(services: Services, record: PodRecord) -> bool:
    """Tell whether a pod of lower priority is on its way out of the node nominated for ``record``."""
    return any(
        each.status is PodStatus.RELEASING or each.key in services.leaving or services.requests.of(each.key) is not None
        for each in _below(services, record)
    )


def asked_until(services: Services, records: Iterable[PodRecord]) -> datetime | None:
    """Return until when pods on the nodes nominated for ``records`` may checkpoint; ``None`` if none was asked."""
    if not services.requests or not len(services.nominations):
        return None
    asked = (services.requests.of(each.key) for record in records for each in _below(services, record))
    return max((found.by for found in asked if found is not None), default=None)


def why_kept(services: Services, records: Iterable[PodRecord], otherwise: str) -> str:
    """Return what ``records`` say that wait for victims: until when these may checkpoint, if they were asked."""
    moment = asked_until(services, records)
    if moment is None:
        return otherwise
    return f"its place is kept: pods were asked to checkpoint and go, until {timestamp(moment)} at the latest"


def _below(services: Services, record: PodRecord) -> Iterator[PodRecord]:
    """Return the pods of lower priority on the node nominated for ``record``."""
    node = services.nominations.node_of(record.key)
    row = services.cluster.table.find(node) if node else None
    if row is None:
        return iter(())
    return (each for each in services.cluster.on_node.of_row(row).values() if each.pod.priority < record.pod.priority)


def preempting(services: Services, group: Group) -> bool:
    """Tell whether some member of a group waits for victims to go."""
    if not len(services.nominations):
        return False
    return any(awaits_victims(services, record) for record in group.members)
