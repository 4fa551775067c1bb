"""How many pods and gangs a PodCliqueSet comes to, and how many it may.

The numbers of a set multiply: replicas of the set, of a scaling group, of a clique. Each alone may look harmless, so
the product is bounded. It is worked out by arithmetic, never by making what it counts.
"""

from dataclasses import dataclass
from typing import Final

from spinney.api.field_error import FieldError, FieldPath, invalid
from spinney.api.grove import PodCliqueScalingGroupConfig, PodCliqueSetSpec, PodCliqueTemplateSpec

_SPEC: Final = FieldPath("spec")


@dataclass(frozen=True, slots=True)
class SizeLimits:
    """The most pods and gangs that one set may come to."""

    pods: int
    gangs: int


DEFAULT_LIMITS: Final = SizeLimits(pods=20_000, gangs=10_000)


@dataclass(frozen=True, slots=True)
class Size:
    """How many pods and gangs a set comes to."""

    pods: int
    gangs: int

    def fits(self, limits: SizeLimits) -> bool:
        """Tell whether both numbers are within their limit."""
        return self.pods <= limits.pods and self.gangs <= limits.gangs

    def excess(self, limits: SizeLimits) -> str:
        """Return which limit is exceeded, by what, and what to do."""
        found, noun, most = (
            (self.pods, "pods", limits.pods) if self.pods > limits.pods else (self.gangs, "gangs", limits.gangs)
        )
        return (
            f"the set comes to {found} {noun}, and limits.{noun}PerSet of the operator's configuration allows {most}; "
            "ask for fewer replicas, or have the limit raised"
        )


def size_of(spec: PodCliqueSetSpec) -> Size:
    """Return how many pods and gangs a set has when everything it asks for is there."""
    replicas, template = spec.replicas or 0, spec.template
    pods_of = {clique.name: pods_of_clique(clique) for clique in template.cliques}
    grouped = {name for group in template.pod_clique_scaling_groups for name in group.clique_names}
    pods = sum(count for name, count in pods_of.items() if name not in grouped)
    gangs = 1
    for group in template.pod_clique_scaling_groups:
        copies = copies_of_group(group)
        pods += copies * sum(pods_of.get(name, 0) for name in group.clique_names)
        gangs += max(0, copies - group.minimum)
    return Size(pods=replicas * pods, gangs=replicas * gangs)


def validate_size(spec: PodCliqueSetSpec, limits: SizeLimits, old: PodCliqueSetSpec | None) -> list[FieldError]:
    """Check a set against the limits; one that was stored above them may still change, and shrink, but not grow."""
    size = size_of(spec)
    before = size_of(old) if old is not None else Size(0, 0)
    if size.fits(limits) or (size.pods <= before.pods and size.gangs <= before.gangs):
        return []
    path, value = _largest(spec)
    return [invalid(path, value, size.excess(limits))]


def pods_of_clique(clique: PodCliqueTemplateSpec) -> int:
    """Return how many pods a PodClique of this template starts with."""
    return max(0, clique.spec.replicas or 1)


def copies_of_group(group: PodCliqueScalingGroupConfig) -> int:
    """Return how many replicas a scaling group starts with; never fewer than the base gang holds."""
    return max(0, group.copies, group.minimum)


def _largest(spec: PodCliqueSetSpec) -> tuple[FieldPath, int]:
    """Return the largest of the numbers that multiply, and where it stands: what a reader should look at first."""
    template = _SPEC.child("template")
    numbers = [(spec.replicas or 0, _SPEC.child("replicas"))]
    for i, group in enumerate(spec.template.pod_clique_scaling_groups):
        numbers.append((copies_of_group(group), template.child("podCliqueScalingGroups").index(i).child("replicas")))
    for i, clique in enumerate(spec.template.cliques):
        numbers.append((pods_of_clique(clique), template.child("cliques").index(i).child("spec", "replicas")))
    value, path = max(numbers, key=lambda each: each[0])
    return path, value
