"""The shape of a gang: its floor, its sub-groups and where the pod at hand belongs."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from spinney.api import labels as marks
from spinney.api.core import Pod
from spinney.gangs.tree import TopologyConstraintInfo
from spinney.grouping.rules import PodRole
from spinney.grouping.terms import RuleRefused, whole_number

REQUIRED_LEVEL: Final = "kai.scheduler/topology-required-placement"
PREFERRED_LEVEL: Final = "kai.scheduler/topology-preferred-placement"
MOST_PARTS: Final = 10_000
"""How many parts a role may be split or cut into."""
REMEMBERED: Final = 32
"""Of how many roles the parts are remembered."""


@dataclass(frozen=True)
class SubGroupShape:
    """Part of a gang: a leaf counts pods (``min_member``), a parent the sub-groups in it (``min_sub_group``)."""

    name: str
    min_member: int | None = None
    min_sub_group: int | None = None
    parent: str | None = None
    topology: TopologyConstraintInfo | None = None
    counts: bool = True
    """Whether it is needed now; one that starts later is not."""


@dataclass(frozen=True)
class Shape:
    """What a workload needs, and where one of its pods belongs."""

    min_member: int | None = None
    """How many pods are needed; ``None`` where sub-groups are counted instead."""
    min_sub_group: int | None = None
    """How many of the sub-groups at the top must be satisfied; ``None``: all."""
    sub_groups: tuple[SubGroupShape, ...] = ()
    role: str | None = None
    """The leaf that the pod belongs to."""
    alone: bool = False
    """The pod is a gang of its own."""
    starts_later: bool = False
    """The pod belongs to a part that starts later than others, so that it changes what the gang needs."""
    problems: tuple[str, ...] = ()
    finished_counted: bool = False
    """Whether pods that have finished are not in ``min_member`` any more: the workload itself counts them."""


@dataclass(frozen=True)
class RoleInstance:
    """A role of one workload: with a name, and with numbers for its terms."""

    role: PodRole
    name: str
    labels: Mapping[str, str] | None
    """How its pods are recognised; ``None``: they are what is left."""
    replicas: int = 0
    floor: int = 0
    groups: int = 1
    """How many equal groups it is split into."""
    starts_later: bool = False
    counts: bool = True
    """Whether it is needed now."""
    template: Mapping[str, str] | None = None
    """The annotations of its pod template."""

    @property
    def total(self) -> int:
        """Return how many pods it needs altogether."""
        return self.floor * self.groups

    @cached_property
    def sub_groups(self) -> tuple[SubGroupShape, ...]:
        """Return the sub-groups that the role is: itself, or a parent and its equal groups."""
        try:
            topology = role_topology(self.template or {}, named=self.role.named_topology)
        except RuleRefused as error:
            raise RuleRefused(f"role {self.name}: {error}") from error
        if self.role.split is None:
            return (SubGroupShape(self.name, min_member=self.floor, topology=topology, counts=self.counts),)
        leaves = (
            SubGroupShape(
                self.part(index), min_member=self.floor, parent=self.name, topology=topology, counts=self.counts
            )
            for index in range(self.groups)
        )
        return (SubGroupShape(self.name, min_sub_group=self.groups, counts=self.counts), *leaves)

    def part(self, index: int) -> str:
        """Return what one of the equal groups is called."""
        return f"{self.name}-replica-{index}"


def role_topology(annotations: Mapping[str, str], *, named: bool) -> TopologyConstraintInfo | None:
    """Return the constraint that a pod template asks for: it needs a topology and a level."""
    name = annotations.get(marks.KAI_TOPOLOGY, "")
    required, preferred = annotations.get(REQUIRED_LEVEL, ""), annotations.get(PREFERRED_LEVEL, "")
    if not required and not preferred:
        return None
    if not name:
        if named:
            level = REQUIRED_LEVEL if required else PREFERRED_LEVEL
            raise RuleRefused(f"annotation {level} without {marks.KAI_TOPOLOGY}; expected the name of a topology")
        return None
    return TopologyConstraintInfo(name, required, preferred)


def pod_number(pod: Pod, label: str) -> int | None:
    """Return the number that a label of a pod carries; raises :class:`RuleRefused` if it is none, or negative."""
    text = pod.metadata.labels.get(label)
    if text is None:
        return None
    number = whole_number(text, f"label {label} of the pod")
    if number < 0:
        raise RuleRefused(f"label {label} of the pod: found {number}, expected at least 0")
    return number
