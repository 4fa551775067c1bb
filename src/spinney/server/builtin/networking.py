"""What is special about the kinds that describe a network: they are stored, there is none."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from spinney.api.field_error import FieldError, invalid, not_supported, required
from spinney.api.struct import JSON, fill
from spinney.server.kinds.kind import Behaviour

_PATH_TYPES = ("Exact", "ImplementationSpecific", "Prefix")


_SERVICE_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_OF_TYPES = {
    "externalTrafficPolicy": ("LoadBalancer", "NodePort"),
    "allocateLoadBalancerNodePorts": ("LoadBalancer",),
    "loadBalancerClass": ("LoadBalancer",),
}
_PORTS = "must be between 1 and 65535, inclusive"


class ServiceBehaviour(Behaviour):
    """A service gets a type and ports with a protocol; its addresses are given out by admission."""

    def fill_defaults(self, obj: JSON) -> None:
        spec = obj.setdefault("spec", {})
        fill(spec, type="ClusterIP", sessionAffinity="None")
        if spec["type"] != "ExternalName":
            spec.setdefault("internalTrafficPolicy", "Cluster")
        if spec["type"] in {"LoadBalancer", "NodePort"}:
            spec.setdefault("externalTrafficPolicy", "Cluster")
        if spec["type"] == "LoadBalancer":
            spec.setdefault("allocateLoadBalancerNodePorts", True)
        for port in spec.get("ports") or ():
            port.setdefault("protocol", "TCP")
            port["targetPort"] = port.get("targetPort") or port.get("port")  # 0 is how Go says nothing

    def prepare_create(self, obj: JSON, now: datetime) -> None:
        obj["status"] = {"loadBalancer": {}}

    def prepare_update(self, obj: JSON, old: JSON, subresource: str) -> None:
        """Drop what only the former type had, where it was not changed by hand."""
        spec, was = obj.get("spec") or {}, old.get("spec") or {}
        for name, types in _OF_TYPES.items():
            if spec.get("type") not in types and was.get("type") in types and spec.get(name) == was.get(name):
                spec.pop(name, None)

    def validate(self, obj: JSON, old: JSON | None, subresource: str) -> Iterator[FieldError]:
        spec = obj.get("spec") or {}
        ports = spec.get("ports") or ()
        if spec.get("type") not in _SERVICE_TYPES:
            yield not_supported("spec.type", spec.get("type"), _SERVICE_TYPES)
        if not ports and spec.get("type") != "ExternalName" and spec.get("clusterIP") != "None":
            yield required("spec.ports")
        for index, port in enumerate(ports):
            where = f"spec.ports[{index}]"
            if len(ports) > 1 and not port.get("name"):
                yield required(f"{where}.name")
            for name in ("port", "targetPort"):
                number = port.get(name)
                if isinstance(number, int) and not 1 <= number <= 65535:
                    yield invalid(f"{where}.{name}", number, _PORTS)


class EndpointsBehaviour(Behaviour):
    """Ports of endpoints have a protocol."""

    def fill_defaults(self, obj: JSON) -> None:
        for subset in obj.get("subsets") or ():
            for port in subset.get("ports") or ():
                port.setdefault("protocol", "TCP")


class EndpointSliceBehaviour(Behaviour):
    """Ports of a slice have a name, if an empty one, and a protocol."""

    def fill_defaults(self, obj: JSON) -> None:
        for port in obj.get("ports") or ():
            fill(port, name="", protocol="TCP")


class NetworkPolicyBehaviour(Behaviour):
    """A network policy is about what comes in, and about what goes out if it says something about that."""

    def fill_defaults(self, obj: JSON) -> None:
        spec = obj.setdefault("spec", {})
        if not spec.get("policyTypes"):
            spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]
        for direction in ("ingress", "egress"):
            for rule in spec.get(direction) or ():
                for port in rule.get("ports") or ():
                    port.setdefault("protocol", "TCP")


class IngressBehaviour(Behaviour):
    """An ingress leads somewhere: by rules, or to a default."""

    def prepare_create(self, obj: JSON, now: datetime) -> None:
        obj["status"] = {"loadBalancer": {}}

    def validate(self, obj: JSON, old: JSON | None, subresource: str) -> Iterator[FieldError]:
        spec = obj.get("spec") or {}
        if not spec.get("rules") and not spec.get("defaultBackend"):
            yield invalid("spec", spec, "either `defaultBackend` or `rules` must be specified")
        if spec.get("defaultBackend"):
            yield from _backend_causes(spec["defaultBackend"], "spec.defaultBackend")
        for index, rule in enumerate(spec.get("rules") or ()):
            where = f"spec.rules[{index}].http.paths"
            if "http" not in rule:
                continue
            paths = (rule.get("http") or {}).get("paths") or ()
            if not paths:
                yield required(where)
            for position, path in enumerate(paths):
                yield from _path_causes(path, f"{where}[{position}]")


def _path_causes(path: JSON, where: str) -> Iterator[FieldError]:
    kind = path.get("pathType")
    if kind is None:
        yield required(f"{where}.pathType", "pathType must be specified")
    elif kind not in _PATH_TYPES:
        yield not_supported(f"{where}.pathType", kind, _PATH_TYPES)
    elif kind != "ImplementationSpecific" and not str(path.get("path", "")).startswith("/"):
        yield invalid(f"{where}.path", path.get("path", ""), "must be an absolute path")
    yield from _backend_causes(path.get("backend") or {}, f"{where}.backend")


def _backend_causes(backend: Any, where: str) -> Iterator[FieldError]:
    service, resource = backend.get("service"), backend.get("resource")
    if service and resource:
        yield invalid(where, "", "cannot set both resource and service backends")
        return
    if resource:
        return
    if not service:
        yield invalid(where, backend, "resource or service backend is required")
        return
    if not service.get("name"):
        yield required(f"{where}.service.name")
    port = service.get("port") or {}
    if not port.get("name") and not port.get("number"):
        yield required(where, "port name or number is required")
