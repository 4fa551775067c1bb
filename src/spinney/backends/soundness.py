"""What is wrong with a backend as it is written, found before it is made: its attributes, and what is async."""

import re
from collections.abc import Iterator
from difflib import get_close_matches
from functools import cached_property
from inspect import getattr_static
from typing import Any, Final

import msgspec

from spinney.api.names import dns_subdomain_faults, label_value_faults
from spinney.backends.interface import INTERFACE_VERSION, Right, SchedulerBackend, TopologyAware
from spinney.extensions.answers import shown
from spinney.extensions.soundness import awaited_faults, called_faults, is_async

_AWAITED: Final = ("init", "sync_pod_gang", "on_pod_gang_delete", "validate_pod_clique_set")
_CALLED: Final = ("prepare_pod", "is_prepared_for", "may_release")
_READ: Final = ("capabilities", "has_own_objects", "has_delete_hook")
_TOPOLOGY_AWAITED: Final = ("sync_topology", "check_topology")
_TOPOLOGY_CALLED: Final = ("topology_name",)
_TOPOLOGY_READ: Final = ("topology_resource",)
_NEAR: Final = 0.8
"""How alike names are of which one is probably meant to be the other."""
_VERSION: Final = re.compile(r"\d+(\.\d+)*")


def faults_of(backend: type[SchedulerBackend]) -> list[str]:
    """Return what is wrong with a backend class, each with what to write."""
    aware = issubclass(backend, TopologyAware)
    return [
        *_name_faults("name", getattr(backend, "name", None)),
        *_alias_faults(backend.aliases),
        *_version_faults(backend.interface_version),
        *_config_faults(backend.config_type),
        *_rights_faults(backend.rights),
        *_missing_faults(backend),
        *awaited_faults(backend, (*_AWAITED, *(_TOPOLOGY_AWAITED if aware else ()))),
        *called_faults(backend, (*_CALLED, *(_TOPOLOGY_CALLED if aware else ()))),
        *_read_faults(backend, (*_READ, *(_TOPOLOGY_READ if aware else ()))),
    ]


def never_called(backend: type[SchedulerBackend]) -> list[str]:
    """Return the methods of a backend class whose names are nearly those of methods that it leaves as they are."""
    interface = (SchedulerBackend, TopologyAware) if issubclass(backend, TopologyAware) else (SchedulerBackend,)
    asked = {name: getattr(kind, name) for kind in interface for name in vars(kind) if not name.startswith("_")}
    left = [name for name, method in asked.items() if callable(method) and getattr(backend, name) is method]
    own = [name for name in dir(backend) if not name.startswith("_") and name not in asked]
    near = [(name, get_close_matches(name, left, 1, _NEAR)) for name in own if callable(getattr_static(backend, name))]
    return [f"{name} is never called; did you mean {meant[0]}?" for name, meant in near if meant]


def _name_faults(field: str, name: Any) -> Iterator[str]:
    if not isinstance(name, str):
        yield f'{field} is {shown(name)}, write a text such as "my-scheduler"'
    elif faults := dns_subdomain_faults(name) or label_value_faults(name):
        yield f"{field} is {name!r}, which pods could not have as schedulerName: it {faults[0]}"


def _alias_faults(aliases: Any) -> Iterator[str]:
    if not isinstance(aliases, tuple | list):
        yield f'aliases is {shown(aliases)}, write a tuple of texts such as ("my-alias",)'
        return
    for index, alias in enumerate(aliases):
        yield from _name_faults(f"aliases[{index}]", alias)


def _version_faults(version: Any) -> Iterator[str]:
    if not isinstance(version, str) or not _VERSION.fullmatch(version):
        yield f'interface_version is {shown(version)}, write a text such as "{INTERFACE_VERSION}"'


def _config_faults(kind: Any) -> Iterator[str]:
    if kind is not None and not (isinstance(kind, type) and issubclass(kind, msgspec.Struct)):
        yield f"config_type is {shown(kind)}, write a class that derives from msgspec.Struct, or None"


def _rights_faults(rights: Any) -> Iterator[str]:
    if not isinstance(rights, tuple | list):
        yield f'rights is {shown(rights)}, write a tuple such as (Right("example.com", ("gangs",), ("get",)),)'
        return
    for index, right in enumerate(rights):
        if not isinstance(right, Right):
            yield f'rights[{index}] is {shown(right)}, write a Right such as Right("example.com", ("gangs",), ("get",))'
            continue
        group: Any = right.group
        if not isinstance(group, str):
            yield f'rights[{index}].group is {shown(group)}, write a text such as "example.com"'
        for part in ("resources", "verbs", "names"):
            texts = getattr(right, part)
            if not isinstance(texts, tuple | list) or not all(isinstance(each, str) for each in texts):
                yield f'rights[{index}].{part} is {shown(texts)}, write a tuple of texts such as ("get",)'


def _missing_faults(backend: type[SchedulerBackend]) -> Iterator[str]:
    for name in sorted(backend.__abstractmethods__):
        found = getattr_static(backend, name)
        awaited = name in (*_AWAITED, *_TOPOLOGY_AWAITED)
        before = "`@property` and " if isinstance(found, property) else ""
        yield f"it has no {name}, write {before}`{'async ' if awaited else ''}def {name}`"


def _read_faults(backend: type, properties: tuple[str, ...]) -> Iterator[str]:
    for name in properties:
        found = getattr_static(backend, name)
        if isinstance(found, property | cached_property):
            getter = found.fget if isinstance(found, property) else found.func
            if getter is not None and is_async(getter):
                yield f"{name} is async, write `@property` and `def {name}`"
        elif callable(found):
            yield f"{name} is a method, write `@property` before `def {name}`"
