"""Kubernetes' own gangs, in the three forms that releases 1.35 to 1.37 serve.

1.36 and 1.37 have the same idea, a PodGroup that pods name, and differ in the fields of it; 1.35 had another. All make
one native group per gang, whose name carries the gang's incarnation: pods that are still terminating count towards a
group's quorum, and a protection finalizer keeps an old group alive, so a recycled gang must not meet its former self.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from spinney.api import workload_v1alpha1 as v1alpha1
from spinney.api import workload_v1alpha2 as v1alpha2
from spinney.api import workload_v1beta1 as v1beta1
from spinney.api.core import PodSpec
from spinney.api.podgang import POD_GANG, PodGang
from spinney.api.resource import Resource
from spinney.api.struct import JSON, Struct
from spinney.backends import additions
from spinney.backends.ensuring import metadata_for
from spinney.backends.membership import minimum_count

GROUP_NAME: Final = "gang"
"""The name of the one group inside a 1.35 Workload."""
INCARNATION_LENGTH: Final = 5


@dataclass(frozen=True)
class GangTraits:
    """What a native group needs to know beyond the gang."""

    priority_class: str
    topology_key: str | None


def incarnation_of(gang: PodGang) -> str:
    """Return what tells the lives of a gang apart: in the first one, its uid."""
    return gang.metadata.annotations.get(additions.INCARNATION) or (gang.metadata.uid or "")[:INCARNATION_LENGTH]


@dataclass(frozen=True, kw_only=True)
class NativeGangs(ABC):
    """One release's way of saying "these pods together"."""

    release: str
    resource: Resource
    gates: str
    """The feature gates, without which the API server drops the reference and kube-scheduler ignores it."""
    topology: bool
    """Whether a group can be confined to one domain, where the cluster has that switched on."""
    mutable_minimum: bool

    @property
    def flags(self) -> str:
        """Return what must be set on the API server."""
        return f"--feature-gates={self.gates} --runtime-config={self.resource.api_version}=true"

    def group_name(self, gang: PodGang) -> str:
        """Return the native group of a gang in its present incarnation."""
        return f"{gang.metadata.name}-{incarnation_of(gang)}"

    @abstractmethod
    def group(self, gang: PodGang, traits: GangTraits) -> Struct:
        """Return the native group of a gang."""

    @abstractmethod
    def join(self, pod_spec: JSON, group: str) -> None:
        """Make a pod a member."""

    @abstractmethod
    def joined(self, pod_spec: PodSpec) -> str | None:
        """Return the group that a pod names."""


@dataclass(frozen=True, kw_only=True)
class PodGroups(NativeGangs):
    """A PodGroup of its own, which pods name in ``spec.schedulingGroup``: the form since 1.36."""

    group_type: Callable[..., Struct]
    spec_type: Callable[..., Struct]
    disruption: Struct | None
    """How the group is evicted, where disruption and priority are the group's and not each pod's."""

    def group(self, gang: PodGang, traits: GangTraits) -> Struct:
        fields: dict[str, Any] = {"scheduling_policy": v1alpha2.SchedulingPolicy(gang=_policy(gang))}
        if traits.topology_key is not None:
            topology = (v1alpha2.TopologyKey(key=traits.topology_key),)
            fields["scheduling_constraints"] = v1alpha2.SchedulingConstraints(topology=topology)
        if self.disruption is not None:
            fields |= {"disruption_mode": self.disruption, "priority_class_name": traits.priority_class}
        return self.group_type(metadata=metadata_for(gang, self.group_name(gang)), spec=self.spec_type(**fields))

    def join(self, pod_spec: JSON, group: str) -> None:
        pod_spec["schedulingGroup"] = {"podGroupName": group}

    def joined(self, pod_spec: PodSpec) -> str | None:
        return None if pod_spec.scheduling_group is None else pod_spec.scheduling_group.pod_group_name


class Workloads(NativeGangs):
    """A group inside a Workload, which pods name in ``spec.workloadRef``: the form of 1.35."""

    def group(self, gang: PodGang, traits: GangTraits) -> Struct:
        policy = v1alpha1.PodGroupPolicy(gang=_policy(gang))
        return v1alpha1.Workload(
            metadata=metadata_for(gang, self.group_name(gang)),
            spec=v1alpha1.WorkloadSpec(
                controller_ref=v1alpha1.ControllerReference(
                    api_group=POD_GANG.group, kind=POD_GANG.kind, name=gang.metadata.name
                ),
                pod_groups=(v1alpha1.PodGroup(name=GROUP_NAME, policy=policy),),
            ),
        )

    def join(self, pod_spec: JSON, group: str) -> None:
        pod_spec["workloadRef"] = {"name": group, "podGroup": GROUP_NAME}

    def joined(self, pod_spec: PodSpec) -> str | None:
        return None if pod_spec.workload_ref is None else pod_spec.workload_ref.name


def _policy(gang: PodGang) -> v1alpha1.GangPolicy:
    return v1alpha1.GangPolicy(min_count=max(1, minimum_count(gang)))


NEWEST_FIRST: Final[tuple[NativeGangs, ...]] = (
    PodGroups(
        release="1.37",
        resource=v1beta1.POD_GROUP,
        gates="GenericWorkload=true",
        topology=True,
        mutable_minimum=True,
        group_type=v1beta1.PodGroup,
        spec_type=v1beta1.PodGroupSpec,
        disruption=v1beta1.DisruptionMode(all=v1beta1.DisruptAll()),
    ),
    PodGroups(
        release="1.36",
        resource=v1alpha2.POD_GROUP,
        gates="GenericWorkload=true,GangScheduling=true",
        topology=True,
        mutable_minimum=False,
        group_type=v1alpha2.PodGroup,
        spec_type=v1alpha2.PodGroupSpec,
        disruption=None,
    ),
    Workloads(
        release="1.35",
        resource=v1alpha1.WORKLOAD,
        gates="GenericWorkload=true,GangScheduling=true",
        topology=False,
        mutable_minimum=False,
    ),
)
