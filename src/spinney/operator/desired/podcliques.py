"""The manifests of PodCliques and PodCliqueScalingGroups, and whether an existing one still agrees.

Both are created once and then changed field by field: ``spec.replicas`` is in other hands after creation (an
autoscaler's, a user's), and so is the status, whose writers must not hold a new template up.
"""

import msgspec

from spinney.api import labels as marks
from spinney.api.grove import (
    POD_CLIQUE_SET,
    PodClique,
    PodCliqueScalingGroup,
    PodCliqueScalingGroupSpec,
    PodCliqueSpec,
)
from spinney.api.meta import ObjectMeta, OwnerReference, owner_reference
from spinney.api.struct import JSON, to_json
from spinney.operator.desired import environment, labels, mnnvl, names, startup
from spinney.operator.desired.corrections import of_fields, of_texts
from spinney.operator.desired.layout import CliquePlace, Layout


def desired_clique(layout: Layout, place: CliquePlace, template_hash: str, owner: OwnerReference) -> PodClique:
    """Return a PodClique as it is to be created; ``owner`` is the set or the scaling group."""
    template = place.template
    spec = template.spec
    return PodClique(
        metadata=ObjectMeta(
            name=place.name,
            namespace=layout.pcs.metadata.namespace,
            labels=labels.of_clique(place, template_hash),
            annotations={key: text for key, text in template.annotations.items() if key != marks.TOPOLOGY_NAME},
            owner_references=(owner,),
        ),
        spec=PodCliqueSpec(
            role_name=spec.role_name,
            pod_spec=_pod_spec(layout, place),
            replicas=spec.replicas or 1,
            min_available=place.minimum,
            starts_after=tuple(startup.starts_after(layout, place)),
            auto_scaling_config=spec.auto_scaling_config,
        ),
    )


def correction(existing: PodClique, desired: PodClique) -> list[JSON]:
    """Return the JSON patch that gives a PodClique the desired template and leaves its replicas alone.

    With a new template, labels and annotations that it does not have go: pods get all that their PodClique has.
    """
    spec = msgspec.structs.replace(desired.spec, replicas=existing.spec.replicas)
    found, wanted = existing.metadata, desired.metadata
    renewed = found.labels.get(marks.POD_TEMPLATE_HASH) != wanted.labels.get(marks.POD_TEMPLATE_HASH)
    patch = [
        *of_texts("/metadata/labels", found.labels, wanted.labels, unwanted=found.labels if renewed else ()),
        *of_texts(
            "/metadata/annotations",
            found.annotations,
            wanted.annotations,
            unwanted=found.annotations if renewed else (),
        ),
    ]
    return patch if spec == existing.spec else patch + of_fields("/spec", to_json(existing.spec), to_json(spec))


def group_correction(existing: PodCliqueScalingGroup, desired: PodCliqueScalingGroup) -> list[JSON]:
    """Return the JSON patch that gives a scaling group the annotations its set has for it."""
    found, wanted = existing.metadata.annotations, desired.metadata.annotations
    return of_texts("/metadata/annotations", found, wanted)


def desired_scaling_group(layout: Layout, i: int, group: str) -> PodCliqueScalingGroup:
    """Return a PodCliqueScalingGroup as it is to be created."""
    config = layout.group_configs[group]
    name = names.scaling_group(layout.name, i, group)
    extra = labels.replica_selector(layout.name, i)
    return PodCliqueScalingGroup(
        metadata=ObjectMeta(
            name=name,
            namespace=layout.pcs.metadata.namespace,
            labels=labels.component(layout.name, labels.SCALING_GROUP, name) | extra,
            annotations={**mnnvl.inherited(layout), **config.annotations},
            owner_references=(owner_reference(POD_CLIQUE_SET, layout.pcs.metadata),),
        ),
        spec=PodCliqueScalingGroupSpec(
            replicas=config.copies,
            min_available=config.minimum,
            clique_names=config.clique_names,
        ),
    )


def _pod_spec(layout: Layout, place: CliquePlace) -> JSON:
    """Return the clique's pod spec with what all its pods share beyond the template; the template is left alone."""
    group = mnnvl.group_of(layout, place)
    if group is None and place.group is None:
        return place.template.spec.pod_spec
    spec = environment.copy_to_change(place.template.spec.pod_spec)
    if place.group is not None:
        environment.prepend(spec, environment.of_group_member(layout, place))
    if group is not None:
        mnnvl.inject(spec, names.compute_domain(layout.name, place.replica, group))
    return spec
