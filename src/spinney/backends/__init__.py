"""The scheduler backend framework: how gangs reach whichever scheduler the cluster has.

A backend author imports from here; ``docs/backends.md`` is the guide.

What is named here is imported when it is first asked for: reading a configuration does not wait for every backend.
"""

from typing import TYPE_CHECKING

from spinney.lazy_exports import exported

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
    from spinney.backends.requirements import reject_required_topology

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
    "reject_required_topology",
]

__getattr__ = exported(__name__, __file__)
