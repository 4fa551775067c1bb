"""What a pod gets when its author did not say: the defaults clients and schedulers rely on, and its first status."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal

from spinney.api.quantity import InvalidQuantity, Quantity
from spinney.api.struct import JSON, fill
from spinney.api.time import timestamp

_WORDS = {"restartPolicy": "Always", "dnsPolicy": "ClusterFirst", "schedulerName": "default-scheduler"}


def fill_pod_defaults(spec: JSON) -> None:
    """Fill in the spec of a pod, in place."""
    fill_template_defaults(spec)
    spec.setdefault("enableServiceLinks", True)
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:
        spec["serviceAccountName"] = spec["serviceAccount"] = account


def fill_template_defaults(spec: JSON) -> None:
    """Fill in a pod spec as it stands in a template, in place."""
    for name, default in _WORDS.items():
        spec[name] = spec.get(name) or default  # an empty word is none
    fill(spec, terminationGracePeriodSeconds=30, securityContext={})
    for containers in (spec.get("containers"), spec.get("initContainers")):
        for container in containers or ():
            if isinstance(container, dict):
                _fill_container(container)
    for volume in spec.get("volumes") or ():
        if isinstance(volume, dict):
            _fill_volume(volume)
    for constraint in spec.get("topologySpreadConstraints") or ():
        fill(constraint, nodeAffinityPolicy="Honor", nodeTaintsPolicy="Ignore")


def _fill_volume(volume: JSON) -> None:
    for source, defaults in _VOLUME_DEFAULTS.items():
        given = volume.get(source)
        if isinstance(given, dict):
            fill(given, **defaults)
    projected = volume.get("projected")
    if isinstance(projected, dict):
        for source in projected.get("sources") or ():
            _fill_items(source.get("downwardAPI"))
            token = source.get("serviceAccountToken")
            if isinstance(token, dict):
                token.setdefault("expirationSeconds", 3600)
    _fill_items(volume.get("downwardAPI"))
    if set(volume) == {"name"}:
        volume["emptyDir"] = {}


def _fill_items(source: Any) -> None:
    for item in (source.get("items") if isinstance(source, dict) else None) or ():
        if isinstance(item.get("fieldRef"), dict):
            item["fieldRef"].setdefault("apiVersion", "v1")


_MODE = {"defaultMode": 0o644}
_VOLUME_DEFAULTS: Mapping[str, JSON] = {
    "configMap": _MODE,
    "secret": _MODE,
    "downwardAPI": _MODE,
    "projected": _MODE,
    "hostPath": {"type": ""},
    "iscsi": {"iscsiInterface": "default"},
    "rbd": {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"},
    "azureDisk": {"cachingMode": "ReadWrite", "fsType": "ext4", "kind": "Shared", "readOnly": False},
    "scaleIO": {"storageMode": "ThinProvisioned", "fsType": "xfs"},
}


def first_status(spec: JSON, now: datetime) -> JSON:
    """Return the status of a pod that has just been created."""
    status: JSON = {"phase": "Pending", "qosClass": quality_of_service(spec)}
    if spec.get("schedulingGates"):
        status["conditions"] = [
            {
                "type": "PodScheduled",
                "status": "False",
                "reason": "SchedulingGated",
                "message": "Scheduling is blocked due to non-empty scheduling gates",
                "lastProbeTime": None,
                "lastTransitionTime": timestamp(now),
            }
        ]
    return status


def _fill_container(container: JSON) -> None:
    fill(container, terminationMessagePath="/dev/termination-log", terminationMessagePolicy="File")
    if "imagePullPolicy" not in container:
        container["imagePullPolicy"] = _pull_policy(container.get("image"))
    for port in container.get("ports") or ():
        port.setdefault("protocol", "TCP")
    for variable in container.get("env") or ():
        reference = (variable.get("valueFrom") or {}).get("fieldRef")
        if isinstance(reference, dict):
            reference.setdefault("apiVersion", "v1")
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        if isinstance(container.get(name), dict):
            _fill_probe(container[name])
    for hook in (container.get("lifecycle") or {}).values():
        _fill_http_get(hook)
    resources = container["resources"] = container.get("resources") or {}
    limits: Any = resources.get("limits")
    if limits:
        requests = resources["requests"] = resources.get("requests") or {}
        for name, quantity in limits.items():
            requests.setdefault(name, quantity)


def _fill_probe(probe: JSON) -> None:
    for name, value in (("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1), ("failureThreshold", 3)):
        if not probe.get(name):
            probe[name] = value
    _fill_http_get(probe)
    grpc = probe.get("grpc")
    if isinstance(grpc, dict):
        grpc.setdefault("service", "")


def _fill_http_get(action: Any) -> None:
    request = action.get("httpGet") if isinstance(action, dict) else None
    if isinstance(request, dict):
        fill(request, path="/", scheme="HTTP")


def _pull_policy(image: object) -> str:
    if not isinstance(image, str) or "@" in image:
        return "IfNotPresent"
    tag = image.rpartition("/")[2].partition(":")[2]
    return "Always" if tag in {"", "latest"} else "IfNotPresent"


QualityOfService = Literal["Guaranteed", "Burstable", "BestEffort"]
_COMPUTE = ("cpu", "memory")


def quality_of_service(spec: JSON) -> QualityOfService:
    """Return the class: Guaranteed if every container's cpu and memory limits equal its requests."""
    containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    guaranteed, anything = bool(containers), False
    for container in containers:
        resources = container.get("resources") or {}
        requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
        for name in _COMPUTE:
            request, limit = requests.get(name), limits.get(name)
            anything = anything or _positive(request) or _positive(limit)
            if not _positive(limit) or not _same(request, limit):
                guaranteed = False
    if not anything:
        return "BestEffort"
    return "Guaranteed" if guaranteed else "Burstable"


def _positive(quantity: object) -> bool:
    return quantity is not None and str(quantity) not in {"0", "0m"}


def _same(one: object, other: object) -> bool:
    if one == other:
        return True
    try:
        return one is not None and Quantity.parse(str(one)) == Quantity.parse(str(other))
    except InvalidQuantity:
        return False
