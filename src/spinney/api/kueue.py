"""Kueue's queues and Workloads (``kueue.x-k8s.io/v1beta2``), as far as the advisor reads them.

Kueue before 0.15 serves ``v1beta1`` alone. What is read here differs in one field: the cohort of a ClusterQueue.
"""

from dataclasses import replace
from typing import Final

from spinney.api.meta import Condition, ProjectedObject
from spinney.api.quantity import InvalidQuantity, RawQuantity, milli
from spinney.api.resource import Resource
from spinney.api.struct import Struct

CLUSTER_QUEUE: Final = Resource("kueue.x-k8s.io", "v1beta2", "ClusterQueue", "clusterqueues", namespaced=False)
COHORT: Final = Resource("kueue.x-k8s.io", "v1beta2", "Cohort", "cohorts", namespaced=False)
LOCAL_QUEUE: Final = Resource("kueue.x-k8s.io", "v1beta2", "LocalQueue", "localqueues")
WORKLOAD: Final = Resource("kueue.x-k8s.io", "v1beta2", "Workload", "workloads")
FORMER: Final = {
    current: replace(current, version="v1beta1") for current in (CLUSTER_QUEUE, COHORT, LOCAL_QUEUE, WORKLOAD)
}
"""Each kind as older releases serve it."""

QUOTA_RESERVED: Final = "QuotaReserved"
ADMITTED: Final = "Admitted"
EVICTED: Final = "Evicted"
FINISHED: Final = "Finished"


class ResourceQuota(Struct, frozen=True, kw_only=True):
    """How much of one resource of a flavour."""

    name: str = ""
    nominal_quota: RawQuantity = 0
    borrowing_limit: RawQuantity | None = None

    def __post_init__(self) -> None:
        for field, given in (("nominalQuota", self.nominal_quota), ("borrowingLimit", self.borrowing_limit or 0)):
            try:
                milli(given)
            except InvalidQuantity as error:
                raise ValueError(f"{field}: {error}") from error


class FlavorQuotas(Struct, frozen=True, kw_only=True):
    """The quotas of one flavour."""

    name: str = ""
    resources: tuple[ResourceQuota, ...] = ()


class ResourceGroup(Struct, frozen=True, kw_only=True):
    """Resources that are given from the same flavour."""

    flavors: tuple[FlavorQuotas, ...] = ()


class ClusterQueueSpec(Struct, frozen=True, kw_only=True):
    """What a ClusterQueue may give, and with whom it shares."""

    resource_groups: tuple[ResourceGroup, ...] = ()
    cohort_name: str = ""
    cohort: str = ""
    """The same in ``v1beta1``."""

    @property
    def shares_with(self) -> str:
        """Return the name of the cohort; empty if it is in none."""
        return self.cohort_name or self.cohort


class ClusterQueue(ProjectedObject, of=CLUSTER_QUEUE, frozen=True, kw_only=True):
    """A pool of resources with quotas."""

    spec: ClusterQueueSpec = ClusterQueueSpec()


class CohortSpec(Struct, frozen=True, kw_only=True):
    """What a Cohort has beside what its members have."""

    parent_name: str = ""
    resource_groups: tuple[ResourceGroup, ...] = ()


class Cohort(ProjectedObject, of=COHORT, frozen=True, kw_only=True):
    """ClusterQueues, and other Cohorts, that may borrow from one another."""

    spec: CohortSpec = CohortSpec()


class LocalQueueSpec(Struct, frozen=True, kw_only=True):
    """Where a LocalQueue leads."""

    cluster_queue: str = ""


class LocalQueue(ProjectedObject, of=LOCAL_QUEUE, frozen=True, kw_only=True):
    """What workloads of a namespace name."""

    spec: LocalQueueSpec = LocalQueueSpec()


class WorkloadSpec(Struct, frozen=True, kw_only=True):
    """Where a workload waits."""

    queue_name: str = ""
    active: bool = True


class WorkloadStatus(Struct, frozen=True, kw_only=True):
    """How far Kueue has come with a workload."""

    conditions: tuple[Condition, ...] = ()


class Workload(ProjectedObject, of=WORKLOAD, frozen=True, kw_only=True):
    """What Kueue admits: a Job, a pod, a group of pods."""

    spec: WorkloadSpec = WorkloadSpec()
    status: WorkloadStatus = WorkloadStatus()
