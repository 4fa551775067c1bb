"""A group of pods that are scheduled together: how far it has come, and what Permit remembers of it.

Who is in it, and what its object says of minimums and parts, is kept by the book of gangs (:mod:`spinney.gangs.book`).
What makes it complete, and what satisfies it, is decided by :func:`spinney.gangs.tree.is_satisfied` alone.
"""

from collections import Counter
from collections.abc import Callable, Container, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from spinney.api import coscheduling, workload_v1beta1
from spinney.api.core import Pod
from spinney.api.quantity import RawQuantity
from spinney.cluster.pods import PodRecord
from spinney.cluster.statuses import ACTIVE_ALLOCATED, ALIVE, PLACED, PodStatus
from spinney.coscheduling.groups.needs import DomainScope, choices, scopes_in, shortfall
from spinney.gangs.book import GangEntry
from spinney.gangs.sources import native
from spinney.gangs.tree import DEFAULT_POD_SET, Gang, GangKey, PodSet, is_satisfied
from spinney.kube.keys import Key


@dataclass(frozen=True, slots=True)
class GroupTerms:
    """What a group's object says beside its minimum."""

    min_resources: Mapping[str, RawQuantity] = field(default_factory=dict)
    timeout: float | None = None
    """Seconds members wait at Permit; ``None``: as the plugin is configured."""
    priority: int | None = None
    """What its pods' priority must be, where the object says so."""
    disrupted_whole: bool = False
    """Whether preemption takes all of its pods or none."""


def terms_of(found: object) -> GroupTerms:
    """Return what a group's object says beside its minimum."""
    if isinstance(found, coscheduling.PodGroup):
        return GroupTerms(min_resources=found.spec.min_resources, timeout=found.spec.schedule_timeout_seconds)
    if isinstance(found, native.PodGroup | workload_v1beta1.CompositePodGroup):
        whole = native.is_disrupted_whole(found.spec.disruption_mode)
        return GroupTerms(priority=found.spec.priority, disrupted_whole=whole)
    return GroupTerms()


GroupOrder = tuple[int, bool, float, GangKey]
"""Sorts groups, the first to be served first: priority, whether interrupted, creation, identity."""


_AVAILABLE: Final = ALIVE - {PodStatus.GATED}
"""Placed, or could be: without a scheduling gate."""


