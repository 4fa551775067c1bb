"""Resource sharing (DRA): which ResourceClaims exist for a PodCliqueSet, and which of them a pod uses.

A sharer is listed on the set, a scaling group or a clique, with a scope: ``AllReplicas`` is one claim per owner,
``PerReplica`` one per replica of the owner. Claims exist before the pods that use them.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from spinney.api import labels as marks
from spinney.api.grove import ResourceSharing
from spinney.operator.desired import labels, names
from spinney.operator.desired.layout import CliquePlace, Layout

ALL_REPLICAS = "AllReplicas"


@dataclass(frozen=True)
class ClaimPlan:
    """A ResourceClaim that must exist: its name, the template it is made from, who owns it and its labels."""

    name: str
    template: str
    template_namespace: str | None
    owner: Literal["PodCliqueSet", "PodCliqueScalingGroup", "PodClique"]
    labels: dict[str, str]


def claims_of_set(layout: Layout) -> list[ClaimPlan]:
    """Return the claims the set itself owns."""
    common = labels.component(layout.name, labels.RESOURCE_CLAIM, layout.name)
    sharers = layout.pcs.spec.template.resource_sharing
    return _plans(
        layout.name, "PodCliqueSet", sharers, range(layout.replicas), common=common, label=marks.REPLICA_INDEX
    )


def claims_of_group(layout: Layout, i: int, group: str, replicas: int) -> list[ClaimPlan]:
    """Return the claims of one scaling group with that many replicas."""
    owner = names.scaling_group(layout.name, i, group)
    common = labels.component(layout.name, labels.RESOURCE_CLAIM, owner) | {
        marks.REPLICA_INDEX: str(i),
        marks.SCALING_GROUP: owner,
    }
    sharers = layout.group_configs[group].resource_sharing
    label = marks.SCALING_GROUP_REPLICA_INDEX
    return _plans(owner, "PodCliqueScalingGroup", sharers, range(replicas), common=common, label=label)


def claims_of_clique(place: CliquePlace, pod_indexes: Iterable[int]) -> list[ClaimPlan]:
    """Return the claims of one PodClique whose pods have these indexes."""
    common = labels.component(place.pcs, labels.RESOURCE_CLAIM, place.name) | {
        marks.REPLICA_INDEX: str(place.replica),
        marks.POD_CLIQUE: place.name,
    }
    sharers = place.template.resource_sharing
    return _plans(place.name, "PodClique", sharers, sorted(pod_indexes), common=common, label=marks.POD_INDEX)


def claims_of_pod(layout: Layout, place: CliquePlace, pod_index: int) -> list[str]:
    """Return the claims a pod uses, widest owner first, shared ones before its own."""
    of_set = _matching(layout.pcs.spec.template.resource_sharing, place)
    found = [_claim(layout.name, sharer, place.replica) for sharer in of_set]
    if place.group is not None:
        group = place.group
        found += [
            _claim(group.scaling_group, s, group.replica) for s in _matching(group.config.resource_sharing, place)
        ]
    return found + [_claim(place.name, s, pod_index) for s in _shared_first(place.template.resource_sharing)]


def _plans(
    owner: str,
    kind: Literal["PodCliqueSet", "PodCliqueScalingGroup", "PodClique"],
    sharers: Sequence[ResourceSharing],
    indexes: Iterable[int],
    *,
    common: dict[str, str],
    label: str,
) -> list[ClaimPlan]:
    plans: list[ClaimPlan] = []
    spread = list(indexes)
    for sharer in sharers:
        if sharer.scope == ALL_REPLICAS:
            name = names.claim_for_all(owner, sharer.name)
            plans.append(ClaimPlan(name, sharer.name, sharer.namespace, kind, common))
            continue
        for index in spread:
            name = names.claim_for_replica(owner, index, sharer.name)
            marked = common | {label: str(index)}
            plans.append(ClaimPlan(name, sharer.name, sharer.namespace, kind, marked))
    return plans


def _matching(sharers: Sequence[ResourceSharing], place: CliquePlace) -> list[ResourceSharing]:
    """Return the sharers whose filter lets the place in; without a filter all are in."""
    group = place.group.config.name if place.group is not None else None
    return [
        sharer
        for sharer in _shared_first(sharers)
        if sharer.filter is None
        or place.template.name in sharer.filter.child_clique_names
        or group in sharer.filter.child_scaling_group_names
    ]


def _shared_first(sharers: Sequence[ResourceSharing]) -> list[ResourceSharing]:
    return sorted(sharers, key=lambda sharer: sharer.scope != ALL_REPLICAS)


def _claim(owner: str, sharer: ResourceSharing, index: int) -> str:
    if sharer.scope == ALL_REPLICAS:
        return names.claim_for_all(owner, sharer.name)
    return names.claim_for_replica(owner, index, sharer.name)
