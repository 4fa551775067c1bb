"""The groups whose pods are scheduled together: all of them, which hold nodes, and which are backing off.

Groups come from scheduler-plugins' PodGroups and from Kubernetes' own (:mod:`spinney.gangs.sources`). Who is in them is
kept by a book of gangs, which follows the pods in the ledger: a pod that holds a node without being bound to it counts
as placed. Here is who is told what changed, and what Permit needs beside.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final, NamedTuple

from spinney.api.core import Pod
from spinney.cluster.pods import PodRecord
from spinney.cluster.state import PodChange
from spinney.cluster.statuses import ACTIVE_ALLOCATED, ALIVE, PLACED, PodStatus
from spinney.cluster.surroundings import keep
from spinney.coscheduling.groups.group import Group, GroupOrder, GroupTerms, terms_of
from spinney.gangs import composites
from spinney.gangs.book import GangBook, GangMembers, Membership
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
        self._book = GangBook(membership, definitions)
        self.completed: Callable[[Group], None] = lambda group: None
        """Called when a group has become complete, so that its members may be tried."""
        self.fulfilled: Callable[[Group], None] = lambda group: None
        """Called when its object, or a member that another scheduler bound, satisfies a group whose members wait."""
        self.incomplete: Callable[[Group], None] = lambda group: None
        """Called with a group that cannot be tried: its object is not there, or asks for more members than exist."""
        self.broken: Callable[[Group], None] = lambda group: None
        """Called when a change of its object leaves members waiting for what cannot come: it is incomplete now."""
        self.withdrawn: Callable[[Group], None] = lambda group: None
        """Called when a group that could be tried cannot be any more, so that nothing is kept for it."""
        self.reordered: Callable[[Group], None] = lambda group: None
        """Called when a group's place in the order has changed."""
        self._groups: dict[GangKey, Group] = {}
        self._of_pod: dict[tuple[str, str], Group] = {}
        self._holding: dict[GangKey, Group] = {}
        self._resting: dict[GangKey, Group] = {}

    def __iter__(self) -> Iterator[Group]:
        return iter(self._groups.values())

    def of(self, pod: Key) -> Group | None:
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
        """Return which gang a pod belongs to, with any scheduler; a single pod is a gang."""
        group = self.of(record.key)
        return group.key if group is not None else any_membership(record)[0]

    def gang_members(self, record: PodRecord) -> GangMembers:
        """Return the gang of a pod. One that belongs to no group here stands for itself, as its gang declares."""
        group = self.of(record.key)
        members = self._book.members(group.key) if group is not None else None
        if members is not None:
            return members
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
        if gang.key.source in SOURCES:
            self._redefine([gang.key], lambda: self._book.put(gang))

    def remove_gang(self, key: GangKey) -> None:
        """Take out a group's object; its pods wait for it to come back."""
        if key in self._groups:
            self._redefine([key], lambda: self._book.remove(key))

    def derive_again(self, workload: Key | None) -> None:
        """Take in that a Workload appeared, changed or is gone, or that every one may have changed."""
        self._redefine(self._book.named(workload), lambda: self._book.derive_again(workload))

    def attach(self, part: GangKey, before: GangKey, home: GangKey) -> None:
        """Have pods that name ``part`` belong to the group ``home`` and no longer to ``before``."""
        left = self._groups.get(before)
        pod_set = DEFAULT_POD_SET if before == part else part.name
        if left is None or not left.members_of_set(pod_set):
            return
        if left.waiting:
            self.broken(left)
        joined = self._group(home)
        was = [_Before.of(left), _Before.of(joined)]
        moving = left.members_of_set(pod_set)  # as they are now that those which waited have let go
        self._book.attach(part, before)
        for record in moving:
            self._move(record, left, record, joined)
        for each in was:
            self._after_change(each)

    def pod_changed(self, change: PodChange) -> None:
        """Take in what happened to a pod in the ledger."""
        old, new = change
        left = self._of_pod.get(old.key) if old is not None else None
        belonged = (left.key, left.part_of(old.key)) if left is not None and old is not None else None
        belongs = self._belongs(new, belonged if old is not None and new is not None and old.pod is new.pod else None)
        if belonged is None and belongs is None:
            return
        joined = self._group(belongs[0]) if belongs is not None else None
        was = [_Before.of(group) for group in dict.fromkeys((left, joined)) if group is not None]
        self._book.move(old, belonged, new, belongs)
        if joined is not None and joined.gang is not was[-1].gang:
            joined.define(GroupTerms())  # in the Workload that the pod names
        self._move(old, left, new, joined)
        for each in was:
            self._after_change(each)
        if joined is not None and joined.waiting and joined.satisfied and was_bound_by_another(change):
            self.fulfilled(joined)

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

    def _group(self, key: GangKey) -> Group:
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = Group(key, self._book.entry(key))
        return group

    def _belongs(self, record: PodRecord | None, known: Membership | None) -> Membership | None:
        """Return the group and part of a pod, ``known`` if that cannot have changed; ``None`` if it is in none."""
        if record is None or record.status not in ALIVE:
            return None
        found = known or self._book.membership(record)
        return found if found[0].source in SOURCES else None

    def _redefine(self, keys: list[GangKey], change: Callable[[], object]) -> None:
        """Carry out a change of what defines groups."""
        was = [_Before.of(self._group(key)) for key in keys]
        change()
        for before in was:
            self._defined(before)

    def _defined(self, was: "_Before") -> None:
        group, terms = was.group, terms_of(self._definitions.object_of(was.group.key))
        if group.gang == was.gang and (group.terms == terms or group.gang is None):
            return
        if group.gang is None:
            group.define(group.terms)
            self._undefined(group)
            return
        new_terms = was.gang is None or group.terms != terms
        needed = was.gang.root.fewest if was.gang is not None else 0
        group.define(terms)
        group.resources_checked = False
        tree = was.gang.root if was.gang is not None else None
        if group.minimum < needed or new_terms or (group.has_choices and group.gang.root != tree):
            # A smaller quorum, another choice or total, or a new object is a new chance, whatever failed before.
            self._resting.pop(group.key, None)
            self._after_change(was._replace(complete=False))
        else:
            self._after_change(was)
        if was.complete and not group.complete:
            self.withdrawn(group)
        if group.waiting:
            if group.satisfied:
                self.fulfilled(group)
            elif not group.complete:
                self.broken(group)

    def _undefined(self, group: Group) -> None:
        self._holding.pop(group.key, None)
        if group.waiting:
            self.broken(group)
        self.withdrawn(group)
        if group.size:
            self.incomplete(group)
        self._drop_if_gone(group)

    def _move(self, old: PodRecord | None, left: Group | None, new: PodRecord | None, joined: Group | None) -> None:
        """Count a pod, which the book of gangs has moved already, where it is and no longer where it was."""
        if old is not None and left is not None:
            left.take_out(old)
            del self._of_pod[old.key]
        if new is not None and joined is not None:
            joined.put_in(new)
            self._of_pod[new.key] = joined
        if old is not None and left is not None and left is not joined and old.key in left.chosen:
            # It was meant to be part of the quorum: all members are tried again.
            left.chosen = frozenset()
            if left.complete:
                self.completed(left)

    def _after_change(self, was: "_Before") -> None:
        group = was.group
        holds = group.assigned and not group.satisfied and group.gang is not None
        keep(self._holding, group.key, group if holds else None)
        if not group.assigned:
            group.domains.clear()
        complete = group.complete
        if was.complete and not complete:
            self.withdrawn(group)
        if not complete and group.size:
            self.incomplete(group)
        if complete and not was.complete:
            self.completed(group)
        elif group.order != was.order and group.size:
            self.reordered(group)
        self._drop_if_gone(group)

    def _drop_if_gone(self, group: Group) -> None:
        if group.key not in self._book:
            self._groups.pop(group.key, None)
            self._resting.pop(group.key, None)


class _Before(NamedTuple):
    """What a group was before something happened to it."""

    group: Group
    gang: Gang | None
    complete: bool
    order: GroupOrder

    @classmethod
    def of(cls, group: Group) -> "_Before":
        return cls(group, group.gang, group.complete, group.order)


def membership(record: PodRecord) -> Membership:
    """Return the group and pod set of a pod; one that names no group is alone."""
    return native.membership(record) or coscheduling.membership(record) or bare.membership(record)


def was_bound_by_another(change: PodChange) -> bool:
    """Tell whether a pod was bound that did not have a node from us, or was bound when we first saw it."""
    new, old = change.new, change.old
    return new is not None and new.status in PLACED and (old is None or old.status not in ACTIVE_ALLOCATED)
