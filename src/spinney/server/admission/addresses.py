"""Addresses of services: a cluster IP and node ports, free ones, as if there were a network.

Nothing listens there; but clients read them, people look for them in ``kubectl get services``, and what a user asks for
must not be another service's.
"""

import random
from collections.abc import Iterator

from spinney.api.field_error import FieldError, invalid
from spinney.api.keys import Key
from spinney.api.struct import JSON
from spinney.server.admission.attributes import Attributes
from spinney.server.exchange.status import invalid_object
from spinney.server.store import Record, Store

_SERVICES = "services"
_NETWORK = "10.96"  # of the addresses that are given out
_PORTS = range(30000, 32768)
_NODE_PORTS = ("NodePort", "LoadBalancer")
_ADDRESS = ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy")


def give_addresses(store: Store, chance: random.Random, attributes: Attributes) -> None:
    """Fill in what a service leaves open, keep what it has, and refuse what is taken."""
    obj = attributes.obj
    if attributes.kind.storage != _SERVICES or attributes.subresource or obj is None or not obj.get("spec"):
        return
    spec = obj["spec"]
    was = (attributes.old or {}).get("spec") or {}
    others = [record for record in store.records(_SERVICES) if record.key != Key(attributes.namespace, attributes.name)]
    causes = [*_give_address(spec, was, others, chance), *_give_ports(spec, was, others, chance)]
    if causes:
        raise invalid_object(attributes.kind.resource, attributes.name, causes)


def _give_address(spec: JSON, was: JSON, others: list[Record], chance: random.Random) -> Iterator[FieldError]:
    if spec.get("type") == "ExternalName":
        for name in _ADDRESS:
            spec.pop(name, None)
        return
    if was.get("type") != "ExternalName":
        for name in _ADDRESS:
            if name in was and not spec.get(name):
                spec[name] = was[name]
    address, before = spec.get("clusterIP"), was.get("clusterIP")
    taken = {record.fields[0] for record in others}
    if not address:
        address = spec["clusterIP"] = _free_address(taken, chance)
    elif before and address != before:
        yield invalid("spec.clusterIPs[0]", address, "may not change once set")
    elif address != "None" and address in taken:
        detail = f"failed to allocate IP {address}: provided IP is already allocated"
        yield invalid("spec.clusterIPs", address, detail)
    spec["clusterIPs"] = [address]
    double = address == "None" and not spec.get("selector")
    spec.setdefault("ipFamilies", ["IPv4", "IPv6"] if double else ["IPv4"])
    spec.setdefault("ipFamilyPolicy", "RequireDualStack" if double else "SingleStack")


def _free_address(taken: set[str], chance: random.Random) -> str:
    while True:
        found = f"{_NETWORK}.{chance.randrange(256)}.{chance.randrange(1, 255)}"
        if found not in taken:
            return found


def _give_ports(spec: JSON, was: JSON, others: list[Record], chance: random.Random) -> Iterator[FieldError]:
    had = {_port(port): port["nodePort"] for port in was.get("ports") or () if port.get("nodePort")}
    opens = spec.get("type") in _NODE_PORTS and spec.get("allocateLoadBalancerNodePorts") is not False
    taken: set[tuple[int, str]] | None = None
    for index, port in enumerate(spec.get("ports") or ()):
        kept, protocol = had.get(_port(port)), port.get("protocol", "TCP")
        if spec.get("type") not in _NODE_PORTS:
            if port.get("nodePort") == kept:
                port.pop("nodePort", None)
            continue
        given = port.get("nodePort")
        if not given and (kept is not None or not opens):
            if kept is not None:
                port["nodePort"] = kept
            continue
        if given is not None and given == kept:
            continue
        taken = _taken_ports(others) if taken is None else taken
        if not given:
            given = port["nodePort"] = next(
                number for number in iter(lambda: chance.choice(_PORTS), 0) if (number, protocol) not in taken
            )
        elif given not in _PORTS:
            detail = f"provided port is not in the valid range. The range of valid ports is {_PORTS[0]}-{_PORTS[-1]}"
            yield invalid(f"spec.ports[{index}].nodePort", given, detail)
        elif (given, protocol) in taken:
            yield invalid(f"spec.ports[{index}].nodePort", given, "provided port is already allocated")
        taken.add((given, protocol))


def _taken_ports(others: list[Record]) -> set[tuple[int, str]]:
    return {
        (port["nodePort"], port.get("protocol", "TCP"))
        for record in others
        if record.fields[1] in _NODE_PORTS
        for port in record.decode()["spec"].get("ports") or ()
        if port.get("nodePort")
    }


def _port(port: JSON) -> tuple[object, object]:
    return port.get("port"), port.get("protocol", "TCP")
