"""What an object uses of the resources that quotas name.

Every object counts as one of its kind (``count/widgets.example.com``). Pods use what their containers ask for and are
held to, unless they have ended; claims use storage, or devices by their class; services use ports of nodes.
"""

from spinney.api.quantity import Quantity
from spinney.api.struct import JSON
from spinney.server.quota.amounts import amounts, of_pod, total

PODS, CLAIMS, SERVICES, DEVICE_CLAIMS = "pods", "persistentvolumeclaims", "services", "resourceclaims.resource.k8s.io"
UNCOUNTED = frozenset(("events", "bindings"))
NEEDED_OF_CONTAINERS = ("cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory")

_ONE = Quantity.of(1)
COMPUTE = ("cpu", "memory", "ephemeral-storage")
_OF_PODS = frozenset(
    ("pods", "count/pods", *COMPUTE, *(f"{field}.{name}" for field in ("requests", "limits") for name in COMPUTE))
)
_OF_CLAIMS = ("persistentvolumeclaims", "requests.storage")
_OF_SERVICES = frozenset(("services", "count/services", "services.nodeports", "services.loadbalancers"))
_ALIASES = frozenset(("configmaps", "resourcequotas", "replicationcontrollers", "secrets"))
_BY_CLASS = ".storageclass.storage.k8s.io/"
_DEVICES = ".deviceclass.resource.k8s.io/devices"
_DEVICES_AT_MOST = 32  # that one claim may get
_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"


def measures(resource: str, storage: str) -> bool:
    """Tell whether a resource that quotas name is used by objects of a collection."""
    if storage == PODS:
        prefixed = resource.startswith(("hugepages-", "requests.hugepages-"))
        return resource in _OF_PODS or prefixed or (resource.startswith("requests.") and is_extended(resource))
    if storage == SERVICES:
        return resource in _OF_SERVICES
    if resource == f"count/{storage}":
        return True
    if storage == CLAIMS:
        return resource in _OF_CLAIMS or resource.endswith(tuple(_BY_CLASS + each for each in _OF_CLAIMS))
    if storage == DEVICE_CLAIMS:
        return resource.endswith(_DEVICES)
    return storage in _ALIASES and resource == storage


def used_by(storage: str, obj: JSON) -> dict[str, Quantity]:
    """Return what an object uses."""
    counted = {f"count/{storage}": _ONE}
    match storage:
        case "pods":
            return counted | _used_by_pod(obj)
        case "services":
            return counted | _used_by_service(obj.get("spec") or {})
        case "persistentvolumeclaims":
            return counted | _used_by_claim(obj)
        case "resourceclaims.resource.k8s.io":
            return counted | _used_by_device_claim(obj.get("spec") or {})
    return counted | ({storage: _ONE} if storage in _ALIASES else {})


def of_resources(requests: dict[str, Quantity], limits: dict[str, Quantity]) -> dict[str, Quantity]:
    """Return requests and limits by the names that quotas give them."""
    found: dict[str, Quantity] = {}
    for name, quantity in requests.items():
        if name in COMPUTE or name.startswith("hugepages-"):
            found[name] = found[f"requests.{name}"] = quantity
        elif is_extended(name):
            found[f"requests.{name}"] = quantity
    return found | {f"limits.{name}": limits[name] for name in COMPUTE if name in limits}


def _used_by_pod(pod: JSON) -> dict[str, Quantity]:
    if (pod.get("status") or {}).get("phase") in {"Succeeded", "Failed"}:
        return {}
    spec = pod.get("spec") or {}
    overhead = amounts(spec.get("overhead"))
    requests, limits = of_pod(spec, "requests"), of_pod(spec, "limits")
    held = {name: quantity for name, quantity in overhead.items() if name in limits}
    return {"pods": _ONE} | of_resources(total(requests, overhead), total(limits, held))


def _used_by_service(spec: JSON) -> dict[str, Quantity]:
    ports = spec.get("ports") or ()
    balanced = spec.get("type") == "LoadBalancer"
    opened = len(ports) if balanced or spec.get("type") == "NodePort" else 0
    if balanced and spec.get("allocateLoadBalancerNodePorts") is False:
        opened = sum(1 for port in ports if port.get("nodePort"))
    return {
        "services": _ONE,
        "services.nodeports": Quantity.of(opened),
        "services.loadbalancers": Quantity.of(int(balanced)),
    }


def _used_by_claim(claim: JSON) -> dict[str, Quantity]:
    spec = claim.get("spec") or {}
    found = {"persistentvolumeclaims": _ONE}
    asked = amounts((spec.get("resources") or {}).get("requests")).get("storage")
    if asked is not None:
        given = amounts((claim.get("status") or {}).get("allocatedResources")).get("storage", asked)
        found["requests.storage"] = Quantity.of(max(asked, given).value, asked.format)
    annotations = claim["metadata"].get("annotations") or {}
    storage_class = annotations.get(_CLASS_ANNOTATION) or spec.get("storageClassName")
    if storage_class:
        found |= {f"{storage_class}{_BY_CLASS}{name}": quantity for name, quantity in found.items()}
    return found


def _used_by_device_claim(spec: JSON) -> dict[str, Quantity]:
    found: dict[str, Quantity] = {}
    for request in (spec.get("devices") or {}).get("requests") or ():
        wanted: dict[str, Quantity] = {}
        for each in request.get("firstAvailable") or [request.get("exactly") or {}]:
            name = f"{each.get('deviceClassName', '')}{_DEVICES}"
            count = _DEVICES_AT_MOST if each.get("allocationMode") == "All" else int(each.get("count") or 0)
            wanted[name] = max(wanted.get(name, Quantity(0)), Quantity.of(count))
        found = total(found, wanted)
    return found


def is_extended(name: str) -> bool:
    """Tell whether a resource belongs to a device: it has a domain, and not Kubernetes' own."""
    return "/" in name and "kubernetes.io/" not in name
