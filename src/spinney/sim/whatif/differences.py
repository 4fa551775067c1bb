"""What two configurations make of the same cluster: the gangs that fare differently."""

from dataclasses import dataclass

from spinney.gangs.tree import GangKey
from spinney.sim.whatif.outcomes import Outcome


@dataclass(frozen=True, kw_only=True)
class Difference:
    """How one gang fares differently."""

    gang: GangKey
    before: str
    after: str


def differences(before: Outcome, after: Outcome) -> list[Difference]:
    """Return the gangs that fare differently in ``after``, in order of name."""
    left, right = _fates(before), _fates(after)
    return [
        Difference(gang=gang, before=left.get(gang, "not there"), after=right.get(gang, "not there"))
        for gang in sorted({*left, *right})
        if left.get(gang) != right.get(gang)
    ]


def _fates(outcome: Outcome) -> dict[GangKey, str]:
    nodes: dict[GangKey, list[str]] = {}
    for pod, node in outcome.placed.items():
        nodes.setdefault(outcome.gangs[pod], []).append(node)
    fates = {gang: f"{len(found)} placed on {', '.join(sorted(set(found)))}" for gang, found in nodes.items()}
    for each in outcome.waiting:
        waits = f"{len(each.pods)} pending" if each.pods else "pending"
        fates[each.gang] = f"{fates[each.gang]}, {waits}" if each.gang in fates else waits
    for eviction in outcome.evictions:
        fates[eviction.gang] = f"{fates.get(eviction.gang, '')} (evicted from {eviction.node})".lstrip()
    return fates
