"""The manifest of a pod, from its PodClique.

The pod spec is the user's, verbatim, plus what makes the pod a member: gate, host name, environment, shared claims and,
where the clique starts after others, an init container that waits for them. The backend has its say afterwards.
"""

from collections.abc import Container, Iterable

from spinney.api import labels as marks
from spinney.api.grove import POD_CLIQUE, PodClique
from spinney.api.meta import owner_reference
from spinney.api.struct import JSON, to_json
from spinney.operator.configuration import InitContainer
from spinney.operator.desired import claims, environment, hashes, labels, names, startup
from spinney.operator.desired.layout import CliquePlace, Layout

POD_INFO_PATH = "/var/grove/pod-info"
TOKEN_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"  # noqa: S105 - where Kubernetes puts it


def pod_manifest(
    clique: PodClique, layout: Layout, place: CliquePlace, pod_index: int, *, name: str, waiting: InitContainer
) -> JSON:
    """Return the pod with this index; ``waiting`` is the container in which it waits for those it starts after."""
    namespace = clique.metadata.namespace or ""
    spec = environment.copy_to_change(clique.spec.pod_spec)
    spec["hostname"] = names.pod_hostname(clique.metadata.name, pod_index)
    spec["subdomain"] = names.headless_service(layout.name, place.replica)
    spec["schedulingGates"] = [{"name": marks.POD_GANG_GATE}]
    if layout.pcs.spec.template.priority_class_name and not spec.get("priorityClassName"):
        spec["priorityClassName"] = layout.pcs.spec.template.priority_class_name
    environment.prepend(spec, environment.of_pod(layout.name, place.replica, clique.metadata.name, namespace))
    _use_claims(spec, claims.claims_of_pod(layout, place, pod_index))
    if clique.spec.starts_after:
        _wait_for(spec, layout, place, waiting)
    annotations = {key: value for key, value in clique.metadata.annotations.items() if key != marks.TOPOLOGY_NAME}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": labels.of_pod(clique.metadata.name, clique.metadata.labels, pod_index),
            "annotations": annotations,
            "ownerReferences": [to_json(owner_reference(POD_CLIQUE, clique.metadata))],
        },
        "spec": spec,
    }


def pod_name(clique: PodClique, pod_index: int, life: int, taken: Container[str]) -> str:
    """Return a name for the pod with this index: the same again until ``life`` grows or the name is taken.

    Because the name follows from what has been seen, a creation repeated on a stale cache, or after an answer that
    never came, meets the pod it already made instead of making a second one.
    """
    while True:
        seed = [clique.metadata.uid, pod_index, life]
        name = f"{clique.metadata.name}-{hashes.digest(seed, 5)}"
        if name not in taken:
            return name
        life += 1


def _use_claims(spec: JSON, names_of_claims: list[str]) -> None:
    for claim in names_of_claims:
        spec.setdefault("resourceClaims", []).append({"name": claim, "resourceClaimName": claim})
        for container in environment.containers(spec):
            container.setdefault("resources", {}).setdefault("claims", []).append({"name": claim})


def _wait_for(spec: JSON, layout: Layout, place: CliquePlace, waiting: InitContainer) -> None:
    parents = startup.required_ready(layout, place)
    container: JSON = {
        "name": marks.INIT_CONTAINER,
        "image": waiting.image,
        "command": ["spinney", "wait-for"],
        "args": [f"--podcliques={name}:{minimum}" for name, minimum in parents],
        "volumeMounts": [
            {"name": marks.TOKEN_VOLUME, "mountPath": TOKEN_PATH, "readOnly": True},
            {"name": marks.POD_INFO_VOLUME, "mountPath": POD_INFO_PATH, "readOnly": True},
        ],
    }
    if waiting.image_pull_policy:
        container["imagePullPolicy"] = waiting.image_pull_policy
    container |= {"resources": waiting.resources, "securityContext": waiting.security_context}
    spec.setdefault("initContainers", []).append(container)
    _pull_with(spec, waiting.image_pull_secrets)
    gang = f"metadata.labels['{marks.POD_GANG}']"
    spec.setdefault("volumes", []).extend(
        [
            {"name": marks.TOKEN_VOLUME, "secret": {"secretName": names.token_secret(layout.name), "defaultMode": 420}},
            {
                "name": marks.POD_INFO_VOLUME,
                "downwardAPI": {
                    "items": [
                        {"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}},
                        {"path": "podgangname", "fieldRef": {"fieldPath": gang}},
                    ]
                },
            },
        ]
    )


def _pull_with(spec: JSON, secrets: Iterable[str]) -> None:
    """Have the kubelet pull with these Secrets too."""
    present = {each["name"] for each in spec.get("imagePullSecrets") or ()}
    added = [{"name": name} for name in secrets if name not in present]
    if added:
        spec["imagePullSecrets"] = [*(spec.get("imagePullSecrets") or ()), *added]
