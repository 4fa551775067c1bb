"""The labels and annotations of generated objects."""

from collections.abc import Mapping

from spinney.api import labels as marks
from spinney.operator.desired.layout import CliquePlace

PODCLIQUE_OF_SET = "pcs-podclique"
PODCLIQUE_OF_SCALING_GROUP = "pcsg-podclique"
SCALING_GROUP = "pcs-podcliquescalinggroup"
PODGANG = "podgang"
HEADLESS_SERVICE = "pcs-headless-service"
ROLE = "pod-role"
ROLE_BINDING = "pod-role-binding"
SERVICE_ACCOUNT = "pod-service-account"
TOKEN_SECRET = "pod-sa-token-secret"  # noqa: S105 - the name of a component
AUTOSCALER = "pcs-hpa"
RESOURCE_CLAIM = "resource-claim"
COMPUTE_DOMAIN = "pcs-computedomain"

NEVER_MIRRORED = frozenset({"kubectl.kubernetes.io/last-applied-configuration"})


def managed(pcs: str) -> dict[str, str]:
    """Return what every object generated for a PodCliqueSet carries, and selects all of them."""
    return {marks.MANAGED_BY: marks.MANAGED_BY_GROVE, marks.PART_OF: pcs}


def component(pcs: str, kind: str, name: str) -> dict[str, str]:
    """Return the labels of a generated object of one kind."""
    return managed(pcs) | {marks.COMPONENT: kind, marks.APP_NAME: name.replace(":", "-")}


def replica_selector(pcs: str, i: int) -> dict[str, str]:
    """Return what selects the pods of one replica; the headless service uses it."""
    return managed(pcs) | {marks.REPLICA_INDEX: str(i)}


def of_clique(place: CliquePlace, template_hash: str) -> dict[str, str]:
    """Return the labels of a PodClique: the template's, overridden by ours."""
    labels = dict(place.template.labels)
    kind = PODCLIQUE_OF_SET if place.group is None else PODCLIQUE_OF_SCALING_GROUP
    labels |= component(place.pcs, kind, place.name)
    labels |= {
        marks.POD_GANG: place.gang,
        marks.REPLICA_INDEX: str(place.replica),
        marks.POD_TEMPLATE_HASH: template_hash,
    }
    if place.base_gang is not None:
        labels[marks.BASE_POD_GANG] = place.base_gang
    if place.group is not None:
        labels[marks.SCALING_GROUP] = place.group.scaling_group
        labels[marks.SCALING_GROUP_REPLICA_INDEX] = str(place.group.replica)
    return labels


def of_pod(clique_name: str, clique_labels: Mapping[str, str], pod_index: int) -> dict[str, str]:
    """Return the labels of a pod: all of its PodClique's, and which pod of it this is."""
    return {**clique_labels, marks.POD_CLIQUE: clique_name, marks.POD_INDEX: str(pod_index)}


def mirrored(of_set: Mapping[str, str]) -> dict[str, str]:
    """Return the labels or annotations of a PodCliqueSet that its gangs carry too, for schedulers to read."""
    return {
        key: value
        for key, value in of_set.items()
        if not key.startswith(marks.GROVE_PREFIX) and key not in NEVER_MIRRORED
    }


def selector(labels: Mapping[str, str]) -> str:
    """Return an equality selector as the scale subresource publishes it."""
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items()))
