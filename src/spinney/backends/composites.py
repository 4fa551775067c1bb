"""Gangs as trees of native groups: Kubernetes 1.37's composite pod groups (alpha).

A flat native gang counts one minimum and has one topology key for all. A composite has a pod group for every group of
the gang, each with its own minimum, below one root; groups that share a topology constraint have a composite of their
own in between. All pods are inside, so one gated pod holds the whole tree: they are released together.
"""

from typing import Final

from spinney.api import workload_v1alpha1 as v1alpha1
from spinney.api import workload_v1alpha2 as v1alpha2
from spinney.api import workload_v1beta1 as v1beta1
from spinney.api.meta import ObjectMeta
from spinney.api.podgang import POD_GANG, GangTopologyConstraint, PodGang, PodGroup
from spinney.api.resource import Resource
from spinney.api.struct import Struct
from spinney.backends.ensuring import metadata_for
from spinney.backends.native_gangs import incarnation_of

KINDS: Final = (v1beta1.POD_GROUP, v1beta1.COMPOSITE_POD_GROUP, v1beta1.WORKLOAD_V1ALPHA3)
"""What a tree is made of, in the order in which a former one is taken down."""
FLAGS: Final = (
    "--feature-gates=GenericWorkload=true,TopologyAwareWorkloadScheduling=true,CompositePodGroup=true "
    "--runtime-config=scheduling.k8s.io/v1beta1=true,scheduling.k8s.io/v1alpha3=true"
)
ROOT: Final = "gang"
"""The name of the root template inside the Workload."""


def fits(gang: PodGang) -> bool:
    """Tell whether a gang can be a tree; a Workload holds at most eight templates on each level."""
    return len(gang.spec.pod_groups) <= v1beta1.MAX_TEMPLATES


def name_in_tree(part: str, gang: PodGang) -> str:
    """Return the native object of a part of a gang in its present incarnation."""
    return f"{part}-{incarnation_of(gang)}"


def tree(gang: PodGang, priority_class: str, *, topology: bool) -> list[tuple[Resource, Struct]]:
    """Return everything a gang consists of, parents before children."""
    builder = _Tree(gang, priority_class, topology)
    return [builder.workload(), builder.root(), *builder.inner(), *builder.leaves()]


