"""Grove's objects (``grove.io/v1alpha1``): what users write, and what the operator makes of it.

Users write a :class:`PodCliqueSet` (and an administrator a :class:`ClusterTopologyBinding`, see
:mod:`spinney.api.topology_binding`). The operator creates a :class:`PodClique` per clique and replica and a
:class:`PodCliqueScalingGroup` per group of cliques that scale together. Pod specs are carried verbatim. The status
types are in :mod:`spinney.api.grove_status`.
"""

from collections.abc import Mapping
from typing import Annotated, Final

from spinney.api.fields import Duration, Int32, OpenObject, described, enum, list_map, schema
from spinney.api.grove_status import PodCliqueScalingGroupStatus, PodCliqueSetStatus, PodCliqueStatus
from spinney.api.meta import Object
from spinney.api.resource import Resource
from spinney.api.struct import Struct
from spinney.api.topology_constraint import ConstraintField

POD_CLIQUE_SET: Final = Resource("grove.io", "v1alpha1", "PodCliqueSet", "podcliquesets", short_names=("pcs",))
POD_CLIQUE: Final = Resource("grove.io", "v1alpha1", "PodClique", "podcliques", short_names=("pclq",))
POD_CLIQUE_SCALING_GROUP: Final = Resource(
    "grove.io", "v1alpha1", "PodCliqueScalingGroup", "podcliquescalinggroups", short_names=("pcsg",)
)

ANY_ORDER: Final = "CliqueStartupTypeAnyOrder"
IN_ORDER: Final = "CliqueStartupTypeInOrder"
EXPLICIT: Final = "CliqueStartupTypeExplicit"
ROLLING_RECREATE: Final = "RollingRecreate"
ON_DELETE: Final = "OnDelete"

NonNegative = Annotated[Int32, schema({"minimum": 0})]


class UpdateStrategy(Struct, frozen=True, kw_only=True):
    """How pods follow a change of their template."""

    type: Annotated[str, enum(ROLLING_RECREATE, ON_DELETE, default=ROLLING_RECREATE)] | None = None


class AutoScalingConfig(Struct, frozen=True, kw_only=True):
    """The HorizontalPodAutoscaler made for a clique or a scaling group."""

    min_replicas: Annotated[Int32, described("Lower bound; the template's replicas when absent.")] | None = None
    max_replicas: Int32
    metrics: tuple[OpenObject, ...] = ()


class ResourceSharingFilter(Struct, frozen=True, kw_only=True):
    """Which children of a level use the shared claim; absent means all."""

    child_clique_names: tuple[str, ...] = ()
    child_scaling_group_names: tuple[str, ...] = ()


class ResourceSharing(Struct, frozen=True, kw_only=True):
    """A resource claim shared by the pods of a level: one for all replicas, or one for each."""

    name: Annotated[str, described("A template of resourceClaimTemplates, or a ResourceClaimTemplate object.")]
    namespace: str | None = None
    scope: Annotated[str, enum("AllReplicas", "PerReplica")]
    filter: ResourceSharingFilter | None = None


class ResourceClaimTemplateConfig(Struct, frozen=True, kw_only=True):
    """A ResourceClaimTemplate that lives inside the PodCliqueSet."""

    name: str
    template_spec: OpenObject


class PodCliqueSpec(Struct, frozen=True, kw_only=True):
    """Pods of one role: how many, how few will do, after whom they start."""

    role_name: str = ""
    pod_spec: OpenObject
    replicas: Int32 | None = None
    min_available: Annotated[Int32, described("How many pods the gang needs; replicas when absent.")] | None = None
    starts_after: tuple[str, ...] = ()
    auto_scaling_config: AutoScalingConfig | None = None

    @property
    def minimum(self) -> int:
        """Return how many pods the clique cannot do without: all its replicas where nothing is said."""
        return (self.replicas or 1) if self.min_available is None else self.min_available


