"""Which gang scheduling API each Kubernetes minor has, and the flags that switch it on.

Nothing of it is wire compatible between minors, and a gate that a release has removed stops its binaries at start, so
each minor names exactly its own.
"""

from dataclasses import dataclass

from spinney.api.resource import Resource


@dataclass(frozen=True)
class GangApi:
    """The gang scheduling API of one minor."""

    gates: tuple[str, ...]
    versions: tuple[str, ...]  # of scheduling.k8s.io, to be served
    group: Resource  # the object that states a gang's minimum
    pod_field: str  # the field of a pod's spec that names its gang

    @property
    def feature_gates(self) -> str:
        """Return the value of ``--feature-gates``, the same for every component."""
        return ",".join(f"{gate}=true" for gate in self.gates)

    @property
    def runtime_config(self) -> str:
        """Return the value of kube-apiserver's ``--runtime-config``."""
        return ",".join(f"scheduling.k8s.io/{version}=true" for version in self.versions)


_GANG_APIS = {
    "1.35": GangApi(
        gates=("GenericWorkload", "GangScheduling"),
        versions=("v1alpha1",),
        group=Resource("scheduling.k8s.io", "v1alpha1", "Workload", "workloads"),
        pod_field="workloadRef",
    ),
    "1.36": GangApi(
        gates=("GenericWorkload", "GangScheduling", "TopologyAwareWorkloadScheduling", "WorkloadAwarePreemption"),
        versions=("v1alpha2",),
        group=Resource("scheduling.k8s.io", "v1alpha2", "PodGroup", "podgroups"),
        pod_field="schedulingGroup",
    ),
    "1.37": GangApi(
        gates=("GenericWorkload", "TopologyAwareWorkloadScheduling", "CompositePodGroup"),
        versions=("v1beta1", "v1alpha3"),
        group=Resource("scheduling.k8s.io", "v1beta1", "PodGroup", "podgroups"),
        pod_field="schedulingGroup",
    ),
}

MINORS = tuple(_GANG_APIS)
"""The Kubernetes minors a control plane can be started of, oldest first."""


def gang_api(minor: str) -> GangApi:
    """Return the gang scheduling API of ``minor``; ``ValueError`` names the minors there are."""
    if minor not in _GANG_APIS:
        raise ValueError(f"no control plane of Kubernetes {minor!r}: there are {', '.join(MINORS)}")
    return _GANG_APIS[minor]
