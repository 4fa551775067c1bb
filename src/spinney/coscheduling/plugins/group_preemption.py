"""GroupPreemption: a group may take the place of pods of lower priority, for its whole quorum or not at all.

Every member that is still needed is placed on a trial of the cluster, on free room where there is some and else by the
cheapest sacrifice of a node. Only if all of them find a place are the victims taken, and each member is nominated for
its node. A group that would still not fit costs nobody anything. A group bound to one topology domain is tried in one
domain after the other.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from spinney.api.core import Pod
from spinney.cluster.pods import PodKey, PodRecord
from spinney.cluster.table import Mask
from spinney.coscheduling.framework.handle import Handle
from spinney.coscheduling.framework.points import CycleState, PostFilter, PostFilterResult
from spinney.coscheduling.framework.status import Status
from spinney.coscheduling.group import Group
from spinney.coscheduling.plugins.arguments import NoArguments, read
from spinney.coscheduling.plugins.default_preemption import NEVER
from spinney.coscheduling.plugins.group_topology import domains_open_to
from spinney.coscheduling.plugins.in_flight import preempting
from spinney.coscheduling.trial import Trial
from spinney.coscheduling.victims import VictimSearch, priority_of
from spinney.kube.keys import key_of


@dataclass
class _Plan:
    """Where each member goes and who has to leave. Mutable while it is made."""

    places: list[tuple[PodRecord, str]] = field(default_factory=list)
    victims: dict[str, list[PodRecord]] = field(default_factory=dict)


class GroupPreemption(PostFilter):
    """Makes room for the quorum of a group."""

    name = "GroupPreemption"

    def __init__(self, handle: Handle, arguments: Mapping[str, Any]) -> None:
        read(NoArguments, arguments)
        self._handle = handle
        self._services = handle.services

    def post_filter(self, state: CycleState, pod: Pod) -> PostFilterResult:
        """Find victims for everything the group lacks, and take all of them or none."""
        key = key_of(pod)
        group = self._services.groups.of(key)
        if group is None or group.satisfied or preempting(self._services, group):
            return PostFilterResult(Status.unschedulable())
        record = self._services.cluster.pod(PodKey(*key))
        if record is None or group.others_than(record):
            return PostFilterResult(Status.unschedulable())
        members = group.lacking()
        if any(record.pod.spec.preemption_policy == NEVER for record in members):
            return PostFilterResult(Status.unschedulable("preemption: not eligible due to preemptionPolicy=Never."))
        if not self._somebody_is_below(group.priority):
            return PostFilterResult(Status.unschedulable())
        plan = self._plan_in_some_domain(state, group, members)
        if plan is None or not plan.victims:
            return PostFilterResult(Status.unschedulable())
        nominated = ""
        for record, node in plan.places:
            if record.key == PodKey(*key):
                nominated = node
            else:
                self._services.nominate(record, node)
        for node, victims in plan.victims.items():
            self._services.preempt(victims, members[0], node)
        return PostFilterResult(Status.unschedulable(), nominated_node=nominated, keep=not nominated)

    def _somebody_is_below(self, priority: int) -> bool:
        on_node = self._services.cluster.on_node
        return any(priority_of(each) < priority for row in on_node.rows() for each in on_node.of_row(row).values())

    def _plan_in_some_domain(self, state: CycleState, group: Group, members: list[PodRecord]) -> _Plan | None:
        domains = domains_open_to(group, self._services.cluster.table)
        if domains is None:
            return self._plan(state, members, None)
        before = dict(group.domains)
        for value, within in domains.items():
            group.domains[group.scopes[0].name] = value
            plan = self._plan(state, members, within)
            if plan is not None:
                return plan
        group.domains = before
        return None

    def _plan(self, state: CycleState, members: list[PodRecord], within: Mask | None) -> _Plan | None:
        judge, services = self._handle.judge, self._services
        own = {record.key for record in members}
        others = [each for each in services.nominations.binding_on(members[0]) if each.record.key not in own]
        trial = Trial(services.cluster, services.claims, others)
        search = VictimSearch(judge, trial, services.budgets, services.groups)
        plan = _Plan()
        with trial.asked(state):
            for record in members:
                found = judge.feasible(state, record, trial.view, within)
                if found.feasible:
                    row = judge.preferred(record, trial.view, found.mask)
                else:
                    sacrifice = search.cheapest(state, record, priority_of(record), found, within)
                    if sacrifice is None:
                        return None
                    row = sacrifice.row
                    for victim in sacrifice.victims:
                        trial.evict(victim)
                        plan.victims.setdefault(sacrifice.node, []).append(victim)
                trial.place(record, row)
                plan.places.append((record, trial.view.table.names[row]))
        return plan
