"""The names of topology domains (``grove.io/v1alpha1 ClusterTopologyBinding``).

An administrator orders the levels of a cluster from broad to narrow, each a domain name and the node label that tells
its instances apart. A scheduler that keeps a topology object of its own gets one made from this, unless a binding says
which existing one to compare with.
"""

from typing import Annotated, Final

from spinney.api.fields import LABEL_KEY_PATTERN, Int64, described, list_map, schema
from spinney.api.grove_status import Conditions
from spinney.api.meta import Object
from spinney.api.resource import Resource
from spinney.api.struct import Struct
from spinney.api.topology_constraint import Domain

CLUSTER_TOPOLOGY_BINDING: Final = Resource(
    "grove.io", "v1alpha1", "ClusterTopologyBinding", "clustertopologybindings", namespaced=False, short_names=("ct",)
)


class TopologyLevel(Struct, frozen=True, kw_only=True):
    """One level: what it is called, and the node label whose values are its domains."""

    domain: Domain
    key: Annotated[str, schema({"minLength": 1, "maxLength": 63, "pattern": LABEL_KEY_PATTERN})]


class SchedulerTopologyBinding(Struct, frozen=True, kw_only=True):
    """A topology object that is kept outside Spinney for a scheduler; it is compared, never written."""

    scheduler_name: str
    topology_reference: str


class ClusterTopologyBindingSpec(Struct, frozen=True, kw_only=True):
    """Levels from broad to narrow, and schedulers whose topology is managed elsewhere."""

    levels: Annotated[tuple[TopologyLevel, ...], schema({"minItems": 1})]
    scheduler_topology_bindings: tuple[SchedulerTopologyBinding, ...] = ()


class SchedulerTopologyStatus(Struct, frozen=True, kw_only=True):
    """Whether a scheduler's topology agrees with the levels."""

    scheduler_name: str
    topology_reference: str
    in_sync: bool
    scheduler_backend_topology_observed_generation: (
        Annotated[Int64, described("Generation of the scheduler's object when it was compared.")] | None
    ) = None
    message: str | None = None


class ClusterTopologyBindingStatus(Struct, frozen=True, kw_only=True):
    """State of a ClusterTopologyBinding."""

    observed_generation: Int64 | None = None
    conditions: Conditions = ()
    scheduler_topology_statuses: Annotated[tuple[SchedulerTopologyStatus, ...], list_map("schedulerName")] = ()


class ClusterTopologyBinding(Object, of=CLUSTER_TOPOLOGY_BINDING, frozen=True, kw_only=True):
    """The topology of a cluster, by names that workloads may use."""

    spec: ClusterTopologyBindingSpec
    status: ClusterTopologyBindingStatus = ClusterTopologyBindingStatus()
