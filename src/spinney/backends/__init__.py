"""The scheduler backend framework: how gangs reach whichever scheduler the cluster has.

A backend author imports from here; ``docs/backends.md`` is the guide.

What is named here is imported when it is first asked for: reading a configuration does not wait for every backend.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from spinney.backends.builtin import every_backend
    from spinney.backends.catalogue import Catalogue, UnusableBackend
    from spinney.backends.interface import (
        INTERFACE_VERSION,
        BackendContext,
        BackendUnavailable,
        Capabilities,
        Degradation,
        GangLookup,
        PodManifest,
        Rejected,
        Right,
        SchedulerBackend,
        TopologyAware,
        TopologyState,
    )
    from spinney.backends.profiles import Profile, Profiles
    from spinney.backends.registry import InitializationFailed, Registry

__all__ = [
    "INTERFACE_VERSION",
    "BackendContext",
    "BackendUnavailable",
    "Capabilities",
    "Catalogue",
    "Degradation",
    "GangLookup",
    "InitializationFailed",
    "PodManifest",
    "Profile",
    "Profiles",
    "Registry",
    "Rejected",
    "Right",
    "SchedulerBackend",
    "TopologyAware",
    "TopologyState",
    "UnusableBackend",
    "every_backend",
]

_HOMES: Final = {
    "INTERFACE_VERSION": "interface",
    "BackendContext": "interface",
    "BackendUnavailable": "interface",
    "Capabilities": "interface",
    "Catalogue": "catalogue",
    "Degradation": "interface",
    "GangLookup": "interface",
    "InitializationFailed": "registry",
    "PodManifest": "interface",
    "Profile": "profiles",
    "Profiles": "profiles",
    "Registry": "registry",
    "Rejected": "interface",
    "Right": "interface",
    "SchedulerBackend": "interface",
    "TopologyAware": "interface",
    "TopologyState": "interface",
    "UnusableBackend": "catalogue",
    "every_backend": "builtin",
}


def __getattr__(name: str) -> Any:
    """Import what is asked for from the module it lives in."""
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
