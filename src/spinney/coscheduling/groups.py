"""The groups whose pods are scheduled together: who is in them, how far they have come, and which are backing off.

Groups come from scheduler-plugins' PodGroups and from Kubernetes' own (:mod:`spinney.gangs.sources`). The book follows
the pods in the ledger, where a pod that holds a node without being bound to it counts as placed, so that counting a
group's progress costs nothing when it is asked for. A group may have several parts with a minimum each
(:mod:`spinney.coscheduling.composites`). What makes a group complete, and what satisfies it, is decided by
:func:`spinney.gangs.tree.satisfied` alone.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from spinney.api.core import Pod
from spinney.api.quantity import RawQuantity
from spinney.cluster.pods import PodKey, PodRecord
from spinney.cluster.state import PodChange
from spinney.cluster.statuses import ACTIVE_ALLOCATED, ALIVE, PodStatus
from spinney.gangs.sources import coscheduling, native
from spinney.gangs.tree import DEFAULT_POD_SET, Gang, GangKey, Member, PodSet, satisfied
from spinney.kube.keys import Key

_BOUND: Final = frozenset({PodStatus.BOUND, PodStatus.RUNNING})


@dataclass(frozen=True, slots=True)
class Terms:
    """What a group's object says beside its minimum."""

    min_resources: Mapping[str, RawQuantity] = field(default_factory=dict)
    timeout: float | None = None
    """Seconds members wait at Permit; ``None``: as the plugin is configured."""
    priority: int | None = None
    """What its pods' priority must be, where the object says so."""
    disrupted_whole: bool = False
    """Whether preemption takes all of its pods or none."""


GroupOrder = tuple[int, bool, float, GangKey]
"""Sorts groups, the first to be served first: priority, whether interrupted, creation, identity."""


@dataclass(frozen=True, slots=True)
class Scope:
    """A group, or a part of it, whose pods lie in one domain of a topology key."""

    name: str
    key: str
    parts: frozenset[str]
    """The pod sets in it."""
    minimum: int
    """How many of its pods must be placed."""
    inner: frozenset[str]
    """The scopes inside."""


@dataclass(slots=True)
class _Tally:
    """How many pods one part of a group has. Mutable."""

    available: int = 0
    """Those that are placed or could be: without a scheduling gate."""
    assigned: int = 0


