"""Native gangs of Kubernetes 1.36 (``scheduling.k8s.io/v1alpha2``): Workload as template, PodGroup as the gang.

A pod joins by ``spec.schedulingGroup.podGroupName``. Everything in a PodGroup's spec is fixed once created.
"""

from typing import Final

from spinney.api.meta import Condition, Object
from spinney.api.resource import Resource
from spinney.api.struct import Struct
from spinney.api.workload_v1alpha1 import BasicPolicy, ControllerReference, GangPolicy

WORKLOAD: Final = Resource("scheduling.k8s.io", "v1alpha2", "Workload", "workloads")
POD_GROUP: Final = Resource("scheduling.k8s.io", "v1alpha2", "PodGroup", "podgroups")

SCHEDULED: Final = "PodGroupScheduled"


class SchedulingPolicy(Struct, frozen=True, kw_only=True):
    """Exactly one of the two."""

    basic: BasicPolicy | None = None
    gang: GangPolicy | None = None


class TopologyKey(Struct, frozen=True, kw_only=True):
    """A node label; one value of it must hold all pods of the group."""

    key: str


class SchedulingConstraints(Struct, frozen=True, kw_only=True):
    """Where a group may lie; at most one topology key."""

    topology: tuple[TopologyKey, ...] = ()


class GroupResourceClaim(Struct, frozen=True, kw_only=True):
    """A claim shared by the group: an existing one, or one made from a template."""

    name: str
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class GroupResourceClaimStatus(Struct, frozen=True, kw_only=True):
    """Which claim was made for the group."""

    name: str
    resource_claim_name: str | None = None


class _PlacedGroup(Struct, frozen=True, kw_only=True):
    """How a group is placed; ``disruption_mode`` is ``Pod`` or ``PodGroup``."""

    scheduling_policy: SchedulingPolicy
    scheduling_constraints: SchedulingConstraints | None = None
    resource_claims: tuple[GroupResourceClaim, ...] = ()
    disruption_mode: str | None = None
    priority_class_name: str = ""
    priority: int | None = None


class PodGroupTemplate(_PlacedGroup, frozen=True, kw_only=True):
    """A group as written in a Workload."""

    name: str


class WorkloadSpec(Struct, frozen=True, kw_only=True):
    """The templates, at most eight."""

    controller_ref: ControllerReference | None = None
    pod_group_templates: tuple[PodGroupTemplate, ...] = ()


class Workload(Object, of=WORKLOAD, frozen=True, kw_only=True):
    """Templates of pod groups."""

    spec: WorkloadSpec


class WorkloadTemplateReference(Struct, frozen=True, kw_only=True):
    """A template of a Workload."""

    workload_name: str
    pod_group_template_name: str


class PodGroupTemplateReference(Struct, frozen=True, kw_only=True):
    """Where a group's fields were copied from."""

    workload: WorkloadTemplateReference | None = None


class PodGroupSpec(_PlacedGroup, frozen=True, kw_only=True):
    """A gang: policy, constraints and priority."""

    pod_group_template_ref: PodGroupTemplateReference | None = None


class PodGroupStatus(Struct, frozen=True, kw_only=True):
    """Whether the gang was ever scheduled; it never goes back."""

    conditions: tuple[Condition, ...] = ()
    resource_claim_statuses: tuple[GroupResourceClaimStatus, ...] = ()


class PodGroup(Object, of=POD_GROUP, frozen=True, kw_only=True):
    """A gang of pods."""

    spec: PodGroupSpec
    status: PodGroupStatus = PodGroupStatus()
