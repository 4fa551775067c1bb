"""Rules for a pod's containers: their names, what they ask for, and what they mention of the pod.

Pods come in sets whose containers are alike: that a name is right is found out once.
"""

from collections.abc import Collection, Iterator
from functools import lru_cache
from typing import Any, Final

from spinney.api.field_error import FieldError, duplicate, forbidden, invalid, not_found, not_supported, required
from spinney.api.names import dns_label_faults, env_name_faults, port_name_faults
from spinney.api.pod_rules.resources import resource_faults
from spinney.api.struct import JSON, objects

_FIELDS: Final = ("containers", "initContainers")
_PULL_POLICIES: Final = ("Always", "IfNotPresent", "Never")
_PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
_MAX_PORT: Final = 65535

_name_faults = lru_cache(maxsize=4096)(dns_label_faults)
_variable_faults = lru_cache(maxsize=4096)(env_name_faults)


def container_faults(spec: JSON, path: str, *, template: bool) -> Iterator[FieldError]:
    """Yield what is wrong with the containers of a pod spec at ``path``; a template may have blanks around images."""
    if spec.get("ephemeralContainers"):
        yield forbidden(f"{path}.ephemeralContainers", "cannot be set on create; use the pod's subresource")
    if not spec.get("containers"):
        yield required(f"{path}.containers")
    volumes = {volume.get("name") for volume in objects(spec.get("volumes"))}
    claims = {claim.get("name") for claim in objects(spec.get("resourceClaims"))}
    seen: set[str] = set()
    for field in _FIELDS:
        host_ports: set[str] = set()
        for index, container in enumerate(objects(spec.get(field))):
            where = f"{path}.{field}[{index}]"
            yield from own_name_faults(f"{where}.name", container.get("name"), seen)
            yield from _image(container, where, template=template)
            if resources := container.get("resources"):
                yield from resource_faults(resources, f"{where}.resources")
                if asked := resources.get("claims"):
                    yield from _claims(objects(asked), f"{where}.resources.claims", claims)
            if mounts := container.get("volumeMounts"):
                yield from _mounts(objects(mounts), f"{where}.volumeMounts", volumes)
            if ports := container.get("ports"):
                on_host = bool(spec.get("hostNetwork"))
                yield from _ports(objects(ports), f"{where}.ports", host_ports, on_host=on_host)
            if variables := container.get("env"):
                yield from _variables(objects(variables), f"{where}.env")
            policy = container.get("imagePullPolicy")
            if policy and policy not in _PULL_POLICIES:
                yield not_supported(f"{where}.imagePullPolicy", policy, _PULL_POLICIES)


def own_name_faults(path: str, name: str | None, seen: set[str]) -> Iterator[FieldError]:
    """Yield what is wrong with the name at ``path`` of a part of a pod; those before it have the names ``seen``."""
    if not name:
        yield required(path)
    elif faults := _name_faults(name):
        yield from (invalid(path, name, fault) for fault in faults)
    elif name in seen:
        yield duplicate(path, name)
    else:
        seen.add(name)


def _image(container: JSON, path: str, *, template: bool) -> Iterator[FieldError]:
    image = container.get("image")
    if not image:
        yield required(f"{path}.image")
    elif not template and image != image.strip():
        yield invalid(f"{path}.image", image, "must not have leading or trailing whitespace")


def _claims(claims: Collection[JSON], path: str, known: Collection[Any]) -> Iterator[FieldError]:
    seen: set[tuple[str, str]] = set()
    for index, claim in enumerate(claims):
        where, name, request = f"{path}[{index}]", claim.get("name"), claim.get("request") or ""
        if not name:
            yield required(where)
            continue
        if request:
            yield from (invalid(f"{where}.request", request, fault) for fault in dns_label_faults(request))
        overlapping = (name, "") in seen or (any(each == name for each, _ in seen) if not request else False)
        if overlapping or (name, request) in seen:
            yield duplicate(where, name)
        seen.add((name, request))
        if name not in known:
            yield not_found(where, name)


def _mounts(mounts: Collection[JSON], path: str, volumes: Collection[Any]) -> Iterator[FieldError]:
    paths: set[str] = set()
    for index, mount in enumerate(mounts):
        name, place = mount.get("name"), mount.get("mountPath")
        if name in volumes and place and place not in paths:
            paths.add(place)
            continue
        if not name:
            yield required(f"{path}[{index}].name")
        if name not in volumes:
            listed = ", ".join(sorted(filter(None, volumes))) or "none"
            yield not_found(f"{path}[{index}].name", name, f"the pod has no such volume; it has: {listed}")
        if not place:
            yield required(f"{path}[{index}].mountPath")
        elif place in paths:
            yield invalid(f"{path}[{index}].mountPath", place, "must be unique")
        paths.add(str(place))


def _ports(ports: Collection[JSON], path: str, host_ports: set[str], *, on_host: bool) -> Iterator[FieldError]:
    names: set[str] = set()
    for index, port in enumerate(ports):
        here, number, name = f"{path}[{index}]", port.get("containerPort"), port.get("name")
        protocol, host_port = port.get("protocol") or "TCP", port.get("hostPort")
        if name and (faults := port_name_faults(name)):
            yield from (invalid(f"{here}.name", name, fault) for fault in faults)
        elif name and name in names:
            yield duplicate(f"{here}.name", name)
        names.add(str(name))
        if not number:
            yield required(f"{here}.containerPort")
        elif not 0 < number <= _MAX_PORT:
            yield invalid(f"{here}.containerPort", number, f"must be between 1 and {_MAX_PORT}, inclusive")
        if protocol not in _PROTOCOLS:
            yield not_supported(f"{here}.protocol", protocol, _PROTOCOLS)
        if host_port:
            yield from _host_port(port, f"{here}.hostPort", host_ports, on_host=on_host)


def _host_port(port: JSON, path: str, taken: set[str], *, on_host: bool) -> Iterator[FieldError]:
    number = port["hostPort"]
    if not 0 < number <= _MAX_PORT:
        yield invalid(path, number, f"must be between 1 and {_MAX_PORT}, inclusive")
    if on_host and number != port.get("containerPort"):
        yield invalid(path, number, "must match `containerPort` when `hostNetwork` is true")
    place = f"{port.get('protocol') or 'TCP'}/{port.get('hostIP') or ''}/{number}"
    if place in taken:
        yield duplicate(path, place)
    taken.add(place)


def _variables(variables: Collection[JSON], path: str) -> Iterator[FieldError]:
    for index, variable in enumerate(variables):
        name = variable.get("name")
        if not name:
            yield required(f"{path}[{index}].name")
        elif faults := _variable_faults(name):
            yield from (invalid(f"{path}[{index}].name", name, fault) for fault in faults)
