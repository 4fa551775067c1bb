"""The rules of a pod's containers: their names, what they ask for, and what they mention of the pod.

Pods come in sets whose containers are alike: that a name or an amount is right is found out once.
"""

from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

from spinney.api.names import dns_label_faults, env_name_faults, qualified_name_faults
from spinney.api.quantity import InvalidQuantity, Quantity
from spinney.api.struct import JSON
from spinney.server.exchange.status import (
    Cause,
    duplicate_value,
    forbidden_value,
    invalid_value,
    not_found_value,
    required,
    unsupported_value,
)

_FIELDS: Final = ("containers", "initContainers")
_PULL_POLICIES: Final = ("Always", "IfNotPresent", "Never")
_PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
_MAX_PORT: Final = 65535
_STANDARD: Final = ("cpu", "memory", "ephemeral-storage")  # what a container may ask for without a domain before it
_HUGE_PAGES: Final = "hugepages-"
_NATIVE: Final = "kubernetes.io/"
_Amounts = tuple[tuple[str, str], ...]

_name_faults = lru_cache(maxsize=4096)(dns_label_faults)
_variable_faults = lru_cache(maxsize=4096)(env_name_faults)


def container_causes(spec: JSON, path: str) -> list[Cause]:
    """Return what is wrong with the containers of a pod spec at ``path``."""
    if spec.get("ephemeralContainers"):
        return [
            forbidden_value(f"{path}.ephemeralContainers", "cannot be set on create; use the pod's subresource"),
            *_causes(spec, path),
        ]
    return _causes(spec, path)


def _causes(spec: JSON, path: str) -> list[Cause]:
    causes: list[Cause] = []
    containers = spec.get("containers")
    if not isinstance(containers, list) or not containers:
        causes.append(required(f"{path}.containers"))
    volumes = {volume.get("name") for volume in spec.get("volumes") or ()}
    claims = {claim.get("name") for claim in spec.get("resourceClaims") or ()}
    seen: set[str] = set()
    for field in _FIELDS:
        for index, container in enumerate(spec.get(field) or ()):
            where = f"{path}.{field}[{index}]"
            if not isinstance(container, dict):
                causes.append(invalid_value(where, container, "must be an object"))
                continue
            causes += _name_causes(where, container, seen)
            if resources := container.get("resources"):
                if not _are_right(_amounts(resources.get("requests")), _amounts(resources.get("limits"))):
                    causes += _resource_causes(f"{where}.resources", resources)
                if asked := resources.get("claims"):
                    causes += _claim_causes(f"{where}.resources.claims", asked, claims)
            if mounts := container.get("volumeMounts"):
                causes += _mount_causes(f"{where}.volumeMounts", mounts, volumes)
            if ports := container.get("ports"):
                causes += _port_causes(f"{where}.ports", ports)
            if variables := container.get("env"):
                causes += _variable_causes(f"{where}.env", variables)
            policy = container.get("imagePullPolicy")
            if policy and policy not in _PULL_POLICIES:
                causes.append(unsupported_value(f"{where}.imagePullPolicy", policy, _PULL_POLICIES))
    return causes


def _name_causes(path: str, container: JSON, seen: set[str]) -> Iterator[Cause]:
    name = container.get("name")
    if not name:
        yield required(f"{path}.name")
    elif faults := _name_faults(str(name)):
        yield from (invalid_value(f"{path}.name", name, fault) for fault in faults)
    elif name in seen:
        yield duplicate_value(f"{path}.name", name)
    seen.add(str(name))
    if not container.get("image"):
        yield required(f"{path}.image")


def _amounts(given: Mapping[str, Any] | None) -> _Amounts:
    return tuple((name, str(amount)) for name, amount in given.items()) if given else ()


@lru_cache(maxsize=4096)
def _are_right(requests: _Amounts, limits: _Amounts) -> bool:
    return next(_resource_causes("", {"requests": dict(requests), "limits": dict(limits)}), None) is None


