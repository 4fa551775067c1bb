"""The tree of a gang: which pods must be placed together, how many of them, and where.

A gang is a tree. Its leaves are *pod sets*: interchangeable pods with a minimum. Its inner nodes are *group sets*: a
number of members of which some, or all, must be satisfied. Every node of the tree may carry a topology constraint that
holds for all pods below it. Pod set names are unique in a gang. Trees are values; who is in a pod set and how far it
has come is kept elsewhere.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property, lru_cache
from itertools import islice
from typing import Final, NamedTuple

import msgspec

from spinney.api.meta import Metadata

DEFAULT_POD_SET: Final = "default"
DEEPEST: Final = 64
"""How many levels of groups there may be: a tree is walked from its root, call by call."""
NON_PREEMPTIBLE_PRIORITY: Final = 100
"""From this priority on a gang that does not say so itself is not preemptible."""


@dataclass(frozen=True, slots=True)
class TopologyConstraintInfo:
    """Pods must lie in one domain of the required level, and had better lie in one of the preferred level.

    Levels are node label keys of the named topology, or their aliases; empty means unconstrained.
    """

    topology: str
    required: str = ""
    preferred: str = ""
    kind: str = ""
    """The kind of object the topology is looked for first; empty where the name says it all."""


@dataclass(frozen=True)
class PodSet:
    """Interchangeable pods of which at least ``min_member`` must be placed."""

    name: str
    min_member: int = 1
    topology: TopologyConstraintInfo | None = None

    @property
    def minimum(self) -> int:
        """Return how many pods satisfy the set."""
        return self.min_member

    @property
    def fewest(self) -> int:
        """Return how many pods satisfy the set."""
        return max(self.min_member, 0)

    @property
    def may_leave_out(self) -> bool:
        """Pods are no members that could be left out."""
        return False

    @property
    def bound_to_domains(self) -> bool:
        """Tell whether it must lie in one domain."""
        return self.topology is not None and bool(self.topology.required)

    def pod_sets(self) -> Iterator["PodSet"]:
        """Return the leaves below, which is this one."""
        yield self

    def parts(self) -> Iterator["Member"]:
        """Return what the tree consists of from here down, which is this one."""
        yield self


class GroupSet(msgspec.Struct, frozen=True, dict=True):
    """Members of which at least ``min_groups`` must be satisfied; ``None`` means all."""

    name: str
    members: tuple["Member", ...] = ()
    min_groups: int | None = None
    topology: TopologyConstraintInfo | None = None

    @property
    def minimum(self) -> int:
        """Return how many members satisfy the set."""
        return len(self.members) if self.min_groups is None else self.min_groups

    @cached_property
    def fewest(self) -> int:
        """Return how many pods satisfy the set at the least, worked out once for each part of a tree."""
        return sum(sorted([member.fewest for member in self.members])[: self.minimum])

    @cached_property
    def may_leave_out(self) -> bool:
        """Tell whether it is satisfied without some of its members, or one of them without some of its own."""
        return self.minimum < len(self.members) or any(member.may_leave_out for member in self.members)

    @cached_property
    def bound_to_domains(self) -> bool:
        """Tell whether it, or a part of it, must lie in one domain."""
        required = self.topology is not None and bool(self.topology.required)
        return required or any(member.bound_to_domains for member in self.members)

    @cached_property
    def divided(self) -> bool:
        """Tell whether a part of it has a topology constraint of its own."""
        return any(part.topology is not None for member in self.members for part in member.parts())

    def pod_sets(self) -> Iterator[PodSet]:
        """Return the leaves below, in order."""
        for member in self.members:
            yield from member.pod_sets()

    def parts(self) -> Iterator["Member"]:
        """Return what the tree consists of from here down, each before what is below it."""
        yield self
        for member in self.members:
            yield from member.parts()


Member = PodSet | GroupSet
"""A node of the tree."""


def required_of_all(root: GroupSet) -> TopologyConstraintInfo | None:
    """Return the outermost required constraint that holds for every pod below ``root``, if there is one."""
    member: Member = root
    while True:
        if member.topology is not None and member.topology.required:
            return member.topology
        if isinstance(member, PodSet) or len(member.members) != 1:
            return None
        member = member.members[0]


class GangKey(NamedTuple):
    """Which gang: the kind of object that defines it, and its name."""

    source: str
    namespace: str
    name: str

    @classmethod
    def of(cls, source: str, metadata: Metadata) -> "GangKey":
        """Return what identifies the gang of an object of a source."""
        return cls(source, metadata.namespace or "", metadata.name)

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, kw_only=True)
class Gang:
    """A gang and what is known about it as a whole."""

    key: GangKey
    root: GroupSet
    uid: str = ""
    queue: str = ""
    priority: int = 0
    priority_class: str = ""
    preemptible: bool = True
    disrupted_whole: bool = False
    """Preemption takes all of its pods or none; else it goes down to its minimum, one by one, before it goes whole."""
    created: datetime | None = None
    last_start: datetime | None = None
    last_eviction: datetime | None = None
    stale_since: datetime | None = None
    staleness_grace: timedelta | None = None
    """How long it may stay below its minimum; ``None``: as the scheduler is configured; negative: for ever."""
    preemption_delay: timedelta | None = None
    preempts: bool = True
    """Others may be disturbed for it; its object, or its priority class, may say Never."""
    checkpoint_grace: timedelta | None = None
    """It is asked before it is evicted, and given so long to checkpoint; ``None``: it says nothing."""
    checkpoints_on_sigterm: bool = False
    """It is not asked, as it checkpoints when its containers are told to end, and loses nothing."""
    last_checkpoint: datetime | None = None
    min_runtime: timedelta | None = None
    """How long it wants to run before it is disturbed."""
    mark_unschedulable: bool = True
    owned_by_operator: bool = False
    """An operator ends this gang when it is broken; the scheduler does not."""
    problem: str = ""
    """Why the gang cannot be scheduled whatever happens in the cluster; empty if it can."""
    anchor: GangKey | None = None
    """The gang whose pods decide the domain of a required constraint both have at their root."""
    other_pods: str | None = None
    """The pod set in which pods count that name none of its own; ``None``: they count in none."""

    @property
    def name(self) -> str:
        """Return the name of the object that defines the gang."""
        return self.key.name

    @property
    def namespace(self) -> str:
        """Return the namespace of the object that defines the gang."""
        return self.key.namespace

    @cached_property
    def pod_sets(self) -> dict[str, PodSet]:
        """Return the leaves by name, in tree order."""
        return {pod_set.name: pod_set for pod_set in self.root.pod_sets()}

    def pod_set_of(self, named: str) -> str:
        """Return the pod set in which a pod counts that names one."""
        return named if self.other_pods is None or named in self.pod_sets else self.other_pods


def is_satisfied(member: Member, count: Callable[[PodSet], int]) -> bool:
    """Tell whether a gang, or a part of one, has what it needs, where ``count`` says how many pods of a set count.

    This is the only definition of satisfaction: with placed pods as the count it says whether a gang may start, with
    existing ones whether it is complete enough to be tried, with running ones whether it is broken.
    """
    while not isinstance(member, PodSet):
        members, needed = member.members, member.min_groups
        if needed is None:
            needed = len(members)
        if needed <= 0:
            return True
        if needed > len(members):
            return False
        if len(members) > 1:
            return _are_satisfied(members, needed, count)
        member = members[0]
    return count(member) >= member.min_member


def is_satisfied_by(member: Member, numbers: Mapping[str, int]) -> bool:
    """Tell the same where so many pods of each set count."""
    return is_satisfied(member, lambda pod_set: numbers.get(pod_set.name, 0))


def _are_satisfied(members: Iterable[Member], needed: int, count: Callable[[PodSet], int]) -> bool:
    """Tell whether so many of the members are satisfied; no more are looked at than it takes to know."""
    found = (child for child in members if is_satisfied(child, count))
    return sum(1 for _ in islice(found, needed)) == needed


@lru_cache(maxsize=4096)
def single(pod_set: PodSet, *, topology: TopologyConstraintInfo | None = None) -> GroupSet:
    """Return the tree of a gang that consists of one pod set; gangs that are alike share it."""
    return GroupSet(name="", members=(pod_set,), topology=topology)
