"""Whether room is being made already: victims are on their way out of a node that was promised."""

from spinney.cluster.pods import PodRecord
from spinney.cluster.statuses import PodStatus
from spinney.coscheduling.feasibility.victims import priority_of
from spinney.coscheduling.framework.handle import Services
from spinney.coscheduling.groups.group import Group
from spinney.kube.keys import Key


def awaits_victims(services: Services, record: PodRecord) -> bool:
    """Tell whether a pod of lower priority is on its way out of the node nominated for ``record``."""
    node = services.nominations.node_of(Key(*record.key))
    row = services.cluster.table.find(node) if node else None
    if row is None:
        return False
    return any(
        (each.status is PodStatus.RELEASING or each.key in services.leaving) and priority_of(each) < priority_of(record)
        for each in services.cluster.on_node.of_row(row).values()
    )


def preempting(services: Services, group: Group) -> bool:
    """Tell whether some member of a group waits for victims to go."""
    if not len(services.nominations):
        return False
    return any(awaits_victims(services, record) for record in group.members.values())