def _resource_causes(path: str, resources: JSON) -> Iterator[Cause]:
    amounts: dict[str, dict[str, Quantity]] = {"requests": {}, "limits": {}}
    for field, found in amounts.items():
        for name, text in (resources.get(field) or {}).items():
            where = f"{path}.{field}[{name}]"
            try:
                found[name] = Quantity.parse(str(text))
            except InvalidQuantity as error:
                yield invalid_value(where, text, str(error))
                continue
            yield from _amount_causes(where, name, found[name])
    for name, request in amounts["requests"].items():
        limit = amounts["limits"].get(name)
        if limit is None:
            if _is_extended(name):
                yield required(f"{path}.limits", f"limit must be set for {name}, which cannot be overcommitted")
        elif request > limit:
            detail = f"must be less than or equal to {name} limit of {limit}"
            yield invalid_value(f"{path}.requests", str(request), detail)
        elif request != limit and _is_extended(name):
            yield invalid_value(f"{path}.requests", str(request), f"must be equal to {name} limit of {limit}")


def _amount_causes(path: str, name: str, amount: Quantity) -> Iterator[Cause]:
    yield from (invalid_value(path, name, fault) for fault in qualified_name_faults(name))
    if "/" not in name and name not in _STANDARD and not name.startswith(_HUGE_PAGES):
        yield invalid_value(path, name, "must be a standard resource type or fully qualified")
        yield invalid_value(path, name, "must be a standard resource for containers")
    if amount < Quantity(0):
        yield invalid_value(path, str(amount), "must be greater than or equal to 0")
    elif _is_extended(name) and amount.milli % 1000:
        yield invalid_value(path, str(amount), "must be an integer")


def _is_extended(resource: str) -> bool:
    """Return whether a resource is counted whole and never overcommitted: it belongs to somebody's device."""
    return "/" in resource and _NATIVE not in resource


def _claim_causes(path: str, claims: Collection[JSON], known: Collection[Any]) -> Iterator[Cause]:
    seen: set[tuple[str, str]] = set()
    for index, claim in enumerate(claims):
        where, name, request = f"{path}[{index}]", claim.get("name"), claim.get("request") or ""
        if not name:
            yield required(where)
            continue
        if request:
            yield from (invalid_value(f"{where}.request", request, fault) for fault in dns_label_faults(request))
        overlapping = (name, "") in seen or (any(each == name for each, _ in seen) if not request else False)
        if overlapping or (name, request) in seen:
            yield duplicate_value(where, name)
        seen.add((name, request))
        if name not in known:
            yield not_found_value(where, name)


def _mount_causes(path: str, mounts: Collection[JSON], volumes: Collection[Any]) -> Iterator[Cause]:
    paths: set[str] = set()
    for index, mount in enumerate(mounts):
        name, place = mount.get("name"), mount.get("mountPath")
        if name in volumes and place and place not in paths:
            paths.add(place)
            continue
        if not name:
            yield required(f"{path}[{index}].name")
        elif name not in volumes:
            yield not_found_value(f"{path}[{index}].name", name)
        if not place:
            yield required(f"{path}[{index}].mountPath")
        elif place in paths:
            yield invalid_value(f"{path}[{index}].mountPath", place, "must be unique")
        paths.add(str(place))


def _port_causes(path: str, ports: Collection[JSON]) -> Iterator[Cause]:
    names: set[str] = set()
    for index, port in enumerate(ports):
        number, name, protocol = port.get("containerPort"), port.get("name"), port.get("protocol")
        if name and name in names:
            yield duplicate_value(f"{path}[{index}].name", name)
        names.add(str(name))
        if not number:
            yield required(f"{path}[{index}].containerPort")
        elif not 0 < number <= _MAX_PORT:
            yield invalid_value(f"{path}[{index}].containerPort", number, f"must be between 1 and {_MAX_PORT}")
        if protocol and protocol not in _PROTOCOLS:
            yield unsupported_value(f"{path}[{index}].protocol", protocol, _PROTOCOLS)


def _variable_causes(path: str, variables: Collection[JSON]) -> Iterator[Cause]:
    for index, variable in enumerate(variables):
        name = variable.get("name")
        if not name:
            yield required(f"{path}[{index}].name")
        elif faults := _variable_faults(name):
            yield from (invalid_value(f"{path}[{index}].name", name, fault) for fault in faults)
