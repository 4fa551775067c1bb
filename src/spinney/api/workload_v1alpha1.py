"""Native gangs of Kubernetes 1.35 (``scheduling.k8s.io/v1alpha1 Workload``).

Groups are items of the Workload's list, fixed once created. A pod joins by ``spec.workloadRef``; every replica key
makes a gang of its own under the same policy. There is no status.
"""

from typing import Final

from spinney.api.meta import Object
from spinney.api.resource import Resource
from spinney.api.struct import Struct

WORKLOAD: Final = Resource("scheduling.k8s.io", "v1alpha1", "Workload", "workloads")


class ControllerReference(Struct, frozen=True, kw_only=True):
    """The object a workload was made for."""

    api_group: str = ""
    kind: str
    name: str


class BasicPolicy(Struct, frozen=True, kw_only=True):
    """Pods are placed one by one."""


class GangPolicy(Struct, frozen=True, kw_only=True):
    """At least ``min_count`` pods are placed, or none."""

    min_count: int


class PodGroupPolicy(Struct, frozen=True, kw_only=True):
    """Exactly one of the two."""

    basic: BasicPolicy | None = None
    gang: GangPolicy | None = None


class PodGroup(Struct, frozen=True, kw_only=True):
    """A group inside a Workload."""

    name: str
    policy: PodGroupPolicy


class WorkloadSpec(Struct, frozen=True, kw_only=True):
    """The groups, one to eight."""

    controller_ref: ControllerReference | None = None
    pod_groups: tuple[PodGroup, ...]


class Workload(Object, of=WORKLOAD, frozen=True, kw_only=True):
    """Groups of pods and how each is scheduled."""

    spec: WorkloadSpec
