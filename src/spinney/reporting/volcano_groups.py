"""What the status of a Volcano PodGroup says when another scheduler than Volcano's places the group.

In Volcano's words, as far as they are true here. ``Unschedulable`` says why the group waits and ``Scheduled`` that it
has its minimum; where Volcano leaves the other as it was, here it becomes False. The phase follows from the pods:

* ``Running``: the minimum has nodes, or has ended well; ``Completed``: every pod has ended well;
* ``Unknown``: some pods run, and the others fit nowhere;
* ``Inqueue``: the group waits. ``Pending`` would say that it may not even have pods yet, and nobody here forbids that.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from msgspec import structs

from spinney.api.struct import JSON, to_json
from spinney.api.volcano import PodGroup, PodGroupCondition, PodGroupStatus

SCHEDULED: Final = "Scheduled"
UNSCHEDULABLE: Final = "Unschedulable"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupStanding:
    """How a group stands: whether its minimum has nodes, why not if it was refused, and its pods by phase."""

    scheduled: bool
    refusal: str
    """Why the last cycle could not place it, if so."""
    reason: str
    """The word for that."""
    message: str
    """How many of its pods are placed, in words."""
    pods: int
    running: int
    succeeded: int
    failed: int


def status_patch(group: PodGroup, standing: GroupStanding, *, transition: str, now: datetime) -> JSON:
    """Return the patch of a group's status that says how it stands, for the version at hand; empty if it does so.

    ``transition`` identifies what changes at once, as the uid of a session does for Volcano.
    """
    before = group.status
    after = structs.replace(
        before,
        phase=_phase(before, standing),
        conditions=_conditions(before, standing, transition, now),
        running=standing.running,
        succeeded=standing.succeeded,
        failed=standing.failed,
    )
    if after == before:
        return {}
    counts = {"running": after.running, "succeeded": after.succeeded, "failed": after.failed}  # zeros are said, too
    return {
        "metadata": {"resourceVersion": group.metadata.resource_version},
        "status": {**to_json(after), **counts},
    }


def _phase(before: PodGroupStatus, standing: GroupStanding) -> str | None:
    if standing.scheduled:
        return "Completed" if standing.succeeded == standing.pods else "Running"
    if not standing.refusal:
        return before.phase
    return "Unknown" if standing.running else "Inqueue"


def _conditions(
    before: PodGroupStatus, standing: GroupStanding, transition: str, now: datetime
) -> tuple[PodGroupCondition, ...]:
    if standing.scheduled:
        true, false, reason, message = SCHEDULED, UNSCHEDULABLE, SCHEDULED, standing.message
    elif standing.refusal:
        true, false, reason, message = UNSCHEDULABLE, SCHEDULED, standing.reason, standing.refusal
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
