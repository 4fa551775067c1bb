"""Where all that a group lacks would go: which of its parts, in which domains, and in whose place.

The search works on copies of the cluster. For each set of members that would satisfy the group, the fewest first, every
part that is bound to a topology key gets a domain inside the domain of what it is part of, and its pods are placed
there at once: on free room, else by the cheapest sacrifice of a node. Where that fails the next domain is tried, then
the next one for the part before. The narrowest parts are placed first and what may go anywhere comes last, so that
nothing takes the room of those that have less to choose from.

For pods of one size nothing is missed: if some set of victims lets the group fit, one is found. For pods of several
sizes each is placed greedily. A search that has placed very many pods in vain is given up, and says so.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import msgspec
import numpy as np

from spinney.cluster.pods import PodRecord
from spinney.cluster.statuses import ACTIVE_ALLOCATED, PodStatus
from spinney.cluster.table import Mask, Matrix
from spinney.coscheduling.feasibility.ranking import NodeRanking
from spinney.coscheduling.feasibility.room import demands, fitting
from spinney.coscheduling.feasibility.trial import TrialState
from spinney.coscheduling.feasibility.victims import VictimSearch
from spinney.coscheduling.framework import CycleState, Services
from spinney.coscheduling.groups.domains import confined, domain, values_in, values_on
from spinney.coscheduling.groups.group import Group
from spinney.coscheduling.groups.needs import DomainScope
from spinney.kube.keys import Key

_IN_VAIN: Final = 1000
"""How many placements beyond those of the group itself are tried."""


@dataclass(frozen=True, slots=True)
class GroupPlan:
    """Where each member goes, who has to leave which node, the domain of each part, and who leaves Permit."""

    places: tuple[tuple[PodRecord, str], ...] = ()
    victims: tuple[tuple[str, PodRecord], ...] = ()
    domains: Mapping[str, str] = field(default_factory=dict)
    giving_up: tuple[Key, ...] = ()


class MemberStates:
    """In which state filters are asked about each member of a group while one of them has its cycle. Mutable."""

    def __init__(self, ranking: NodeRanking, record: PodRecord, state: CycleState) -> None:
        self._ranking = ranking
        self._own = state
        self._known: dict[Key, CycleState | None] = {record.key: state}

    def of(self, record: PodRecord) -> CycleState | None:
        """Return a member's state; ``None`` if a pre-filter refuses it."""
        if record.key not in self._known:
            self._known[record.key] = self._ranking.begin(record, self._own)
        return self._known[record.key]