class Group:
    """Pods that are scheduled together. Mutable; the counts are its book's, the rest the coscheduling plugin's."""

    def __init__(self, key: GangKey) -> None:
        self.key = key
        self.gang: Gang | None = None
        self.created = 0.0
        """When the group's object was created, in seconds."""
        self.terms = Terms()
        self.minimum = 0
        """How many members must be placed before any is bound."""
        self.members: dict[PodKey, PodRecord] = {}
        """Pods that exist and have not ended or been deleted."""
        self.assigned = 0
        """Members that have a node, bound to it or waiting at Permit."""
        self.bound = 0
        """Members that are bound to a node."""
        self.gated = 0
        self._parts: dict[str, _Tally] = {}
        self._part_of: dict[PodKey, str] = {}
        self._priorities: Counter[int] = Counter()
        self._last_priority = 0
        self.waiting: dict[Key, None] = {}
        """Members that wait at Permit, in the order in which they came."""
        self.resting_until = 0.0
        self.rejection = ""
        """Why it was rejected last."""
        self.stirred = False
        """Whether, since it was rejected, something happened that may help it; else to try it again is pointless."""
        self.resources_checked = False
        self.refused_classes: set[int] = set()
        """Request classes of members that fit nowhere, since the group was last rejected or released."""
        self.scopes: tuple[Scope, ...] = ()
        """What lies in one topology domain: the whole before its parts."""
        self.domains: dict[str, str] = {}
        """The domain of each scope, once it is chosen."""
        self.domains_tried: dict[str, set[str]] = {}

    # -- how far it has come -----------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """Return namespace and name, for people."""
        return str(self.key)

    @property
    def objects(self) -> list[Key]:
        """Return the PodGroups whose pods it has: its own, or those of its parts."""
        names = [pod_set.name for pod_set in self.gang.root.pod_sets()] if self.gang is not None else []
        own = self.key.name
        return [Key(self.key.namespace, own if name == DEFAULT_POD_SET else name) for name in names or (own,)]

    @property
    def complete(self) -> bool:
        """Tell whether enough members exist for the group to be tried."""
        return self.gang is not None and satisfied(self.gang.root, lambda part: self._tally(part.name).available)

    @property
    def satisfied(self) -> bool:
        """Tell whether enough members are placed for all of them to be bound."""
        return self.gang is not None and satisfied(self.gang.root, self._placed)

    @property
    def missing(self) -> int:
        """Return how many more members must be placed."""
        return sum(self._shortfall().values())

    @property
    def progress(self) -> float:
        """Return how close the group is to its completion, from 0 to 1 and above."""
        return self.assigned / max(self.minimum, 1)

    @property
    def priority(self) -> int:
        """Return the highest priority among pending members; once none is pending, what it was."""
        return max(self._priorities) if self._priorities else self._last_priority

    @property
    def interrupted(self) -> bool:
        """Tell whether some members are bound and too few placed: a scheduler died half-way, or members were lost."""
        return self.bound > 0 and not self.satisfied

    @property
    def order(self) -> GroupOrder:
        """Return the group's place among groups."""
        return (-self.priority, not self.interrupted, self.created, self.key)

    def pending(self) -> list[PodRecord]:
        """Return the members that want a node, in the order in which they are tried."""
        found = [record for record in self.members.values() if record.status is PodStatus.PENDING]
        return sorted(found, key=lambda record: (-(record.pod.spec.priority or 0), seconds(record.created), record.key))

    def lacking(self) -> list[PodRecord]:
        """Return pending members, as many as must still be placed; fewer if there are not enough."""
        wanted = self._shortfall()
        found = []
        for record in self.pending():
            part = self._part_of[record.key]
            if wanted.get(part, 0) > 0:
                wanted[part] -= 1
                found.append(record)
        return found

    def others_than(self, refused: PodRecord) -> list[PodRecord]:
        """Note that a member fits nowhere; return the pending ones of other kinds, if they could make the quorum."""
        self.refused_classes.add(refused.request.number)
        others = [record for record in self.pending() if record.request.number not in self.refused_classes]
        hopeful = Counter(self._part_of[record.key] for record in others)
        if self.gang is None or not satisfied(self.gang.root, lambda part: self._placed(part) + hopeful[part.name]):
            return []
        return others

    def part_of(self, pod: PodKey | Key) -> str:
        """Return the pod set a member belongs to."""
        return self._part_of.get(PodKey(*pod), "")

    def scopes_of(self, pod: PodKey | Key) -> list[Scope]:
        """Return the scopes a member is in, the widest first."""
        if not self.scopes:
            return []
        part = self.part_of(pod)
        return [scope for scope in self.scopes if part in scope.parts]

    def is_surplus(self, pod: PodKey | Key) -> bool:
        """Tell whether a pod's part of the group has its minimum while other parts have not."""
        part = self.gang.pod_sets.get(self.part_of(pod)) if self.gang is not None else None
        return part is not None and self._placed(part) >= part.min_member and not self.satisfied

    def _placed(self, part: PodSet) -> int:
        return self._tally(part.name).assigned

    def _tally(self, part: str) -> _Tally:
        found = self._parts.get(part)
        if found is None:
            found = self._parts[part] = _Tally()
        return found

    def _shortfall(self) -> dict[str, int]:
        return shortfall(self.gang.root, self._placed) if self.gang is not None else {}

    # -- kept by the book --------------------------------------------------------------------------------------------

    def define(self, gang: Gang | None, terms: Terms) -> None:
        """Take in what the group's object says, ``None`` if it is gone."""
        self.gang, self.terms = gang, terms
        self.created = seconds(gang.created) if gang is not None else self.created
        self.minimum = sum(shortfall(gang.root, lambda _: 0).values()) if gang is not None else 0
        self.scopes = tuple(scopes_in(gang.root)) if gang is not None else ()

    def take_out(self, record: PodRecord) -> None:
        """Stop counting a pod as it was."""
        if self.members.pop(record.key, None) is None:
            return
        self._count(record, self._part_of.pop(record.key), -1)
        self.bound -= record.status in _BOUND
        self.gated -= record.status is PodStatus.GATED
        if record.status is PodStatus.PENDING:
            self._last_priority = self.priority
            priority = record.pod.spec.priority or 0
            self._priorities[priority] -= 1
            if not self._priorities[priority]:
                del self._priorities[priority]

    def put_in(self, record: PodRecord, part: str = DEFAULT_POD_SET) -> None:
        """Count a pod as it is, in one part of the group."""
        if record.status not in ALIVE:
            return
        self.members[record.key] = record
        self._part_of[record.key] = part
        self._count(record, part, 1)
        self.bound += record.status in _BOUND
        self.gated += record.status is PodStatus.GATED
        if record.status is PodStatus.PENDING:
            self._priorities[record.pod.spec.priority or 0] += 1

    def _count(self, record: PodRecord, part: str, by: int) -> None:
        tally = self._tally(part)
        if record.status in ACTIVE_ALLOCATED:
            self.assigned += by
            tally.assigned += by
        if record.status is not PodStatus.GATED:
            tally.available += by


