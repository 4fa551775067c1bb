"""Marking objects that must not go while they are used (see :mod:`spinney.server.background.protection`)."""

from collections.abc import Mapping

from spinney.server.admission.attributes import Attributes

GROUPS, CLAIMS, VOLUMES = "podgroups.scheduling.k8s.io", "persistentvolumeclaims", "persistentvolumes"
FINALIZERS: Mapping[str, str] = {
    GROUPS: "scheduling.k8s.io/podgroup-protection",
    CLAIMS: "kubernetes.io/pvc-protection",
    VOLUMES: "kubernetes.io/pv-protection",
}


def protect(attributes: Attributes) -> None:
    """Add the finalizer to a new object of a protected kind."""
    finalizer = FINALIZERS.get(attributes.kind.storage)
    if finalizer is None or attributes.operation != "CREATE" or attributes.obj is None:
        return
    metadata = attributes.obj["metadata"]
    present = metadata.get("finalizers") or []
    if finalizer not in present:
        metadata["finalizers"] = [*present, finalizer]