class QuorumSearch:
    """Looks for a plan for one group. Mutable: it counts what it has tried. The cluster stays as it is.

    Members that only wait at Permit, or are to be moved, may be ``giving_up`` their nodes. Without ``victims`` nobody
    else loses anything.
    """

    def __init__(
        self,
        services: Services,
        ranking: NodeRanking,
        states: MemberStates,
        group: Group,
        *,
        giving_up: Iterable[PodRecord] = (),
        victims: bool,
    ) -> None:
        self._services = services
        self._ranking = ranking
        self._states = states
        self._group = group
        self._table = services.cluster.table
        self._holders = {record.key: record for record in giving_up}
        self._victims = victims
        self._left = 0
        self._gain: Matrix | None = None

    @property
    def exhausted(self) -> bool:
        """Tell whether the search was given up before everything was tried."""
        return self._left <= 0

    def plan(self) -> GroupPlan | None:
        """Return a plan for all that the group lacks, or ``None``."""
        group = self._group
        before = group.domains
        self._left = _IN_VAIN + group.size
        try:
            for members in group.quorums(map(_without_node, self._holders.values())):
                found = self._place_all(members) if members else None
                if found is not None:
                    return replace(found, giving_up=tuple(self._holders))
        finally:
            group.domains = before
        return None

    # -- one set of members ------------------------------------------------------------------------------------------

    def _place_all(self, members: list[PodRecord]) -> GroupPlan | None:
        services = self._services
        own = {record.key for record in members}
        promised = [each for each in services.nominations.binding_on(members[0]) if each.record.key not in own]
        trial = TrialState(services.cluster, services.claims, promised)
        for record in self._holders.values():
            trial.evict(record)
        parts = {self._group.part_of(record.key) for record in members}
        scopes = self._narrowest_first([scope for scope in self._group.scopes if scope.parts & parts])
        return self._descend(scopes, members, trial, GroupPlan())

    def _descend(
        self, scopes: Sequence[DomainScope], members: list[PodRecord], trial: TrialState, plan: GroupPlan
    ) -> GroupPlan | None:
        """Give domains to the ``scopes`` that have none yet, place what is only in these, and in the end the rest."""
        if not scopes:
            return self._fill(trial, sorted(members, key=lambda each: self._width(each, plan.domains)), plan)
        scope, others = scopes[0], scopes[1:]
        # What has more to choose from than another scope inside this one is placed later.
        innermost = not any(each.name in scope.inner for each in others)
        here = [each for each in members if innermost and self._group.part_of(each.key) in scope.parts]
        later = [each for each in members if each not in here] if here else members
        for value in self._candidates(scope, members, trial, plan.domains):
            if self.exhausted:
                break
            attempt = trial.fork()
            chosen = replace(plan, domains={**plan.domains, scope.name: value})
            filled = self._fill(attempt, here, chosen)
            found = self._descend(others, later, attempt, filled) if filled is not None else None
            if found is not None:
                return found
        return None

    def _fill(self, trial: TrialState, members: Sequence[PodRecord], plan: GroupPlan) -> GroupPlan | None:
        """Place members one after the other in the domains chosen for them; ``None`` if one finds no place."""
        ranking, group = self._ranking, self._group
        group.domains = dict(plan.domains)  # where the filters look
        search = VictimSearch(ranking, trial, self._services)
        places, victims = list(plan.places), list(plan.victims)
        for record in members:
            self._left -= 1
            state = self._states.of(record)
            if state is None:
                return None
            within = confined(trial.view.table, group, group.scopes_of(record.key))
            with trial.asked(state):
                found = ranking.feasible(state, record, trial.view, within)
                sacrifice = None
                if not found.feasible and self._victims:
                    sacrifice = search.cheapest(state, record, record.pod.priority, found, within)
            if found.feasible:
                row = ranking.preferred(record, trial.view, found.mask)
            elif sacrifice is None:
                return None
            else:
                row = sacrifice.row
                for victim in sacrifice.victims:
                    trial.evict(victim)
                    victims.append((sacrifice.node, victim))
            trial.place(record, row)
            places.append((record, trial.view.table.names[row]))
        return replace(plan, places=tuple(places), victims=tuple(victims))

    # -- domains -----------------------------------------------------------------------------------------------------

    def _candidates(
        self, scope: DomainScope, members: list[PodRecord], trial: TrialState, domains: Mapping[str, str]
    ) -> list[str]:
        """Return the domains a part may go to, those first where most of its pods find free room."""
        self._group.domains = dict(domains)
        outer = [each for each in self._group.scopes if scope.name in each.inner]
        within = confined(self._table, self._group, outer)
        held = self._held(scope)
        values = set(values_in(self._table, scope.key, within))
        wanted = demands([each for each in members if self._group.part_of(each.key) in scope.parts], self._ranking)
        ranked: list[tuple[int, str]] = []
        for value in values & held if held else values:
            mask = within & domain(self._table, scope.key, value)
            if all(
                int(each.per_node(self._table.idle + self._gained())[mask].sum()) >= each.count
                for each in wanted
                if not each.one_per_node
            ):
                ranked.append((-fitting(wanted, trial.view.table, mask), value))
        return [value for _, value in sorted(ranked)] if len(held) <= 1 else []

    def _held(self, scope: DomainScope) -> set[str]:
        """Return the domains in which members are that stay."""
        staying = (
            each.node
            for each in self._group.members_of(scope.parts)
            if each.status in ACTIVE_ALLOCATED and each.key not in self._holders
        )
        return values_on(self._table, scope.key, staying)

    def _gained(self) -> Matrix:
        """Return what each node would have more if all went who may have to, ``[node, resource]``."""
        if self._gain is None:
            idle, on_node = self._table.idle, self._services.cluster.on_node
            self._gain = np.zeros_like(idle)
            for row in on_node.rows():
                for each in on_node.of_row(row).values():
                    if each.key in self._holders or (self._victims and each.pod.priority < self._group.priority):
                        amounts = each.request.requests
                        self._gain[row, : len(amounts)] += amounts
        return self._gain

    def _narrowest_first(self, scopes: list[DomainScope]) -> list[DomainScope]:
        """Return scopes, the whole before its parts, of those beside one another the one with the smallest domains."""
        inside = {name for scope in scopes for name in scope.inner}
        ordered: list[DomainScope] = []
        for scope in sorted(
            (each for each in scopes if each.name not in inside), key=lambda each: self._least(each, scopes)
        ):
            ordered += [scope, *self._narrowest_first([each for each in scopes if each.name in scope.inner])]
        return ordered

    def _least(self, scope: DomainScope, scopes: list[DomainScope]) -> int:
        keys = {scope.key} | {each.key for each in scopes if each.name in scope.inner}
        return min(self._largest(key) for key in keys)

    def _largest(self, key: str) -> int:
        column = self._table.labels.column(key)
        numbers = column[self._table.alive & (column >= 0)]
        return int(np.bincount(numbers).max()) if len(numbers) else 0

    def _width(self, record: PodRecord, domains: Mapping[str, str]) -> int:
        self._group.domains = dict(domains)
        mask: Mask = confined(self._table, self._group, self._group.scopes_of(record.key))
        return int(mask.sum())


def waiting_members(services: Services, group: Group) -> list[PodRecord]:
    """Return the members that hold a node at Permit."""
    found = (services.cluster.pod(key) for key in group.waiting)
    return [record for record in found if record is not None and record.status in ACTIVE_ALLOCATED]


def _without_node(record: PodRecord) -> PodRecord:
    """Return a member, or the one that will be made in its place, as it is while it waits."""
    replace_fields = msgspec.structs.replace
    spec = replace_fields(record.pod.spec, node_name="")
    pod = replace_fields(record.pod, spec=spec)
    return replace_fields(record, pod=pod, status=PodStatus.PENDING, node="", gpu_groups=())
