"""Rules for the containers of a pod spec, as the API server holds a pod to them.

Pods are made from the spec by a controller, long after its author has left. What the API server would refuse then is
refused when the spec is written. The spec is carried as JSON, so any value may be of any type.
"""

import re
from collections.abc import Collection, Iterator
from typing import Any, Final

from spinney.api.names import Check, dns_label_faults, env_name_faults
from spinney.api.schema.field_error import (
    FieldError,
    FieldPath,
    duplicate,
    invalid,
    not_found,
    not_supported,
    required,
)
from spinney.api.schema.validate_container_resources import validate_container_resources
from spinney.api.struct import JSON

PULL_POLICIES: Final = ("Always", "IfNotPresent", "Never")
PROTOCOLS: Final = ("TCP", "UDP", "SCTP")
_MAX_PORT: Final = 65_535
_MAX_PORT_NAME: Final = 15
_PORT_NAME: Final = re.compile(r"(?=.*[a-z])[a-z0-9]+(-[a-z0-9]+)*")


def validate_containers(pod_spec: JSON, path: FieldPath, *, volumes: Collection[str]) -> Iterator[FieldError]:
    """Check every container; a name is taken once among all of them, and mounts are of the pod's ``volumes``."""
    if not pod_spec.get("containers"):
        yield required(path.child("containers"), "a pod needs at least one container")
    taken: set[str] = set()
    for kind in ("containers", "initContainers"):
        here = path.child(kind)
        yield from not_a_list(pod_spec.get(kind), here)
        for i, container in enumerate(objects(pod_spec.get(kind))):
            yield from _container(container, here.index(i), taken, volumes)


def validate_environment(container: JSON, path: FieldPath) -> Iterator[FieldError]:
    """Check the names of a container's variables."""
    seen: set[str] = set()
    for i, variable in enumerate(objects(container.get("env"))):
        yield from unique_name(variable, path.index(i).child("name"), seen, env_name_faults)


def unique_name(item: JSON, path: FieldPath, taken: set[str], faults: Check) -> Iterator[FieldError]:
    """Check that an item has a name without ``faults`` that none before it has, and note it in ``taken``."""
    name = item.get("name")
    if name is None or name == "":
        yield required(path, "a name is needed")
    elif not isinstance(name, str):
        yield invalid(path, name, "must be text")
    else:
        yield from (invalid(path, name, fault) for fault in faults(name))
        if name in taken:
            yield duplicate(path, name)
        taken.add(name)


def objects(items: Any) -> list[JSON]:
    """Return the items of a JSON list as objects, an item that is none as an empty one, so that positions hold."""
    if not isinstance(items, list):
        return []
    return [item if isinstance(item, dict) else {} for item in items]


def not_a_list(value: Any, path: FieldPath) -> list[FieldError]:
    """Return the fault of a value that is there and no list."""
    return [] if value is None or isinstance(value, list) else [invalid(path, value, "must be a list")]


def one_of(value: Any, path: FieldPath, supported: tuple[str, ...]) -> list[FieldError]:
    """Return the fault of a value that is there and none of those supported."""
    return [] if value in (None, "", *supported) else [not_supported(path, value, supported)]


def _container(container: JSON, path: FieldPath, taken: set[str], volumes: Collection[str]) -> Iterator[FieldError]:
    yield from unique_name(container, path.child("name"), taken, dns_label_faults)
    image = container.get("image")
    if not image:
        yield required(path.child("image"), "a container needs an image")
    elif not isinstance(image, str) or image != image.strip():
        yield invalid(path.child("image"), image, "must be text without space around it")
    yield from one_of(container.get("imagePullPolicy"), path.child("imagePullPolicy"), PULL_POLICIES)
    yield from validate_environment(container, path.child("env"))
    yield from _ports(container, path.child("ports"))
    yield from _mounts(container, path.child("volumeMounts"), volumes)
    yield from validate_container_resources(container.get("resources"), path.child("resources"))


def _ports(container: JSON, path: FieldPath) -> Iterator[FieldError]:
    yield from not_a_list(container.get("ports"), path)
    names: set[str] = set()
    for i, port in enumerate(objects(container.get("ports"))):
        here = path.index(i)
        if port.get("name"):
            yield from unique_name(port, here.child("name"), names, _port_name_faults)
        number = port.get("containerPort")
        if not number:
            yield required(here.child("containerPort"), "name a port")
        elif not _is_port(number):
            yield invalid(here.child("containerPort"), number, f"must be a number from 1 to {_MAX_PORT}")
        if port.get("hostPort") and not _is_port(port["hostPort"]):
            yield invalid(here.child("hostPort"), port["hostPort"], f"must be a number from 1 to {_MAX_PORT}")
        yield from one_of(port.get("protocol"), here.child("protocol"), PROTOCOLS)


def _mounts(container: JSON, path: FieldPath, volumes: Collection[str]) -> Iterator[FieldError]:
    yield from not_a_list(container.get("volumeMounts"), path)
    places: set[str] = set()
    for i, mount in enumerate(objects(container.get("volumeMounts"))):
        here, name, place = path.index(i), mount.get("name"), mount.get("mountPath")
        if not name:
            yield required(here.child("name"), "name a volume of the pod")
        elif name not in volumes:
            yield not_found(here.child("name"), name, f"the pod has no such volume; it has: {_listed(volumes)}")
        if not isinstance(place, str) or not place:
            yield required(here.child("mountPath"), "say where to mount the volume")
        elif place in places:
            yield invalid(here.child("mountPath"), place, "must be unique")
        else:
            places.add(place)


def _is_port(number: Any) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and 1 <= number <= _MAX_PORT


def _port_name_faults(name: str) -> list[str]:
    if len(name) <= _MAX_PORT_NAME and _PORT_NAME.fullmatch(name):
        return []
    return [f"must be at most {_MAX_PORT_NAME} lower case letters, digits and single '-' inside, with a letter"]


def _listed(names: Collection[str]) -> str:
    return ", ".join(names) or "none"
