"""GroupTopology: all pods of a native group lie in one domain of the topology key it names.

The domain is chosen when the first member is tried: where members already are, else the one that holds most of the
group, the tightest of those, the first by name. If the group then cannot be placed there after all, the next one is
tried at once; only when none is left is the group given up.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from spinney.api.core import NODE, Pod
from spinney.cluster.statuses import ACTIVE_ALLOCATED
from spinney.cluster.table import Mask, NodeTable
from spinney.coscheduling.framework.events import Action, EventHint
from spinney.coscheduling.framework.handle import Handle
from spinney.coscheduling.framework.points import CycleState, Filter, PostFilter, PostFilterResult, PreFilter
from spinney.coscheduling.framework.status import SUCCESS, Status
from spinney.coscheduling.groups import Group
from spinney.coscheduling.plugins.arguments import NoArguments, read
from spinney.coscheduling.plugins.in_flight import preempting
from spinney.coscheduling.room import demands, fitting, left_over


class GroupTopology(PreFilter, Filter, PostFilter):
    """Keeps a group in one domain."""

    name = "GroupTopology"
    reason = "node(s) didn't match the topology domain of the pod group"

    def __init__(self, handle: Handle, arguments: Mapping[str, Any]) -> None:
        read(NoArguments, arguments)
        self._handle = handle
        self._services = handle.services

    def pre_filter(self, state: CycleState, pod: Pod) -> Status:
        """Choose the domain of a group that has none yet."""
        group = self._services.groups.of_pod(pod)
        key = topology_key(group)
        if group is None or not key or group.domain is not None:
            return SUCCESS
        occupied = self._occupied(group, key)
        if len(occupied) > 1:
            return Status.unresolvable(
                f"pods of pod group {group.name} are in several domains of {key}: {', '.join(sorted(occupied))}"
            )
        group.domain = min(occupied) if occupied else self._best(group, key)
        return SUCCESS if group.domain is not None else Status.unresolvable(f"no node has the label {key}")

    def events(self) -> tuple[EventHint, ...]:
        """Return what may give a group a domain: nodes."""
        return (EventHint(NODE, Action.ADD | Action.UPDATE),)

    def concerns(self, state: CycleState, pod: Pod) -> bool:
        """Tell whether the pod's group has a domain."""
        group = self._services.groups.of_pod(pod)
        return group is not None and group.domain is not None

    def filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Mask:
        """Leave only the nodes of the group's domain."""
        group = self._services.groups.of_pod(pod)
        if group is None or group.domain is None:
            return nodes.alive
        return _domain(nodes, topology_key(group), group.domain)

    def post_filter(self, state: CycleState, pod: Pod) -> PostFilterResult:
        """Go on to the next domain, giving up what waits in this one; success means: try again now."""
        group = self._services.groups.of_pod(pod)
        key = topology_key(group)
        if group is None or not key or group.domain is None or preempting(self._services, group):
            return PostFilterResult(Status.unschedulable())
        if group.assigned > len(group.waiting):
            return PostFilterResult(Status.unschedulable())  # bound members hold the group where it is
        tried = {*group.domains_tried, group.domain}
        group.domains_tried = tried
        following = self._best(group, key)
        if following is None or self._fitting(group, key, following) < group.minimum:
            count = len(_values(self._services.cluster.table, key))
            return PostFilterResult(Status.unschedulable(f"0/{count} placements are available"))
        waiting, group.waiting = group.waiting, {}
        for each in waiting:
            held = self._services.waiting.get(each)
            if held is not None:
                held.reject(self.name, f"pod group {group.name} is tried in another domain of {key}")
        self._services.activate(waiting)
        group.domain = following
        return PostFilterResult(SUCCESS)

    def _occupied(self, group: Group, key: str) -> set[str]:
        table = self._services.cluster.table
        rows = [table.find(each.node) for each in group.members.values() if each.status in ACTIVE_ALLOCATED]
        column, values = table.labels.column(key), table.labels.values(key)
        return {values[column[row]] for row in rows if row is not None and column[row] >= 0}

    def _best(self, group: Group, key: str) -> str | None:
        """Return the domain to try next: it holds most of the group, leaves least over, comes first by name."""
        table = self._services.cluster.table
        pending = group.pending()
        wanted = demands(pending, self._handle.judge)
        best: tuple[int, int, str] | None = None
        for value in sorted(set(_values(table, key)) - group.domains_tried):
            within = _domain(table, key, value)
            rank = (-fitting(wanted, table, within), left_over(wanted, table, within), value)
            best = rank if best is None else min(best, rank)
        return best[2] if best is not None else None

    def _fitting(self, group: Group, key: str, value: str) -> int:
        table = self._services.cluster.table
        return fitting(demands(group.pending(), self._handle.judge), table, _domain(table, key, value))


def topology_key(group: Group | None) -> str:
    """Return the node label that divides the cluster into domains for a group; empty if it names none."""
    if group is None or group.gang is None or group.gang.root.topology is None:
        return ""
    return group.gang.root.topology.required


def domains_open_to(group: Group, table: NodeTable) -> dict[str, Mask] | None:
    """Return the domains a group may go to, by value; ``None`` for a group that may go anywhere."""
    key = topology_key(group)
    if not key:
        return None
    values = [group.domain] if group.assigned and group.domain is not None else sorted(_values(table, key))
    return {value: _domain(table, key, value) for value in values}


def _domain(table: NodeTable, key: str, value: str) -> Mask:
    mask: Mask = table.alive & (table.labels.column(key) == table.labels.value_id(key, value))
    return mask


def _values(table: NodeTable, key: str) -> list[str]:
    """Return the values that some node has now."""
    column = table.labels.column(key)
    numbers = np.unique(column[table.alive & (column >= 0)])
    values = table.labels.values(key)
    return [values[number] for number in numbers.tolist()]