class _Tree:
    """The parts of one tree, each as template and as object."""

    def __init__(self, gang: PodGang, priority_class: str, topology: bool) -> None:
        self._gang = gang
        self._priority = priority_class
        self._topology = topology
        self._configs = gang.spec.topology_constraint_group_configs
        self._parents = {name: config.name for config in self._configs for name in config.pod_group_names}

    def workload(self) -> tuple[Resource, Struct]:
        """Return the Workload with the templates of the whole tree."""
        gang = self._gang
        inner = tuple(
            v1beta1.CompositePodGroupTemplate(
                name=config.name,
                scheduling_policy=_all_of(len(config.pod_group_names)),
                scheduling_constraints=self._constraints(config.topology_constraint),
                priority_class_name=self._priority,
                pod_group_templates=tuple(
                    self._template(group) for group in gang.spec.pod_groups if self._parent(group) == config.name
                ),
            )
            for config in self._configs
        )
        root = v1beta1.CompositePodGroupTemplate(
            name=ROOT,
            scheduling_policy=_all_of(self._children()),
            scheduling_constraints=self._constraints(gang.spec.topology_constraint),
            disruption_mode=v1beta1.DisruptionMode(all=v1beta1.DisruptAll()),
            priority_class_name=self._priority,
            pod_group_templates=tuple(
                self._template(group) for group in gang.spec.pod_groups if self._parent(group) is None
            ),
            composite_pod_group_templates=inner,
        )
        reference = v1alpha1.ControllerReference(api_group=POD_GANG.group, kind=POD_GANG.kind, name=gang.metadata.name)
        spec = v1beta1.WorkloadSpec(controller_ref=reference, composite_pod_group_templates=(root,))
        resource = v1beta1.WORKLOAD_V1ALPHA3
        workload = v1beta1.Workload(
            api_version=resource.api_version, metadata=self._metadata(gang.metadata.name), spec=spec
        )
        return resource, workload

    def root(self) -> tuple[Resource, Struct]:
        """Return the composite that needs all its children."""
        return v1beta1.COMPOSITE_POD_GROUP, v1beta1.CompositePodGroup(
            metadata=self._metadata(self._gang.metadata.name),
            spec=v1beta1.CompositePodGroupSpec(
                workload_ref=self._reference(ROOT),
                scheduling_policy=_all_of(self._children()),
                scheduling_constraints=self._constraints(self._gang.spec.topology_constraint),
                disruption_mode=v1beta1.DisruptionMode(all=v1beta1.DisruptAll()),
                priority_class_name=self._priority,
            ),
        )

    def inner(self) -> list[tuple[Resource, Struct]]:
        """Return a composite for each set of groups that shares a topology constraint."""
        return [
            (
                v1beta1.COMPOSITE_POD_GROUP,
                v1beta1.CompositePodGroup(
                    metadata=self._metadata(config.name),
                    spec=v1beta1.CompositePodGroupSpec(
                        parent_composite_pod_group_name=name_in_tree(self._gang.metadata.name, self._gang),
                        workload_ref=self._reference(config.name),
                        scheduling_policy=_all_of(len(config.pod_group_names)),
                        scheduling_constraints=self._constraints(config.topology_constraint),
                        priority_class_name=self._priority,
                    ),
                ),
            )
            for config in self._configs
        ]

    def leaves(self) -> list[tuple[Resource, Struct]]:
        """Return a pod group for each group of the gang."""
        return [
            (
                v1beta1.POD_GROUP,
                v1beta1.PodGroup(
                    metadata=self._metadata(group.name),
                    spec=v1beta1.PodGroupSpec(
                        parent_composite_pod_group_name=name_in_tree(
                            self._parent(group) or self._gang.metadata.name, self._gang
                        ),
                        workload_ref=self._reference(group.name),
                        scheduling_policy=_minimum(group),
                        scheduling_constraints=self._constraints(group.topology_constraint),
                        priority_class_name=self._priority,
                    ),
                ),
            )
            for group in self._gang.spec.pod_groups
        ]

    def _template(self, group: PodGroup) -> v1beta1.PodGroupTemplate:
        return v1beta1.PodGroupTemplate(
            name=group.name,
            scheduling_policy=_minimum(group),
            scheduling_constraints=self._constraints(group.topology_constraint),
            priority_class_name=self._priority,
        )

    def _children(self) -> int:
        return len(self._configs) + sum(self._parent(group) is None for group in self._gang.spec.pod_groups)

    def _parent(self, group: PodGroup) -> str | None:
        return self._parents.get(group.name)

    def _metadata(self, part: str) -> ObjectMeta:
        return metadata_for(self._gang, name_in_tree(part, self._gang))

    def _reference(self, template: str) -> v1beta1.WorkloadReference:
        name = name_in_tree(self._gang.metadata.name, self._gang)
        return v1beta1.WorkloadReference(workload_name=name, template_name=template)

    def _constraints(self, constraint: GangTopologyConstraint | None) -> v1alpha2.SchedulingConstraints | None:
        pack = constraint.pack_constraint if constraint is not None and self._topology else None
        if pack is None or pack.required is None:
            return None
        return v1alpha2.SchedulingConstraints(topology=(v1alpha2.TopologyKey(key=pack.required),))


def _all_of(children: int) -> v1beta1.CompositeSchedulingPolicy:
    return v1beta1.CompositeSchedulingPolicy(gang=v1beta1.CompositeGangPolicy(min_group_count=max(1, children)))


def _minimum(group: PodGroup) -> v1alpha2.SchedulingPolicy:
    return v1alpha2.SchedulingPolicy(gang=v1alpha1.GangPolicy(min_count=max(1, group.min_replicas)))
