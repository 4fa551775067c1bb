"""What the status of a Volcano PodGroup says when another scheduler than Volcano's places the group.

In Volcano's words, as far as they are true here. ``Unschedulable`` says why the group waits and ``Scheduled`` that it
has its minimum; where Volcano leaves the other as it was, here it becomes False. The phase follows from the pods:

* ``Running``: the minimum has nodes, or has ended well; ``Completed``: every pod has ended well;
* ``Unknown``: some pods run, and the others fit nowhere;
* ``Inqueue``: the group waits. ``Pending`` would say that it may not even have pods yet, and nobody here forbids that.
"""

from collections import Counter
from collections.abc import Collection
from datetime import datetime
from typing import Final

from msgspec import structs

from spinney.api.podgang import POD_GANG
from spinney.api.struct import JSON, to_json
from spinney.api.volcano import POD_GROUP, PodGroup, PodGroupCondition, PodGroupStatus
from spinney.cluster.statuses import PodStatus
from spinney.gangs.sources import podgang, volcano
from spinney.gangs.tree import GangKey
from spinney.reporting.controller import StatusKind
from spinney.reporting.verdicts import GangStanding, is_served
from spinney.runtime import Runtime

SCHEDULED: Final = "Scheduled"
UNSCHEDULABLE: Final = "Unschedulable"


class VolcanoGroupStatus(StatusKind[PodGroup]):
    """Phase, conditions and counts of the groups whose pods are placed here.

    Groups whose pods ask for another scheduler, Volcano's above all, are left to that one.
    """

    name = "volcano-groups"
    resource = POD_GROUP
    sources = frozenset({volcano.SOURCE, podgang.SOURCE})
    having_nodes = StatusKind.having_nodes | {PodStatus.SUCCEEDED}
    follows_pods = True

    def __init__(self, names: Collection[str]) -> None:
        self._names = names

    def gang_of(self, found: PodGroup) -> GangKey:
        """Return whose pods it has: of a group that an operator made for a PodGang, that gang's."""
        key, maker = GangKey.of(volcano.SOURCE, found.metadata), found.metadata.controller
        if maker is not None and maker.kind == POD_GANG.kind:
            return GangKey(podgang.SOURCE, key.namespace, maker.name)
        return key

    def patch(self, found: PodGroup, standing: GangStanding, runtime: Runtime) -> JSON | None:
        """Return the status, for the version at hand."""
        members = standing.members
        if standing.said is None or members is None or not members.pods or not is_served(members, self._names):
            return None
        phases = Counter(record.status for _, record in members.pods.values())
        before = found.status
        after = structs.replace(
            before,
            phase=_phase(before, standing, phases, len(members.pods)),
            conditions=_conditions(before, standing, runtime.uid(), runtime.clock.now()),
            running=phases[PodStatus.RUNNING],
            succeeded=phases[PodStatus.SUCCEEDED],
            failed=phases[PodStatus.FAILED],
        )
        if after == before:
            return None
        counts = {"running": after.running, "succeeded": after.succeeded, "failed": after.failed}  # zeros are said, too
        return {
            "metadata": {"resourceVersion": found.metadata.resource_version},
            "status": {**to_json(after), **counts},
        }


def _phase(before: PodGroupStatus, standing: GangStanding, phases: Counter[PodStatus], pods: int) -> str | None:
    if standing.said is not None and standing.said.scheduled:
        return "Completed" if phases[PodStatus.SUCCEEDED] == pods else "Running"
    if standing.refused is None:
        return before.phase
    return "Unknown" if phases[PodStatus.RUNNING] else "Inqueue"


def _conditions(
    before: PodGroupStatus, standing: GangStanding, transition: str, now: datetime
) -> tuple[PodGroupCondition, ...]:
    """Return the conditions; ``transition`` identifies what changes at once, as a session's uid does for Volcano."""
    if standing.said is not None and standing.said.scheduled:
        true, false, reason, message = SCHEDULED, UNSCHEDULABLE, SCHEDULED, standing.said.message
    elif standing.refused is not None:
        true, false, reason, message = UNSCHEDULABLE, SCHEDULED, standing.refused.reason, standing.refused.message
    else:
        return before.conditions
    said = PodGroupCondition(
        type=true, status="True", transition_id=transition, last_transition_time=now, reason=reason, message=message
    )
    conditions = [each for each in before.conditions if each.type not in {true, false}]
    for each in before.conditions:
        if each.type == true and each.status == "True":
            same = each.message == message
            said = each if same else structs.replace(said, last_transition_time=each.last_transition_time)
        elif each.type == false:
            over = structs.replace(said, type=false, status="False")
            conditions.append(each if each.status == "False" else over)
    return (*conditions, said)
