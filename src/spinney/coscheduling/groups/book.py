"""The groups whose pods are scheduled together: all of them, which hold nodes, and which are backing off.

Groups come from scheduler-plugins' PodGroups and from Kubernetes' own (:mod:`spinney.gangs.sources`). The book follows
the pods in the ledger, where a pod that holds a node without being bound to it counts as placed, so that counting a
group's progress costs nothing when it is asked for.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

from spinney.api.core import Pod
from spinney.cluster.pods import PodKey, PodRecord
from spinney.cluster.state import PodChange
from spinney.cluster.statuses import ACTIVE_ALLOCATED, ALIVE, PLACED, PodStatus
from spinney.coscheduling.groups.group import Group, GroupOrder, terms_of
from spinney.gangs import composites
from spinney.gangs.book import GangMembers
from spinney.gangs.definitions import GangDefinitions
from spinney.gangs.membership import membership as any_membership
from spinney.gangs.sources import bare, coscheduling, native
from spinney.gangs.tree import DEFAULT_POD_SET, Gang, GangKey, PodSet, single
from spinney.kube.keys import Key

SOURCES: Final = frozenset({native.SOURCE, native.WORKLOAD_SOURCE, composites.SOURCE, coscheduling.SOURCE})
"""The sources of gangs whose pods wait for each other at Permit."""


class Groups:
    """All groups by identity. Mutable; fed by what objects define (``definitions``) and by the ledger."""

    def __init__(self, definitions: GangDefinitions) -> None:
        self._definitions = definitions
        self.completed: Callable[[Group], None] = lambda group: None
        """Hears when a group has become complete, so that its members may be tried."""
        self.fulfilled: Callable[[Group], None] = lambda group: None
        """Hears when its object, or a member that somebody else bound, satisfies a group whose members wait."""
        self.incomplete: Callable[[Group], None] = lambda group: None
        """Hears of a group that cannot be tried: its object is not there, or asks for more members than exist."""
        self.broken: Callable[[Group], None] = lambda group: None
        """Hears when a change of its object leaves members waiting for what cannot come: it is incomplete now."""
        self.withdrawn: Callable[[Group], None] = lambda group: None
        """Hears when a group that could be tried cannot be any more, so that nothing is kept for it."""
        self.reordered: Callable[[Group], None] = lambda group: None
        """Hears when a group's place in the order has changed."""
        self._groups: dict[GangKey, Group] = {}
        self._of_pod: dict[tuple[str, str], Group] = {}
        self._holding: dict[GangKey, Group] = {}
        self._resting: dict[GangKey, Group] = {}

    def __iter__(self) -> Iterator[Group]:
        return iter(self._groups.values())

    def of(self, pod: PodKey | Key) -> Group | None:
        """Return the group a pod belongs to; ``None`` for a pod of its own."""
        return self._of_pod.get(pod)

    def of_pod(self, pod: Pod) -> Group | None:
        """Return the group of a pod, which is asked several times for every pod there is."""
        if not self._of_pod:
            return None
        return self._of_pod.get((pod.metadata.namespace or "", pod.metadata.name))

    def get(self, key: GangKey) -> Group | None:
        """Return one group, or the one it is part of."""
        return self._groups.get(self._definitions.home(key))

    def gang_key(self, record: PodRecord) -> GangKey:
        """Return which gang a pod belongs to, whoever places it; a pod of its own is one."""
        group = self.of(record.key)
        return group.key if group is not None else any_membership(record)[0]

    def gang_members(self, record: PodRecord) -> GangMembers:
        """Return the gang of a pod. One that belongs to no group here stands for itself, as its gang declares."""
        group = self.of(record.key)
        if group is not None and group.gang is not None:
            return group.gang_members(group.gang)
        definitions = self._definitions
        gang = definitions.gang(any_membership(record)[0]) or bare.gang(record, definitions.context)
        gang = replace(gang, root=single(PodSet(DEFAULT_POD_SET)))
        pods, counts = {record.key: (DEFAULT_POD_SET, record)}, {(DEFAULT_POD_SET, record.status): 1}
        return GangMembers(gang, pods, int(record.status is PodStatus.PENDING), counts)

    def holding(self) -> list[Group]:
        """Return the groups that hold nodes without being satisfied, and could go on: not those backing off."""
        return [group for group in self._holding.values() if group.key not in self._resting]

    # -- events ------------------------------------------------------------------------------------------------------

    def put_gang(self, gang: Gang) -> None:
        """Take in a group's object that appeared or changed."""
        if gang.key.source not in SOURCES:
            return
        group, terms = self._group(gang.key), terms_of(self._definitions.object_of(gang.key))
        if group.gang == gang and group.terms == terms:
            return
        was_complete = could_be_tried = group.complete
        was, needed, tree = group.order, group.minimum, group.gang.root if group.gang is not None else None
        new_terms = group.gang is None or group.terms != terms
        group.define(gang, terms)
        group.resources_checked = False
        if group.minimum < needed or new_terms or (group.has_choices and gang.root != tree):
            # A smaller quorum, another choice or total, or a new object is a new chance, whatever failed before.
            self._resting.pop(group.key, None)
            was_complete = False
        self._after_change(group, was_complete, was)
        if could_be_tried and not group.complete:
            self.withdrawn(group)
        if group.waiting:
            if group.satisfied:
                self.fulfilled(group)
            elif not group.complete:
                self.broken(group)

    def remove_gang(self, key: GangKey) -> None:
        """Take out a group's object; its pods wait for it to come back."""
        group = self._groups.get(key)
        if group is None:
            return
        group.define(None, group.terms)
        self._holding.pop(key, None)
        if group.waiting:
            self.broken(group)
        self.withdrawn(group)
        if group.members:
            self.incomplete(group)
        self._drop_if_empty(group)

    def attach(self, part: GangKey, before: GangKey, home: GangKey) -> None:
        """Have pods that name ``part`` belong to the group ``home`` and no longer to ``before``."""
        group = self._groups.get(before)
        moving = [each for each in group.members.values() if membership(each) == part] if group is not None else []
        if group is not None and moving and group.waiting:
            self.broken(group)
        for record in moving:
            self.pod_changed(PodChange(record, record))

    def derive_again(self, workload: Key | None) -> None:
        """Take in that a Workload appeared, changed or is gone, or that every one may have changed."""
        for key in [key for key in self._groups if key.source == native.WORKLOAD_SOURCE]:
            if workload is None or native.workload_of(key) == workload:
                self._derive(key)

    def pod_changed(self, change: PodChange) -> None:
        """Take in what happened to a pod in the ledger."""
        new = change.new
        old_group = self._of_pod.get(change.old.key) if change.old is not None else None
        key = membership(new) if new is not None and new.status in ALIVE else None
        if key is None and old_group is None:
            return
        new_group = self._group(self._definitions.home(key)) if key is not None else None
        groups = [group for group in dict.fromkeys((old_group, new_group)) if group is not None]
        before = [(group, group.complete, group.order) for group in groups]
        if old_group is not None and change.old is not None:
            old_group.take_out(change.old)
            del self._of_pod[change.old.key]
        if new_group is not None and new is not None and key is not None:
            new_group.put_in(new, key.name if key in self._definitions.homes else DEFAULT_POD_SET)
            self._of_pod[new.key] = new_group
        if old_group is not None and old_group is not new_group and change.old is not None:
            self._lose_chosen(old_group, change.old.key)
        for group, was_complete, was in before:
            self._after_change(group, was_complete, was)
            self._drop_if_empty(group)
        if new_group is not None and new_group.gang is None and new_group.key.source == native.WORKLOAD_SOURCE:
            self._derive(new_group.key)
        if new_group is not None and new_group.waiting and new_group.satisfied and _is_news(change):
            self.fulfilled(new_group)

    def forget_domains(self) -> None:
        """Have the domains of groups found anew, from where their members are: nodes have moved between domains."""
        for group in self._groups.values():
            group.domains = {}

    # -- backing off -------------------------------------------------------------------------------------------------

    def rest(self, group: Group, until: float, *, stirred: bool) -> None:
        """Put a group on the back-off list; one that is ``stirred`` is tried again whatever happens meanwhile."""
        group.resting_until = until
        group.stirred = stirred
        self._resting[group.key] = group

    def is_resting(self, group: Group) -> bool:
        """Tell whether a group is on the back-off list."""
        return group.key in self._resting

    def rested(self, now: float) -> list[Group]:
        """Take the groups whose time is up off the back-off list and return those that are to be tried again.

        For the others nothing has changed, so their answer would be the same; the next event that may help wakes them.
        """
        if not self._resting:
            return []
        found = [group for group in self._resting.values() if group.resting_until <= now]
        for group in found:
            del self._resting[group.key]
        return [group for group in found if group.stirred]

    def next_rested(self) -> float | None:
        """Return when the next group's time is up."""
        return min((group.resting_until for group in self._resting.values()), default=None)

    # -- bookkeeping -------------------------------------------------------------------------------------------------

    def _derive(self, key: GangKey) -> None:
        gang = self._definitions.derive(key)
        if gang is None:
            self.remove_gang(key)
        else:
            self.put_gang(gang)

    def _group(self, key: GangKey) -> Group:
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = Group(key)
        return group

    def _after_change(self, group: Group, was_complete: bool, was: GroupOrder) -> None:
        if group.assigned and not group.satisfied and group.gang is not None:
            self._holding[group.key] = group
        else:
            self._holding.pop(group.key, None)
        if not group.assigned:
            group.domains.clear()
        complete = group.complete
        if was_complete and not complete:
            self.withdrawn(group)
        if not complete and group.members:
            self.incomplete(group)
        if complete and not was_complete:
            self.completed(group)
        elif group.order != was and group.members:
            self.reordered(group)

    def _lose_chosen(self, group: Group, member: PodKey) -> None:
        """Have all members of a group tried again when one is gone that was meant to be part of its quorum."""
        if member in group.chosen:
            group.chosen = frozenset()
            if group.complete:
                self.completed(group)

    def _drop_if_empty(self, group: Group) -> None:
        if group.gang is None and not group.members:
            self._groups.pop(group.key, None)
            self._resting.pop(group.key, None)


def membership(record: PodRecord) -> GangKey | None:
    """Return the group a pod names, if it names one."""
    found = native.membership(record) or coscheduling.membership(record)
    return found[0] if found is not None else None


def _is_news(change: PodChange) -> bool:
    """Tell whether a pod was bound that did not have a node from us."""
    new, old = change.new, change.old
    return new is not None and new.status in PLACED and (old is None or old.status not in ACTIVE_ALLOCATED)
