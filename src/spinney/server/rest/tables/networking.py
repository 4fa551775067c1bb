"""The columns of services, ingresses and what else describes a network."""

from datetime import datetime

from spinney.api.struct import JSON
from spinney.server.rest.tables.columns import AGE, NAME, Column, at, field, named
from spinney.server.rest.tables.workloads import equalities, selected

_SHOWN = 3  # endpoints in one cell


def _service_ports(service: JSON, _: datetime) -> str:
    shown = []
    for each in at(service, "spec.ports", ()):
        node = f":{each['nodePort']}" if each.get("nodePort") else ""
        shown.append(f"{each.get('port')}{node}/{each.get('protocol', 'TCP')}")
    return ",".join(shown) or "<none>"


def _external(service: JSON, _: datetime) -> str:
    if at(service, "spec.type") == "ExternalName":
        return str(at(service, "spec.externalName", ""))
    if at(service, "spec.type") == "LoadBalancer":
        return _addresses(service) or "<pending>"
    return ",".join(at(service, "spec.externalIPs", ())) or "<none>"


def _addresses(obj: JSON) -> str:
    found = at(obj, "status.loadBalancer.ingress", ())
    return ",".join(str(each.get("ip") or each.get("hostname") or "") for each in found)


def _hosts(ingress: JSON, _: datetime) -> str:
    return _few([str(each["host"]) for each in at(ingress, "spec.rules", ()) if each.get("host")], "*")


def _parameters(ingress_class: JSON, _: datetime) -> str:
    found = at(ingress_class, "spec.parameters")
    if not found:
        return "<none>"
    group = f".{found['apiGroup']}" if found.get("apiGroup") else ""
    return f"{found.get('kind')}{group}/{found.get('name')}"


def _subset_endpoints(endpoints: JSON, _: datetime) -> str:
    found: list[str] = []
    for subset in endpoints.get("subsets") or ():
        addresses = [str(each.get("ip")) for each in subset.get("addresses") or ()]
        ports = subset.get("ports") or ()
        found += [f"{ip}:{port.get('port')}" for port in ports for ip in addresses] if ports else addresses
    return _few(found, "<none>")


def _slice_endpoints(endpoint_slice: JSON, _: datetime) -> str:
    found = [str(ip) for each in endpoint_slice.get("endpoints") or () for ip in each.get("addresses") or ()]
    return _few(found, "<unset>")


def _slice_ports(endpoint_slice: JSON, _: datetime) -> str:
    return _few([str(each.get("port", "*")) for each in endpoint_slice.get("ports") or ()], "<unset>")


def _few(found: list[str], nothing: str) -> str:
    if not found:
        return nothing
    more = f" + {len(found) - _SHOWN} more..." if len(found) > _SHOWN else ""
    return ",".join(found[:_SHOWN]) + more


NETWORKING: dict[str, tuple[Column, ...]] = {
    "services": (
        NAME,
        field("Type", "spec.type", ""),
        Column("Cluster-IP", lambda obj, _: at(obj, "spec.clusterIP") or "<none>"),
        Column("External-IP", _external),
        Column("Port(s)", _service_ports),
        AGE,
        Column("Selector", lambda obj, _: equalities(at(obj, "spec.selector")), priority=1),
    ),
    "ingresses.networking.k8s.io": named(
        field("Class", "spec.ingressClassName"),
        Column("Hosts", _hosts),
        Column("Address", lambda obj, _: _addresses(obj)),
        Column("Ports", lambda obj, _: "80, 443" if at(obj, "spec.tls") else "80"),
    ),
    "ingressclasses.networking.k8s.io": named(
        field("Controller", "spec.controller", ""),
        Column("Parameters", _parameters),
    ),
    "networkpolicies.networking.k8s.io": named(
        Column("Pod-Selector", lambda obj, _: selected(at(obj, "spec.podSelector"))),
    ),
    "endpoints": named(Column("Endpoints", _subset_endpoints)),
    "endpointslices.discovery.k8s.io": named(
        field("AddressType", "addressType", ""),
        Column("Ports", _slice_ports),
        Column("Endpoints", _slice_endpoints),
    ),
}