class Groups:
    """All groups by identity. Mutable; fed by watch events and by the ledger."""

    def __init__(self) -> None:
        self.completed: Callable[[Group], None] = lambda group: None
        """Hears when a group has become complete, so that its members may be tried."""
        self.fulfilled: Callable[[Group], None] = lambda group: None
        """Hears when its object, or a member that somebody else bound, satisfies a group whose members wait."""
        self.incomplete: Callable[[Group], None] = lambda group: None
        """Hears of a group that cannot be tried: its object is not there, or asks for more members than exist."""
        self.broken: Callable[[Group], None] = lambda group: None
        """Hears when a change of its object leaves members waiting for what cannot come: it is incomplete now."""
        self.reordered: Callable[[Group], None] = lambda group: None
        """Hears when a group's place in the order has changed."""
        self._groups: dict[GangKey, Group] = {}
        self._homes: dict[GangKey, GangKey] = {}
        """Groups that are part of another, and of which."""
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
        return self._groups.get(self._homes.get(key, key))

    def holding(self) -> list[Group]:
        """Return the groups that hold nodes without being satisfied, and could go on: not those backing off."""
        return [group for group in self._holding.values() if group.key not in self._resting]

    # -- events ------------------------------------------------------------------------------------------------------

    def put(self, gang: Gang, terms: Terms = Terms()) -> None:  # noqa: B008 - a frozen value
        """Take in a group's object that appeared or changed."""
        group = self._group(gang.key)
        if group.gang == gang and group.terms == terms:
            return
        was_complete, was, needed = group.complete, group.order, group.minimum
        new_terms = group.gang is None or group.terms != terms
        group.define(gang, terms)
        group.resources_checked = False
        if group.minimum < needed or new_terms:
            # A smaller quorum, another total, or a new object is a new chance, whatever failed before.
            self._resting.pop(group.key, None)
            was_complete = False
        self._after_change(group, was_complete, was)
        if group.waiting:
            if group.satisfied:
                self.fulfilled(group)
            elif not group.complete:
                self.broken(group)

    def remove(self, key: GangKey) -> None:
        """Take out a group's object; its pods wait for it to come back."""
        group = self._groups.get(key)
        if group is None:
            return
        group.define(None, group.terms)
        self._holding.pop(key, None)
        if group.waiting:
            self.broken(group)
        if group.members:
            self.incomplete(group)
        self._drop_if_empty(group)

    def attach(self, part: GangKey, home: GangKey) -> None:
        """Have pods that name ``part`` belong to the group ``home``, which may be itself."""
        before = self._homes.get(part, part)
        if before == home:
            return
        if home == part:
            del self._homes[part]
        else:
            self._homes[part] = home
        group = self._groups.get(before)
        moving = [each for each in group.members.values() if membership(each) == part] if group is not None else []
        if group is not None and moving and group.waiting:
            self.broken(group)
        for record in moving:
            self.pod_changed(PodChange(record, record))

    def pod_changed(self, change: PodChange) -> None:
        """Take in what happened to a pod in the ledger."""
        new = change.new
        old_group = self._of_pod.get(change.old.key) if change.old is not None else None
        key = membership(new) if new is not None and new.status in ALIVE else None
        if key is None and old_group is None:
            return
        new_group = self._group(self._homes.get(key, key)) if key is not None else None
        groups = [group for group in dict.fromkeys((old_group, new_group)) if group is not None]
        before = [(group, group.complete, group.order) for group in groups]
        if old_group is not None and change.old is not None:
            old_group.take_out(change.old)
            del self._of_pod[change.old.key]
        if new_group is not None and new is not None and key is not None:
            new_group.put_in(new, key.name if key in self._homes else DEFAULT_POD_SET)
            self._of_pod[new.key] = new_group
        for group, was_complete, was in before:
            self._after_change(group, was_complete, was)
            self._drop_if_empty(group)
        if new_group is not None and new_group.waiting and new_group.satisfied and _is_news(change):
            self.fulfilled(new_group)

    # -- backing off -------------------------------------------------------------------------------------------------

    def rest(self, group: Group, until: float, *, stirred: bool) -> None:
        """Put a group on the back-off list; one that is ``stirred`` is tried again whatever happens meanwhile."""
        group.resting_until = until
        group.stirred = stirred
        self._resting[group.key] = group

    def resting(self, group: Group) -> bool:
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
        if not complete and group.members:
            self.incomplete(group)
        if complete and not was_complete:
            self.completed(group)
        elif group.order != was and group.members:
            self.reordered(group)

    def _drop_if_empty(self, group: Group) -> None:
        if group.gang is None and not group.members:
            self._groups.pop(group.key, None)
            self._resting.pop(group.key, None)