class Group:
    """Pods that are scheduled together. Mutable; the counts are its book's, the rest the coscheduling plugin's."""

    def __init__(self, key: GangKey, entry: GangEntry) -> None:
        self.key = key
        self._entry = entry
        self.created = 0.0
        """When the group's object was created, in seconds."""
        self.terms = GroupTerms()
        self.assigned = 0
        """Members that have a node, bound to it or waiting at Permit."""
        self.bound = 0
        """Members that are bound to a node."""
        self.gated = 0
        self._assigned_by_part: dict[str, int] | None = None
        self._available_by_part: dict[str, int] | None = None
        """Counted when they are asked for; ``None`` after a change."""
        self._priorities: Counter[int] = Counter()
        self._last_priority = 0
        self.waiting: dict[Key, None] = {}
        """Members that wait at Permit, in the order in which they came."""
        self.resting_until = 0.0
        self.rejection = ""
        """Why it was rejected last."""
        self.refusal = ""
        """Why it is not scheduled, as its object is to say."""
        self.stirred = False
        """Whether, since it was rejected, something happened that may help it; else to try it again is pointless."""
        self.resources_checked = False
        self.refused_kinds: set[Hashable] = set()
        """Kinds of members that fit nowhere, part by part, since the group was last rejected or released."""
        self._others: list[PodRecord] | None = None
        """Who else could make the quorum; ``None`` if that has to be found out again."""
        self._pending: list[PodRecord] | None = None
        """Who wants a node, in order; ``None`` if that has to be found out again."""
        self._scopes: tuple[DomainScope, ...] | None = ()
        """Found when they are asked for; ``None`` after its object has changed."""
        self.domains: dict[str, str] = {}
        """The domain of each scope, once it is chosen."""
        self.domains_tried: dict[str, set[str]] = {}
        self.rearranged = False
        """Whether it was told where to go as a whole, since it was last rejected or released."""
        self.held_back = False
        """Whether members were told to let others go first, who are told when these have their nodes."""
        self._started = False
        """Whether a member was bound since the group last had none with a node."""
        self.chosen: frozenset[Key] = frozenset()
        """The members that were told where to go; until they have their nodes the others stay out of their way."""

    # -- what the book of gangs says ---------------------------------------------------------------------------------

    @property
    def gang(self) -> Gang | None:
        """Return what its object says; ``None`` while that is not there."""
        return self._entry.gang

    @property
    def size(self) -> int:
        """Return how many members it has."""
        return len(self._entry.pods)

    @property
    def members(self) -> list[PodRecord]:
        """Return the pods that exist and have not ended or been deleted."""
        return [record for _, record in self._entry.pods.values()]

    def members_of(self, parts: Container[str]) -> list[PodRecord]:
        """Return the members of some of its parts."""
        return [record for part, record in self._entry.pods.values() if part in parts]

    def members_of_set(self, pod_set: str) -> list[PodRecord]:
        """Return the members of one of its pod sets, at the cost of these alone."""
        return self._entry.of_set(pod_set)

    def part_of(self, pod: Key) -> str:
        """Return the pod set a member belongs to."""
        found = self._entry.pods.get(pod)
        return found[0] if found is not None else ""

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
        return self.gang is not None and self.size >= self.minimum and is_satisfied(self.gang.root, self._available)

    @property
    def satisfied(self) -> bool:
        """Tell whether enough members are placed for all of them to be bound."""
        return self.gang is not None and self.assigned >= self.minimum and is_satisfied(self.gang.root, self._placed)

    @property
    def minimum(self) -> int:
        """Return how many members must be placed before any is bound."""
        return self.gang.root.fewest if self.gang is not None else 0

    @property
    def scopes(self) -> tuple[DomainScope, ...]:
        """Return what lies in one topology domain: the whole before its parts."""
        if self._scopes is None:
            bound = self.gang is not None and self.gang.root.bound_to_domains
            self._scopes = tuple(scopes_in(self.gang.root)) if self.gang is not None and bound else ()
        return self._scopes

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

    def pending(self) -> Sequence[PodRecord]:
        """Return the members that want a node, in the order in which they are tried."""
        if self._pending is None:
            waiting = (each for each in self.members if each.status is PodStatus.PENDING)
            self._pending = sorted(waiting, key=_turn)
        return self._pending

    def lacking(self) -> list[PodRecord]:
        """Return pending members, as many as must still be placed; fewer if there are not enough."""
        return self._some_of(self.pending(), self._shortfall())

    def quorums(self, giving_up: Iterable[PodRecord] = ()) -> list[list[PodRecord]]:
        """Return which pending members would satisfy it, the smallest set first; ``giving_up`` count among them."""
        if self.gang is None:
            return []
        free = list(giving_up)
        lost = Counter(self.part_of(record.key) for record in free)
        ways = choices(self.gang.root, lambda part: self._placed(part) - lost[part.name], self._available)
        candidates = sorted((*self.pending(), *free), key=_turn)
        return [self._some_of(candidates, wanted) for wanted in ways]

    def _some_of(self, candidates: Iterable[PodRecord], wanted: dict[str, int]) -> list[PodRecord]:
        """Return the first so many candidates of each part."""
        left = dict(wanted)
        found = []
        for record in candidates:
            part = self.part_of(record.key)
            if left.get(part, 0) > 0:
                left[part] -= 1
                found.append(record)
        return found

    @property
    def has_choices(self) -> bool:
        """Tell whether there are several ways to place it: other domains, or other parts that suffice as well."""
        return self.gang is not None and (self.gang.root.bound_to_domains or self.gang.root.may_leave_out)

    def others_than(self, refused: PodRecord, kind: Callable[[PodRecord], Hashable]) -> Sequence[PodRecord]:
        """Note that a member fits nowhere; return the pending ones of another ``kind``, if they could make the quorum.

        Members of one kind and one part get the same answers.
        """

        def own(record: PodRecord) -> Hashable:
            return self.part_of(record.key), kind(record)

        if own(refused) in self.refused_kinds and self._others is not None:
            return self._others
        self.refused_kinds.add(own(refused))
        others = [record for record in self.pending() if own(record) not in self.refused_kinds]
        hopeful = Counter(self.part_of(record.key) for record in others)
        enough = self.gang is not None and is_satisfied(
            self.gang.root, lambda part: self._placed(part) + hopeful[part.name]
        )
        self._others = others if enough else []
        return self._others

    def scopes_of(self, pod: Key) -> list[DomainScope]:
        """Return the scopes a member is in, the widest first."""
        if not self.scopes:
            return []
        part = self.part_of(pod)
        return [scope for scope in self.scopes if part in scope.parts]

    def is_surplus(self, pod: Key) -> bool:
        """Tell whether a pod's part of the group has its minimum while other parts have not."""
        part = self.gang.pod_sets.get(self.part_of(pod)) if self.gang is not None else None
        return part is not None and self._placed(part) >= part.min_member and not self.satisfied

    def leave_domains(self) -> None:
        """Forget the domains in which no member has a node: another one may be better the next time."""
        held = self._entry.number(ACTIVE_ALLOCATED).keys()
        kept = [scope.name for scope in self.scopes if scope.name in self.domains and scope.parts & held]
        self.domains = {name: self.domains[name] for name in kept}

    def start(self) -> list[Pod]:
        """Note that a member was bound; if it is the first, return the pods that start with it, else none."""
        if self._started:
            return []
        self._started = True
        return [record.pod for record in self.members if record.status in ACTIVE_ALLOCATED]

    def begin_anew(self) -> None:
        """Forget what was tried: it was rejected, or has what it needs."""
        self.domains_tried.clear()
        self.refused_kinds.clear()
        self._others = None
        self.rearranged = False
        self.chosen = frozenset()

    def _placed(self, part: PodSet) -> int:
        if self._assigned_by_part is None:
            self._assigned_by_part = self._entry.number(ACTIVE_ALLOCATED)
        return self._assigned_by_part.get(part.name, 0)

    def _available(self, part: PodSet) -> int:
        if self._available_by_part is None:
            self._available_by_part = self._entry.number(_AVAILABLE)
        return self._available_by_part.get(part.name, 0)

    def _shortfall(self) -> dict[str, int]:
        return shortfall(self.gang.root, self._placed, self._available) if self.gang is not None else {}

    # -- kept by the book --------------------------------------------------------------------------------------------

    def define(self, terms: GroupTerms) -> None:
        """Take in that the group's object appeared, changed or is gone."""
        gang, self.terms = self.gang, terms
        self._others = None
        self.refusal = self.refusal if gang is not None else ""
        self.created = seconds(gang.created) if gang is not None else self.created
        self._scopes = None

    def take_out(self, record: PodRecord) -> None:
        """Stop counting a pod as it was."""
        self._forget_counts()
        self.assigned -= record.status in ACTIVE_ALLOCATED
        self.bound -= record.status in PLACED
        self.gated -= record.status is PodStatus.GATED
        if record.status is PodStatus.PENDING:
            self._last_priority = self.priority
            priority = record.pod.priority
            self._priorities[priority] -= 1
            if not self._priorities[priority]:
                del self._priorities[priority]

    def put_in(self, record: PodRecord) -> None:
        """Count a pod as it is."""
        self._forget_counts()
        if not self.assigned and record.status in ACTIVE_ALLOCATED - PLACED:
            self._started = False  # the first member that is given a node
        self.assigned += record.status in ACTIVE_ALLOCATED
        self.bound += record.status in PLACED
        self.gated += record.status is PodStatus.GATED
        if record.status is PodStatus.PENDING:
            self._priorities[record.pod.priority] += 1

    def _forget_counts(self) -> None:
        self._assigned_by_part = self._available_by_part = self._pending = self._others = None


def _turn(record: PodRecord) -> tuple[int, float, Key]:
    return -record.pod.priority, seconds(record.created), record.key


def seconds(moment: datetime | None) -> float:
    """Return a time as a number to sort by; an unknown one comes first."""
    return moment.timestamp() if moment is not None else 0.0
