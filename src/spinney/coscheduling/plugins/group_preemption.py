"""GroupPreemption: a group may take the place of pods of lower priority, for its whole quorum or not at all.

Everything that is still needed is placed on copies of the cluster (:mod:`spinney.coscheduling.feasibility.quorum`),
with the topology keys of every level kept. Only if all of it finds a place are the victims taken, and each member is
nominated for its node. A group that would still not fit costs nobody anything, and says so.

Members are tried one at a time, so a group that could lie in several domains, or needs only some of its parts, may have
gone the wrong way. Before pods are taken away for such a group it is therefore looked for a place for all of it on
free room, whatever its waiting members hold now; if there is one, they are sent there.
"""

from collections.abc import Mapping
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

from spinney.api.core import Pod
from spinney.cluster.pods import PodRecord
from spinney.coscheduling.feasibility.quorum import GroupPlan, MemberStates, QuorumSearch, waiting_members
from spinney.coscheduling.framework import SUCCESS, CycleState, Handle, PostFilter, PostFilterResult, StateKey, Status
from spinney.coscheduling.groups.group import Group
from spinney.coscheduling.plugins.in_flight import preempting
from spinney.gangs.declarations import NEVER
from spinney.kube.keys import key_of

NO_VICTIMS: Final[StateKey[str]] = StateKey("why nobody was taken away for the group")
"""Left for the reason that is given when the group is rejected."""


class GroupPreemption(PostFilter):
    """Makes room for the quorum of a group."""

    name = "GroupPreemption"

    def __init__(self, handle: Handle, arguments: Mapping[str, Any]) -> None:
        super().__init__(handle, arguments)
        self._below: tuple[tuple[int, int], bool] | None = None
        """Whether there are pods of lower priority, for the moment and the priority it was last asked for."""

    def post_filter(self, state: CycleState, pod: Pod) -> PostFilterResult:
        """Find a place for everything the group lacks, and take all victims that needs, or none."""
        key = key_of(pod)
        group = self._services.groups.of(key)
        if group is None or group.satisfied or preempting(self._services, group):
            return PostFilterResult(Status.unschedulable())
        record = self._services.cluster.pod(key)
        if record is None or group.others_than(record, self._handle.ranking.kind):
            return PostFilterResult(Status.unschedulable())
        if group.has_choices and not group.rearranged:
            plan, _ = self._plan(state, record, group, victims=False)
            if plan is not None:
                group.rearranged = True
                self._carry_out(plan, group)
                there = any(member.key == record.key for member, _ in plan.places)
                return PostFilterResult(SUCCESS if there else Status.unschedulable(), keep=True)
        never = group.gang is not None and not group.gang.preempts
        if never or any(record.pod.spec.preemption_policy == NEVER for record in group.lacking()):
            return PostFilterResult(Status.unschedulable("preemption: not eligible due to preemptionPolicy=Never."))
        if not self._somebody_is_below(group.priority):
            return PostFilterResult(Status.unschedulable())
        plan, exhausted = self._plan(state, record, group, victims=True)
        if plan is None or not plan.victims:
            why = _why_not(group, exhausted=exhausted)
            state.write(NO_VICTIMS, why)
            return PostFilterResult(Status.unschedulable(why))
        self._carry_out(plan, group)
        return PostFilterResult(Status.unschedulable(), keep=True)

    def _somebody_is_below(self, priority: int) -> bool:
        cluster = self._services.cluster
        asked = cluster.table.usage.position, priority
        if self._below is None or self._below[0] != asked:
            records = (each for row in cluster.on_node.rows() for each in cluster.on_node.of_row(row).values())
            self._below = asked, any(each.pod.priority < priority for each in records)
        return self._below[1]

    def _plan(
        self, state: CycleState, record: PodRecord, group: Group, *, victims: bool
    ) -> tuple[GroupPlan | None, bool]:
        """Return a plan, and whether the search was given up; members that wait keep their nodes if they can."""
        exhausted = False
        holders = waiting_members(self._services, group) if group.has_choices else []
        for giving_up in ([], holders) if holders else ([],):
            states = MemberStates(self._handle.ranking, record, state)
            search = QuorumSearch(
                self._services, self._handle.ranking, states, group, giving_up=giving_up, victims=victims
            )
            plan = search.plan()
            if plan is not None:
                return plan, False
            exhausted |= search.exhausted
        return None, exhausted

    def _carry_out(self, plan: GroupPlan, group: Group) -> None:
        """Have victims go, and members be tried on the nodes that are meant for them."""
        if plan.giving_up:
            reason = f"pod group {group.name} is tried on other nodes"
            self._services.waiting.send_back(group, plan.giving_up, self.name, reason)
        group.domains = {**({} if plan.giving_up else group.domains), **plan.domains}
        group.held_back |= bool(plan.giving_up)
        group.chosen = frozenset(record.key for record, _ in plan.places) if group.has_choices else frozenset()
        for record, node in plan.places:
            now = self._services.cluster.pod(record.key)
            if now is not None:
                self._services.nominate(now, node)
        beneficiary = plan.places[0][0]
        for node, leaving in groupby(sorted(plan.victims, key=itemgetter(0)), key=itemgetter(0)):
            self._services.preempt([victim for _, victim in leaving], beneficiary, node)
        self._services.activate(record.key for record, _ in plan.places)


def _why_not(group: Group, *, exhausted: bool) -> str:
    domains = " in its topology domains" if group.scopes else ""
    found = "were found that" if exhausted else "would"
    return f"preemption: no victims {found} make room for all that pod group {group.name} lacks{domains}."
