"""What a simulated cycle would do about pods that are pending, in sentences."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from spinney.api.core import Pod
from spinney.api.durations import format_duration
from spinney.api.labels import GROUPED
from spinney.cluster.pods import PodKey, PodRecord
from spinney.explain import Explanation
from spinney.explain.amounts import counted, listed
from spinney.gangs.tree import GangKey
from spinney.grouping.selecting import foreign_group
from spinney.sim.whatif.outcomes import CycleOutcome, Waiting

OURS: Final = "spinney-scheduler"
"""Pods of this scheduler are placed by the very code that is simulated."""
_SHOWN: Final = 8


class Forecast(NamedTuple):
    """What a cycle would do about pods: why it refuses some, sentences, and whether it places all of them."""

    explanations: tuple[Explanation, ...] = ()
    sentences: tuple[str, ...] = ()
    placeable: bool = False


def forecast(cycle: CycleOutcome, pending: Sequence[PodRecord], gang_of: Mapping[PodKey, GangKey]) -> Forecast:
    """Return what a simulated cycle does about pods that are pending."""
    sentences: list[str] = []
    placed = [record for record in pending if record.key in cycle.placed]
    promised = [record for record in pending if record.key in cycle.promised]
    if placed:
        nodes = sorted({cycle.placed[record.key] for record in placed})
        sentences.append(f"a scheduling cycle would place {_names(placed)} now, on {_some(nodes)}")
        silent = [each for each in placed if not each.pod.condition("PodScheduled")]
        sentences += [
            f"{name} has said nothing about it yet: does a scheduler of that name run?"
            for name in sorted({each.pod.spec.scheduler_name for each in silent})
        ]
        sentences += _not_grouped(silent)
    if promised:
        nodes = sorted({cycle.promised[record.key] for record in promised})
        sentences.append(f"{_names(promised)} would get room on {_some(nodes)} once pods there have terminated")
    victims = [each for each in cycle.evictions if each.beneficiary in {gang_of[r.key] for r in promised}]
    if victims:
        sentences.append(f"for that {_some([str(each.pod) for each in victims])} would be evicted")
        grace = max((cycle.graces[each.pod] for each in victims if each.pod in cycle.graces), default=None)
        if grace is not None:
            sentences.append(f"they are asked first, and have up to {format_duration(grace)} to checkpoint")
    found = {each.gang: each for each in cycle.waiting}
    refused = [record for record in pending if record.key not in cycle.placed and record.key not in cycle.promised]
    explanations: dict[GangKey, Explanation] = {}
    for record in refused:
        gang = gang_of[record.key]
        waiting = found.get(gang)
        if waiting is None:
            sentences.append(f"{record.key} was not reached in the simulated cycle")
        elif waiting.explanation is None:
            sentences.append(waiting.message)
        else:
            explanations[gang] = _marked(waiting, record)
    return Forecast(tuple(explanations.values()), tuple(dict.fromkeys(sentences)), placeable=not refused)


def _marked(waiting: Waiting, record: PodRecord) -> Explanation:
    """Return the explanation, marked as a simulation where another scheduler decides."""
    assert waiting.explanation is not None
    return msgspec.structs.replace(waiting.explanation, simulated=record.pod.spec.scheduler_name != OURS)


def _may_be_grouped(pod: Pod) -> bool:
    """Tell whether a pod is of a workload, and in no group yet."""
    return pod.metadata.controller is not None and GROUPED not in pod.metadata.labels and foreign_group(pod) is None


def _not_grouped(silent: Sequence[PodRecord]) -> list[str]:
    """Return where to look if pods of workloads wait for the grouper, which says in events why it refuses."""
    waiting = [each for each in silent if _may_be_grouped(each.pod)]
    if not waiting:
        return []
    return [
        "no grouper has put it into a gang, and a scheduler with waitForGrouper waits for that: "
        f"'kubectl describe pod {waiting[0].key.name}' shows what the grouper says (GroupingRefused)"
    ]


def _names(records: Sequence[PodRecord]) -> str:
    return "the pod" if len(records) == 1 else counted(len(records), "pod")


def _some(names: Sequence[Any]) -> str:
    more = len(names) - _SHOWN
    return listed(list(names)) if more <= 0 else f"{', '.join(names[:_SHOWN])} and {more} more"
