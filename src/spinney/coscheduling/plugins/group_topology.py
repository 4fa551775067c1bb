"""GroupTopology: all pods of a native group lie in one domain of the topology key it names.

The groups of a composite may name keys too, each for its own pods, within the domain of what they are part of: all of a
job in one block, each of its groups in one rack of it.

A domain is chosen when the first member it is about is tried: where members already are or room was made for them, else
the one that holds most of them, the tightest of those, the first by name. If they then cannot be placed there after
all, the next one is tried at once, first the smallest such part of the group, then what it is part of; only when none
is left is the group given up.
"""

from spinney.api.core import NODE, POD, Pod
from spinney.cluster.pods import PodRecord
from spinney.cluster.statuses import ACTIVE_ALLOCATED, PodStatus
from spinney.cluster.table import Mask, NodeTable
from spinney.coscheduling.feasibility.room import demands, fitting, left_over
from spinney.coscheduling.framework.events import Action, EventHint
from spinney.coscheduling.framework.points import CycleState, Filter, PostFilter, PostFilterResult, PreFilter
from spinney.coscheduling.framework.status import SUCCESS, Status
from spinney.coscheduling.groups.domains import confined, domain, values_in, values_on
from spinney.coscheduling.groups.group import Group
from spinney.coscheduling.groups.needs import DomainScope
from spinney.coscheduling.plugins.in_flight import preempting
from spinney.kube.keys import key_of


class GroupTopology(PreFilter, Filter, PostFilter):
    """Keeps a group, and parts of it, in one domain."""

    name = "GroupTopology"
    decides_for_group = True
    alike = True
    reason = "node(s) didn't match the topology domain of the pod group"

    def pre_filter(self, state: CycleState, pod: Pod) -> Status:
        """Choose the domains the pod has to lie in, where there are none yet."""
        group = self._services.groups.of_pod(pod)
        if group is None or not group.scopes:
            return SUCCESS
        table = self._services.cluster.table
        within = table.alive
        for scope in group.scopes_of(key_of(pod)):
            if scope.name not in group.domains:
                problem = self._choose(group, scope, within)
                if problem:
                    return Status.unresolvable(problem)
            within = within & domain(table, scope.key, group.domains[scope.name])
        return SUCCESS

    def events(self) -> tuple[EventHint, ...]:
        """Return what may give a group a domain: nodes, or the loss of members that lie in another."""
        return (EventHint(NODE, Action.ANY), EventHint(POD, Action.DELETE))

    def concerns(self, state: CycleState, pod: Pod) -> bool:
        """Tell whether the pod's group has a domain."""
        group = self._services.groups.of_pod(pod)
        return group is not None and bool(group.domains)

    def filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Mask:
        """Leave only the nodes of the domains chosen for the pod."""
        group = self._services.groups.of_pod(pod)
        return nodes.alive if group is None else confined(nodes, group, group.scopes_of(key_of(pod)))

    def post_filter(self, state: CycleState, pod: Pod) -> PostFilterResult:
        """Go on to the next domain, giving up what waits in this one; success means: try again now."""
        group = self._services.groups.of_pod(pod)
        if group is None or not group.domains or preempting(self._services, group):
            return PostFilterResult(Status.unschedulable())
        table = self._services.cluster.table
        scopes = group.scopes_of(key_of(pod))
        for position in reversed(range(len(scopes))):
            scope = scopes[position]
            if scope.name not in group.domains or self._is_held(group, scope):
                continue
            within = confined(table, group, scopes[:position])
            group.domains_tried.setdefault(scope.name, set()).add(group.domains[scope.name])
            following = self._best(group, scope, within)
            if following is not None and self._fitting(group, scope, within, following) >= scope.minimum:
                self._move(group, scope, following)
                return PostFilterResult(self.pre_filter(state, pod))
            if position:
                group.domains_tried.pop(scope.name)  # in another domain of what it is part of it is new
        if group.satisfied:  # nobody will give it up, and with it what was tried
            group.domains_tried.clear()
            group.leave_domains()
        count = len(values_in(table, scopes[0].key, table.alive)) if scopes else 0
        return PostFilterResult(Status.unschedulable(f"0/{count} placements are available"))

    def _choose(self, group: Group, scope: DomainScope, within: Mask) -> str:
        """Choose the domain of a part of a group; return why there is none."""
        occupied = self._occupied(group, scope)
        if len(occupied) > 1:
            domains = ", ".join(sorted(occupied))
            return f"pods of pod group {scope.name or group.name} are in several domains of {scope.key}: {domains}"
        # Where room was made for members, or for others of this part, is where the part goes.
        where = occupied or self._promised(group, scope)
        best = min(where) if len(where) == 1 else self._best(group, scope, within)
        if best is None:
            return f"no node has the label {scope.key}"
        group.domains[scope.name] = best
        return ""

    def _move(self, group: Group, scope: DomainScope, value: str) -> None:
        """Have a part of a group tried in another domain; nothing inside it has one yet."""
        domains = {name: chosen for name, chosen in group.domains.items() if name not in scope.inner}
        for name in scope.inner:
            group.domains_tried.pop(name, None)
        moving = [key for key in group.waiting if group.part_of(key) in scope.parts]
        self._services.waiting.send_back(
            group, moving, self.name, f"pod group {group.name} is tried in another domain of {scope.key}"
        )
        group.domains = {**domains, scope.name: value}
        self._services.activate(moving)

    def _is_held(self, group: Group, scope: DomainScope) -> bool:
        """Tell whether bound members hold a part of a group where it is."""
        members = group.members_of(scope.parts)
        return any(each.status in ACTIVE_ALLOCATED and each.key not in group.waiting for each in members)

    def _occupied(self, group: Group, scope: DomainScope) -> set[str]:
        nodes = (each.node for each in group.members_of(scope.parts) if each.status in ACTIVE_ALLOCATED)
        return values_on(self._services.cluster.table, scope.key, nodes)

    def _promised(self, group: Group, scope: DomainScope) -> set[str]:
        node_of = self._services.nominations.node_of
        nodes = (node_of(each.key) for each in group.members_of(scope.parts))
        return values_on(self._services.cluster.table, scope.key, nodes)

    def _best(self, group: Group, scope: DomainScope, within: Mask) -> str | None:
        """Return the domain to try next: it holds most of the pods, leaves least over, comes first by name."""
        table = self._services.cluster.table
        wanted = demands(self._movable(group, scope), self._handle.ranking)
        best: tuple[int, int, str] | None = None
        for value in sorted(set(values_in(table, scope.key, within)) - group.domains_tried.get(scope.name, set())):
            nodes = within & domain(table, scope.key, value)
            rank = (-fitting(wanted, table, nodes), left_over(wanted, table, nodes), value)
            best = rank if best is None else min(best, rank)
        return best[2] if best is not None else None

    def _fitting(self, group: Group, scope: DomainScope, within: Mask, value: str) -> int:
        table = self._services.cluster.table
        wanted = demands(self._movable(group, scope), self._handle.ranking)
        return fitting(wanted, table, within & domain(table, scope.key, value))

    def _movable(self, group: Group, scope: DomainScope) -> list[PodRecord]:
        """Return the pods that go where the domain is: those without a node, and those that would give up theirs."""
        return [
            each
            for each in group.members_of(scope.parts)
            if each.status is PodStatus.PENDING or each.key in group.waiting
        ]
