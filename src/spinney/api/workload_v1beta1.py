"""Native gangs of Kubernetes 1.37: ``scheduling.k8s.io/v1beta1``, and composites from ``v1alpha3``.

The two versions share their Workload and PodGroup; CompositePodGroup, a gang of gangs, is served by ``v1alpha3`` only.
``minCount`` of a gang may change while it lives; the rest is fixed. A PodGroup needs no Workload, a composite does.
"""

from typing import Final

from spinney.api.meta import Condition, Object
from spinney.api.resource import Resource
from spinney.api.struct import Struct
from spinney.api.workload_v1alpha1 import BasicPolicy, ControllerReference
from spinney.api.workload_v1alpha2 import (
    GroupResourceClaim,
    PodGroupStatus,
    SchedulingConstraints,
    SchedulingPolicy,
)

WORKLOAD: Final = Resource("scheduling.k8s.io", "v1beta1", "Workload", "workloads")
POD_GROUP: Final = Resource("scheduling.k8s.io", "v1beta1", "PodGroup", "podgroups")
WORKLOAD_V1ALPHA3: Final = Resource("scheduling.k8s.io", "v1alpha3", "Workload", "workloads")
COMPOSITE_POD_GROUP: Final = Resource("scheduling.k8s.io", "v1alpha3", "CompositePodGroup", "compositepodgroups")

INITIALLY_SCHEDULED: Final = "PodGroupInitiallyScheduled"
DISRUPTION_TARGET: Final = "DisruptionTarget"
MAX_TEMPLATES: Final = 8
MAX_DEPTH: Final = 4


class DisruptSingle(Struct, frozen=True, kw_only=True):
    """Pods are evicted one by one."""


class DisruptAll(Struct, frozen=True, kw_only=True):
    """The group is evicted whole."""


class DisruptionMode(Struct, frozen=True, kw_only=True):
    """Exactly one of the two."""

    single: DisruptSingle | None = None
    all: DisruptAll | None = None


class CompositeGangPolicy(Struct, frozen=True, kw_only=True):
    """At least ``min_group_count`` child groups are placed, or none."""

    min_group_count: int


class CompositeSchedulingPolicy(Struct, frozen=True, kw_only=True):
    """Exactly one of the two."""

    basic: BasicPolicy | None = None
    gang: CompositeGangPolicy | None = None


class _Placement(Struct, frozen=True, kw_only=True):
    """What a group and a group of groups say of how they are placed, beside their policy."""

    scheduling_constraints: SchedulingConstraints | None = None
    disruption_mode: DisruptionMode | None = None
    priority_class_name: str = ""
    priority: int | None = None
    preemption_policy: str | None = None


class PodGroupTemplate(_Placement, frozen=True, kw_only=True):
    """A group as written in a Workload."""

    name: str
    scheduling_policy: SchedulingPolicy
    resource_claims: tuple[GroupResourceClaim, ...] = ()


class CompositePodGroupTemplate(_Placement, frozen=True, kw_only=True):
    """A group of groups as written in a Workload; four levels deep at most."""

    name: str
    scheduling_policy: CompositeSchedulingPolicy
    pod_group_templates: tuple[PodGroupTemplate, ...] = ()
    composite_pod_group_templates: tuple["CompositePodGroupTemplate", ...] = ()


class WorkloadSpec(Struct, frozen=True, kw_only=True):
    """Templates of either kind, not both; at most eight."""

    controller_ref: ControllerReference | None = None
    pod_group_templates: tuple[PodGroupTemplate, ...] = ()
    composite_pod_group_templates: tuple[CompositePodGroupTemplate, ...] = ()


class Workload(Object, of=WORKLOAD, frozen=True, kw_only=True):
    """Templates of pod groups."""

    spec: WorkloadSpec


class WorkloadReference(Struct, frozen=True, kw_only=True):
    """The template a group follows."""

    workload_name: str
    template_name: str


class PodGroupSpec(_Placement, frozen=True, kw_only=True):
    """A gang: policy, constraints, priority, and the composite it is part of."""

    parent_composite_pod_group_name: str | None = None
    workload_ref: WorkloadReference | None = None
    scheduling_policy: SchedulingPolicy
    resource_claims: tuple[GroupResourceClaim, ...] = ()


class PodGroup(Object, of=POD_GROUP, frozen=True, kw_only=True):
    """A gang of pods."""

    spec: PodGroupSpec
    status: PodGroupStatus = PodGroupStatus()


class CompositePodGroupSpec(_Placement, frozen=True, kw_only=True):
    """A gang of gangs."""

    parent_composite_pod_group_name: str | None = None
    workload_ref: WorkloadReference
    scheduling_policy: CompositeSchedulingPolicy


class CompositePodGroupStatus(Struct, frozen=True, kw_only=True):
    """State of a composite."""

    conditions: tuple[Condition, ...] = ()


class CompositePodGroup(Object, of=COMPOSITE_POD_GROUP, frozen=True, kw_only=True):
    """Pod groups, or further composites, that are placed together."""

    spec: CompositePodGroupSpec
    status: CompositePodGroupStatus = CompositePodGroupStatus()