def membership(record: PodRecord) -> GangKey | None:
    """Return the group a pod names, if it names one."""
    found = native.membership(record) or coscheduling.membership(record)
    return found[0] if found is not None else None


def scopes_in(member: Member) -> Iterator[Scope]:
    """Return what of a tree lies in one domain of a topology key, the whole before its parts."""
    below = [] if isinstance(member, PodSet) else [scope for child in member.members for scope in scopes_in(child)]
    if member.topology is not None and member.topology.required:
        yield Scope(
            name=member.name,
            key=member.topology.required,
            parts=frozenset(pod_set.name for pod_set in member.pod_sets()),
            minimum=sum(shortfall(member, lambda _: 0).values()),
            inner=frozenset(scope.name for scope in below),
        )
    yield from below


def shortfall(member: Member, placed: Callable[[PodSet], int]) -> dict[str, int]:
    """Return how many more pods of which sets satisfy a tree, as few as possible; of equal choices the first."""
    if isinstance(member, PodSet):
        return {member.name: max(member.min_member - placed(member), 0)}
    choices = sorted((shortfall(child, placed) for child in member.members), key=lambda each: sum(each.values()))
    return {name: count for each in choices[: member.minimum] for name, count in each.items()}


def _is_news(change: PodChange) -> bool:
    """Tell whether a pod was bound that did not have a node from us."""
    new, old = change.new, change.old
    return new is not None and new.status in _BOUND and (old is None or old.status not in ACTIVE_ALLOCATED)


def seconds(moment: datetime | None) -> float:
    """Return a time as a number to sort by; an unknown one comes first."""
    return moment.timestamp() if moment is not None else 0.0
