"""Warnings about objects of built-in kinds that are accepted, but deprecated or surprising in a part."""

from collections.abc import Callable, Iterator, Mapping

from spinney.api.struct import JSON
from spinney.server.pods.warnings import (
    DEPRECATED_LABELS,
    fractional,
    name_warnings,
    pod_warnings,
    template_warnings,
)

_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"


def warnings_about(storage: str, obj: JSON, old: JSON | None) -> list[str]:
    """Return what to tell; of an update only where the wanted state changed, and never of a pod's."""
    teller = _TELLERS.get(storage)
    if teller is None:
        return []
    if old is not None and (storage == "pods" or obj.get("spec") == old.get("spec")):
        return []
    return list(teller(obj))


def _of_template(obj: JSON) -> Iterator[str]:
    if obj.get("kind") in {"CronJob", "Job", "ReplicationController", "ReplicaSet"}:
        yield from name_warnings(obj, "Pod names and hostnames")
    spec, path = obj.get("spec") or {}, "spec."
    if "jobTemplate" in spec:
        spec, path = (spec["jobTemplate"] or {}).get("spec") or {}, "spec.jobTemplate.spec."
    yield from template_warnings(spec.get("template") or {}, f"{path}template.")


def _of_service(obj: JSON) -> Iterator[str]:
    spec = obj.get("spec") or {}
    if not spec.get("externalIPs"):
        return
    if spec.get("type") == "ExternalName":
        yield 'spec.externalIPs is ignored when spec.type is "ExternalName"'
    else:
        yield "spec.externalIPs is deprecated and may no longer be implemented in some clusters"


def _of_claim(obj: JSON) -> Iterator[str]:
    if _CLASS_ANNOTATION in (obj["metadata"].get("annotations") or {}):
        told = 'deprecated since v1.8; use "storageClassName" attribute instead'
        yield f"metadata.annotations[{_CLASS_ANNOTATION}]: {told}"
    requests = ((obj.get("spec") or {}).get("resources") or {}).get("requests") or {}
    yield from fractional(requests, ("storage",), "spec.resources.requests")


def _of_volume(obj: JSON) -> Iterator[str]:
    if (obj.get("spec") or {}).get("persistentVolumeReclaimPolicy") == "Recycle":
        advice = "Instead, the recommended approach is to use dynamic provisioning."
        yield f"spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. {advice}"


def _of_node(obj: JSON) -> Iterator[str]:
    spec = obj.get("spec") or {}
    if spec.get("configSource"):
        yield "spec.configSource: the feature is no longer supported"
    if spec.get("externalID"):
        yield "spec.externalID: this field is deprecated, and is unused by Kubernetes"


def _of_ingress(obj: JSON) -> Iterator[str]:
    name = "kubernetes.io/ingress.class"
    if name in (obj["metadata"].get("annotations") or {}):
        yield f"annotation \"{name}\" is deprecated, please use 'spec.ingressClassName' instead"


def _of_storage_class(obj: JSON) -> Iterator[str]:
    for index, topology in enumerate(obj.get("allowedTopologies") or ()):
        for position, expression in enumerate(topology.get("matchLabelExpressions") or ()):
            told = DEPRECATED_LABELS.get(expression.get("key", ""))
            if told:
                yield f"allowedTopologies[{index}].matchLabelExpressions[{position}].key: {told}"


_TELLERS: Mapping[str, Callable[[JSON], "Iterator[str] | list[str]"]] = {
    "pods": pod_warnings,
    "services": _of_service,
    "persistentvolumeclaims": _of_claim,
    "persistentvolumes": _of_volume,
    "nodes": _of_node,
    "ingresses.networking.k8s.io": _of_ingress,
    "storageclasses.storage.k8s.io": _of_storage_class,
    **dict.fromkeys(
        (
            "deployments.apps",
            "replicasets.apps",
            "statefulsets.apps",
            "daemonsets.apps",
            "replicationcontrollers",
            "jobs.batch",
            "cronjobs.batch",
        ),
        _of_template,
    ),
}
