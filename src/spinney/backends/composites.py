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
    builder, whole = _Tree(gang, priority_class, topology), gang.metadata.name
    root = builder.root()
    inner = root.composite_pod_group_templates
    return [
        builder.workload(root),
        builder.composite(whole, root, None),
        *(builder.composite(each.name, each, whole) for each in inner),
        *(builder.leaf(each, whole) for each in root.pod_group_templates),
        *(builder.leaf(each, parent.name) for parent in inner for each in parent.pod_group_templates),
    ]


class _Tree:
    """The parts of one tree: templates first, which the Workload lists, then an object for each."""

    def __init__(self, gang: PodGang, priority_class: str, topology: bool) -> None:
        self._gang = gang
        self._priority = priority_class
        self._topology = topology

    def root(self) -> v1beta1.CompositePodGroupTemplate:
        """Return the template that needs all its children: groups, and sets of them with a constraint of their own."""
        spec = self._gang.spec
        groups = {group.name: self._template(group) for group in spec.pod_groups}
        inner = tuple(
            v1beta1.CompositePodGroupTemplate(
                name=config.name,
                scheduling_policy=_all_of(len(config.pod_group_names)),
                scheduling_constraints=self._constraints(config.topology_constraint),
                priority_class_name=self._priority,
                pod_group_templates=tuple(groups.pop(name) for name in config.pod_group_names if name in groups),
            )
            for config in spec.topology_constraint_group_configs
        )
        return v1beta1.CompositePodGroupTemplate(
            name=ROOT,
            scheduling_policy=_all_of(len(inner) + len(groups)),
            scheduling_constraints=self._constraints(spec.topology_constraint),
            disruption_mode=v1beta1.DisruptionMode(all=v1beta1.DisruptAll()),
            priority_class_name=self._priority,
            pod_group_templates=tuple(groups.values()),
            composite_pod_group_templates=inner,
        )

    def workload(self, root: v1beta1.CompositePodGroupTemplate) -> tuple[Resource, Struct]:
        """Return the Workload with the templates of the whole tree."""
        name, resource = self._gang.metadata.name, v1beta1.WORKLOAD_V1ALPHA3
        reference = v1alpha1.ControllerReference(api_group=POD_GANG.group, kind=POD_GANG.kind, name=name)
        spec = v1beta1.WorkloadSpec(controller_ref=reference, composite_pod_group_templates=(root,))
        return resource, v1beta1.Workload(api_version=resource.api_version, metadata=self._metadata(name), spec=spec)

    def composite(
        self, part: str, template: v1beta1.CompositePodGroupTemplate, parent: str | None
    ) -> tuple[Resource, Struct]:
        spec = v1beta1.CompositePodGroupSpec(
            parent_composite_pod_group_name=None if parent is None else name_in_tree(parent, self._gang),
            workload_ref=self._reference(template.name),
            scheduling_policy=template.scheduling_policy,
            scheduling_constraints=template.scheduling_constraints,
            disruption_mode=template.disruption_mode,
            priority_class_name=self._priority,
        )
        return v1beta1.COMPOSITE_POD_GROUP, v1beta1.CompositePodGroup(metadata=self._metadata(part), spec=spec)

    def leaf(self, template: v1beta1.PodGroupTemplate, parent: str) -> tuple[Resource, Struct]:
        spec = v1beta1.PodGroupSpec(
            parent_composite_pod_group_name=name_in_tree(parent, self._gang),
            workload_ref=self._reference(template.name),
            scheduling_policy=template.scheduling_policy,
            scheduling_constraints=template.scheduling_constraints,
            priority_class_name=self._priority,
        )
        return v1beta1.POD_GROUP, v1beta1.PodGroup(metadata=self._metadata(template.name), spec=spec)

    def _template(self, group: PodGroup) -> v1beta1.PodGroupTemplate:
        return v1beta1.PodGroupTemplate(
            name=group.name,
            scheduling_policy=v1alpha2.SchedulingPolicy(gang=v1alpha1.GangPolicy(min_count=max(1, group.min_replicas))),
            scheduling_constraints=self._constraints(group.topology_constraint),
            priority_class_name=self._priority,
        )

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
