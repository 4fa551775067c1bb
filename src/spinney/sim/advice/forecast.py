"""What a simulated cycle would do about pods that are pending, in sentences.

Also where a running scheduler came to something else in its last cycle.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import msgspec

from spinney.api.core import Pod
from spinney.api.durations import format_duration
from spinney.api.labels import GROUPED
from spinney.cluster.pods import PodKey, PodRecord
from spinney.explain.amounts import counted, listed
from spinney.explain.reasons import Explanation
from spinney.gangs.tree import GangKey
from spinney.grouping.selecting import foreign_group
from spinney.scheduler.process.endpoint import RefusedGang
from spinney.sim.overview.history import GATED
from spinney.sim.snapshots.expanding import DEFAULT_SCHEDULER
from spinney.sim.whatif.loading import SESSION_NAMES
from spinney.sim.whatif.outcomes import CycleOutcome, Waiting

OURS: Final = "spinney-scheduler"
"""Pods of this scheduler are placed by the very code that is simulated."""
_WELL_KNOWN: Final = (*SESSION_NAMES, DEFAULT_SCHEDULER)
"""Schedulers whose names are misspelt."""
_NEARLY: Final = 0.85
"""How much alike two names are of which one may be meant for the other: a letter or two apart."""
_SHOWN: Final = 8


class Forecast(NamedTuple):
    """What a cycle would do about pods: why it refuses some, sentences, and whether it places all of them."""

    explanations: tuple[Explanation, ...] = ()
    sentences: tuple[str, ...] = ()
    placeable: bool = False
    ungrouped: frozenset[PodKey] = frozenset()
    """Pods that no scheduler looks at: the grouper refuses to put them into a gang."""


def forecast(
    cycle: CycleOutcome,
    pending: Sequence[PodRecord],
    gang_of: Mapping[PodKey, GangKey],
    *,
    made_up: Collection[PodKey] = (),
    refusals: Mapping[PodKey, str] = MappingProxyType({}),
    unbound: Collection[PodKey] = (),
) -> Forecast:
    """Return what a simulated cycle does about pods that are pending.

    Pods that are ``made_up`` do not exist yet. ``refusals`` is what the grouper says of pods that it cannot group.
    ``unbound`` are pods whose scheduler tried to bind them, and was refused.
    """
    sentences: list[str] = []
    ungrouped = frozenset(each.key for each in pending if each.key in refusals and _is_ungrouped(each.pod))
    placed = [record for record in pending if record.key in cycle.placed]
    promised = [record for record in pending if record.key in cycle.promised]
    if placed:
        nodes = sorted({cycle.placed[record.key] for record in placed})
        sentences.append(f"a scheduling cycle would place {_names(placed)} now, on {_some(nodes)}")
        kept = sorted(each.key for each in placed if each.key in ungrouped)
        sentences += [f"but it waits for the grouper, which says: {refusals[key]}" for key in kept]
        spoken_for = ungrouped.union(made_up, unbound)
        silent = [each for each in placed if each.key not in spoken_for and not _is_spoken_of(each.pod)]
        sentences += [
            f"{name} has said nothing about it yet: does a scheduler of that name run{_or_meant(name)}?"
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
        if record.key in ungrouped:  # what a cycle makes of the pod alone is not what becomes of it
            sentences.append(f"it waits for the grouper, which says: {refusals[record.key]}")
            continue
        gang = gang_of[record.key]
        waiting = found.get(gang)
        if waiting is None:
            sentences.append(f"{record.key} was not reached in the simulated cycle")
        elif waiting.explanation is None:
            sentences.append(waiting.message)
        else:
            simulated = record.pod.spec.scheduler_name != OURS  # another scheduler decides
            explanations[gang] = msgspec.structs.replace(waiting.explanation, simulated=simulated)
    return Forecast(tuple(explanations.values()), tuple(dict.fromkeys(sentences)), not refused, ungrouped)


def _or_meant(name: str) -> str:
    """Return the scheduler that was meant by a name that is nearly its own."""
    near = get_close_matches(name, _WELL_KNOWN, 1, _NEARLY) if name not in _WELL_KNOWN else []
    return f", or did you mean {near[0]}" if near else ""


def _is_spoken_of(pod: Pod) -> bool:
    """Tell whether a scheduler has said anything about a pod; while a gate held it, the API server did."""
    condition = pod.condition("PodScheduled")
    return condition is not None and condition.reason != GATED


def _is_ungrouped(pod: Pod) -> bool:
    """Tell whether a pod is in no group yet."""
    return GROUPED not in pod.metadata.labels and foreign_group(pod) is None


def _not_grouped(silent: Sequence[PodRecord]) -> list[str]:
    """Return where to look if pods of workloads wait for the grouper, which says in events why it refuses."""
    waiting = [each for each in silent if each.pod.metadata.controller is not None and _is_ungrouped(each.pod)]
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


_BECAUSE: Final = (
    "the cluster has changed since that cycle, or the scheduler's configuration is another; --config names its file"
)


def refused_gangs(body: bytes) -> dict[GangKey, RefusedGang]:
    """Return what ``/explanations`` of a scheduler lists, by gang; raises :class:`msgspec.DecodeError`."""
    listed = msgspec.json.decode(body, type=tuple[RefusedGang, ...])
    return {GangKey(each.source, each.namespace, each.name): each for each in listed}


def disagreements(
    gangs: Iterable[GangKey], refused: Mapping[GangKey, RefusedGang], waiting: Iterable[Waiting]
) -> Iterator[str]:
    """Yield a sentence for each of ``gangs`` about which the running scheduler and the simulation differ.

    ``refused`` is what the scheduler's last cycle refused, ``waiting`` what the simulated cycle did not place.
    """
    simulated = {each.gang: each for each in waiting}
    for gang in sorted(gangs):
        ran, would = refused.get(gang), simulated.get(gang)
        if ran is not None and would is None:
            yield f"the running scheduler's last cycle refused {gang}, and this simulation places it: {_BECAUSE}"
        elif ran is None and would is not None:
            yield f"the running scheduler's last cycle did not refuse {gang}, this simulation does: {_BECAUSE}"
        elif ran is not None and would is not None and not _same_reason(ran, would):
            yield f"the running scheduler gives another reason: {ran.message}; {_BECAUSE}"


def _same_reason(ran: RefusedGang, would: Waiting) -> bool:
    """Tell whether both give reasons of the same kinds; amounts differ because the cluster has gone on."""
    if ran.explanation is None or would.explanation is None:
        return ran.message == would.message
    return _kinds(ran.explanation) == _kinds(would.explanation)


def _kinds(explanation: Explanation) -> tuple[object, ...]:
    """Return what kinds of reasons an explanation has, without amounts and counts."""
    queue = explanation.queue
    return (
        queue and (queue.queue, queue.rule, queue.resource),
        explanation.others,
        explanation.required_level,
        frozenset(
            (each.filter, reason.reason) for pod in explanation.pods for each in pod.filters for reason in each.reasons
        ),
        bool(explanation.plugin_errors),
    )
