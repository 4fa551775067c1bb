"""DefaultPreemption: a pod that fits nowhere may take the place of pods of lower priority.

For pods that belong to no group; members of groups are the business of GroupPreemption. The victims are taken away, the
pod is nominated for their node, and it is tried again when they are gone.
"""

from typing import Final

from spinney.api.core import Pod
from spinney.cluster.filters import FilterResult
from spinney.coscheduling.feasibility.trial import TrialState
from spinney.coscheduling.feasibility.victims import VictimSearch
from spinney.coscheduling.framework import CycleState, PostFilter, PostFilterResult, StateKey, Status
from spinney.coscheduling.plugins.in_flight import awaits_victims, why_kept
from spinney.gangs.declarations import NEVER
from spinney.kube.keys import key_of

FILTERED: Final[StateKey[FilterResult]] = StateKey("what the filters refused")
"""Left by the scheduling cycle for post-filters."""


class DefaultPreemption(PostFilter):
    """Makes room for a single pod."""

    name = "DefaultPreemption"

    def post_filter(self, state: CycleState, pod: Pod) -> PostFilterResult:
        """Choose a node and its victims, and ask for them to go."""
        services = self._services
        key = key_of(pod)
        found = state.read(FILTERED)
        record = services.cluster.pod(key)
        if found is None or record is None or services.groups.of(key) is not None:
            return PostFilterResult(Status.unschedulable())
        if pod.spec.preemption_policy == NEVER:
            return _none("not eligible due to preemptionPolicy=Never.")
        if awaits_victims(services, record):
            why = "not eligible due to a terminating pod on the nominated node."
            return _none(why_kept(services, [record], otherwise=why), keep=True)
        trial = TrialState(services.cluster, services.claims, services.nominations.binding_on(record))
        search = VictimSearch(self._handle.ranking, trial, services)
        with trial.asked(state):
            sacrifice = search.cheapest(state, record, record.pod.priority, found)
        if sacrifice is None:
            return _none(_counted(found, len(services.cluster.table)))
        services.preempt(sacrifice.victims, record, sacrifice.node)
        return PostFilterResult(Status.unschedulable(), nominated_node=sacrifice.node)


def _none(why: str, *, keep: bool = False) -> PostFilterResult:
    return PostFilterResult(Status.unschedulable(f"preemption: {why}"), keep=keep)


def _counted(found: FilterResult, total: int) -> str:
    """Return kube-scheduler's sentence on why nobody can be preempted."""
    hopeless = int(found.unresolvable().sum()) if found.pre_filter is None else total
    counts = {
        "No preemption victims found for incoming pod": total - hopeless,
        "Preemption is not helpful for scheduling": hopeless,
    }
    reasons = sorted(f"{count} {reason}" for reason, count in counts.items() if count)
    return f"0/{total} nodes are available: {', '.join(reasons)}."