class PodCliqueTemplateSpec(Struct, frozen=True, kw_only=True):
    """A clique as written in a PodCliqueSet."""

    name: str
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    topology_constraint: ConstraintField | None = None
    resource_sharing: tuple[ResourceSharing, ...] = ()
    spec: PodCliqueSpec


class _Copies:
    """What the numbers of a scaling group mean: 1 where nothing is said."""

    __slots__ = ()
    replicas: int | None
    min_available: int | None

    @property
    def copies(self) -> int:
        """Return how many replicas the scaling group is to have."""
        return 1 if self.replicas is None else self.replicas

    @property
    def minimum(self) -> int:
        """Return how many replicas of the scaling group its base gang cannot do without."""
        return 1 if self.min_available is None else self.min_available


class PodCliqueScalingGroupConfig(_Copies, Struct, frozen=True, kw_only=True):
    """Cliques that are scaled together, as written in a PodCliqueSet."""

    name: str
    clique_names: tuple[str, ...]
    annotations: Mapping[str, str] = {}
    replicas: Annotated[Int32, schema({"default": 1})] | None = None
    min_available: Annotated[Int32, schema({"default": 1})] | None = None
    scale_config: AutoScalingConfig | None = None
    resource_sharing: tuple[ResourceSharing, ...] = ()
    topology_constraint: ConstraintField | None = None


class HeadlessServiceConfig(Struct, frozen=True, kw_only=True):
    """The Service that gives the pods of a replica their DNS names."""

    publish_not_ready_addresses: Annotated[bool, schema({"default": True})] | None = None


class PodCliqueSetTemplateSpec(Struct, frozen=True, kw_only=True):
    """One replica of a PodCliqueSet."""

    cliques: Annotated[tuple[PodCliqueTemplateSpec, ...], list_map("name"), schema({"minItems": 1})]
    clique_startup_type: Annotated[str, enum(ANY_ORDER, IN_ORDER, EXPLICIT, default=ANY_ORDER)] | None = None
    priority_class_name: str | None = None
    headless_service_config: HeadlessServiceConfig | None = None
    topology_constraint: ConstraintField | None = None
    termination_delay: Duration | None = None
    resource_claim_templates: Annotated[tuple[ResourceClaimTemplateConfig, ...], list_map("name")] = ()
    resource_sharing: tuple[ResourceSharing, ...] = ()
    pod_clique_scaling_groups: Annotated[tuple[PodCliqueScalingGroupConfig, ...], list_map("name")] = ()


class PodCliqueSetSpec(Struct, frozen=True, kw_only=True):
    """How many replicas of what."""

    replicas: Annotated[NonNegative, schema({"default": 0})] | None = None
    update_strategy: UpdateStrategy | None = None
    template: PodCliqueSetTemplateSpec


class PodCliqueSet(Object, of=POD_CLIQUE_SET, frozen=True, kw_only=True):
    """A workload made of cliques of pods that are placed, started, scaled and ended as gangs."""

    spec: PodCliqueSetSpec
    status: PodCliqueSetStatus = PodCliqueSetStatus()


class PodClique(Object, of=POD_CLIQUE, frozen=True, kw_only=True):
    """One clique of one replica; made by the operator."""

    spec: PodCliqueSpec
    status: PodCliqueStatus = PodCliqueStatus()


class PodCliqueScalingGroupSpec(_Copies, Struct, frozen=True, kw_only=True):
    """How many copies of a set of cliques."""

    replicas: Annotated[Int32, schema({"default": 1})] | None = None
    min_available: Annotated[Int32, schema({"default": 1})] | None = None
    clique_names: tuple[str, ...]


class PodCliqueScalingGroup(Object, of=POD_CLIQUE_SCALING_GROUP, frozen=True, kw_only=True):
    """One scaling group of one replica; made by the operator."""

    spec: PodCliqueScalingGroupSpec
    status: PodCliqueScalingGroupStatus = PodCliqueScalingGroupStatus()
