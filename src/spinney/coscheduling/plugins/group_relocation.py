"""GroupRelocation: a broken group that cannot be repaired where it lies gives its places up and is moved whole.

A group that lost members, because a node failed or was drained, gets them back in the domains in which the rest of it
lies. Where these have no room the group would stay broken for as long as the rest runs, which without its quorum does
nothing. So the rest is evicted, within its disruption budgets, if all of the group fits somewhere else on free room,
and if a controller makes its pods anew. It comes before GroupPreemption: a broken group that restarts loses nothing
more, and those that would make room for it do.
"""

from spinney.api.core import Pod
from spinney.cluster.pods import PodRecord
from spinney.cluster.statuses import PLACED
from spinney.coscheduling.feasibility.quorum import MemberStates, QuorumSearch
from spinney.coscheduling.framework import CycleState, PostFilter, PostFilterResult, Status
from spinney.coscheduling.groups.domains import confined
from spinney.coscheduling.groups.group import Group
from spinney.coscheduling.plugins.in_flight import preempting
from spinney.kube.keys import key_of


class GroupRelocation(PostFilter):
    """Moves broken groups whole."""

    name = "GroupRelocation"

    def post_filter(self, state: CycleState, pod: Pod) -> PostFilterResult:
        """Have what is left of a broken group go, if all of it has room elsewhere."""
        key = key_of(pod)
        group, record = self._services.groups.of(key), self._services.cluster.pod(key)
        if group is None or record is None or not self._is_stranded(group, record):
            return PostFilterResult(Status.unschedulable())
        ranking = self._handle.ranking
        if group.others_than(record, ranking.kind):
            return PostFilterResult(Status.unschedulable())
        rest = [each for each in group.members if each.status in PLACED]
        states = MemberStates(ranking, record, state)
        search = QuorumSearch(self._services, ranking, states, group, giving_up=rest, victims=False)
        if search.plan() is None:
            return PostFilterResult(Status.unschedulable())
        refusal = self._services.budgets.refusal(rest)
        if refusal is not None:
            return PostFilterResult(Status.unschedulable(f"relocation: {refusal}."))
        lost = len(group.pending())
        why = f"pod group {group.name} is moved whole: where it runs there is no room for {lost} pods that it lacks"
        self._services.move(rest, record, why)
        return PostFilterResult(Status.unschedulable(f"relocation: {why}."), keep=True)

    def _is_stranded(self, group: Group, record: PodRecord) -> bool:
        """Tell whether a group that must share domains has too few members, none on its way, and no place soon."""
        if not (group.scopes and group.interrupted) or group.assigned > group.bound:
            return False
        rest = [each for each in group.members if each.status in PLACED]
        if any(each.pod.metadata.controller is None or each.key in self._services.leaving for each in rest):
            return False
        return not preempting(self._services, group) and not self._is_about_to_have_room(group, record)

    def _is_about_to_have_room(self, group: Group, record: PodRecord) -> bool:
        """Tell whether pods are terminating, on nodes that answer, in the domains in which the group lies."""
        table = self._services.cluster.table
        there = confined(table, group, group.scopes_of(record.key)) & table.ready
        rows = (table.find(each.node) for each in self._services.cluster.releasing())
        return any(row is not None and there[row] for row in rows)
