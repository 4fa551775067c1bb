"""The backends of one process: built once from the profiles, initialised, and found by name."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final

import structlog

from spinney.api.resource import Resource
from spinney.backends.catalogue import Catalogue
from spinney.backends.interface import BackendContext, Capabilities, SchedulerBackend, TopologyAware
from spinney.backends.profiles import Profile, Profiles
from spinney.extensions.answers import InvalidAnswer, instance_of, shown
from spinney.runtime.faults import raised_later, told

log = structlog.get_logger()

INIT_SECONDS: Final = 120.0
"""How long a backend may take to be initialised; kube-scheduler's probe of a gang waits for 30 s by itself."""

_some_capabilities: Final[Callable[[Any], Capabilities]] = instance_of(Capabilities, "Capabilities from `capabilities`")
_resource: Final[Callable[[Any], Resource]] = instance_of(Resource, "a Resource from `topology_resource`")


class InitializationFailed(RuntimeError):
    """A backend could not be initialised; the message names the backend, its profile and the reason."""


class Registry:
    """Enabled backends by name. Filled once by :meth:`initialize`, read-only afterwards."""

    def __init__(self) -> None:
        self._backends: Mapping[str, SchedulerBackend] | None = None
        self._aliases: Mapping[str, str] = {}
        self._default = ""

    async def initialize(self, catalogue: Catalogue, context: BackendContext, profiles: Profiles) -> None:
        """Create and initialise every enabled backend, in the order listed."""
        if self._backends is not None:
            raise RuntimeError("the backend registry is already initialised; a process has one, made at its start")
        backends: dict[str, SchedulerBackend] = {}
        for profile in profiles.enabled:
            backends[profile.name] = await _initialized(catalogue, context, profile)
        self._backends = backends
        self._aliases = {
            alias: name for name, each in backends.items() for alias in each.aliases if alias not in backends
        }
        self._default = profiles.default

    def get(self, name: str) -> SchedulerBackend | None:
        """Return the enabled backend of that name, or of that other name (``kube-scheduler``), else ``None``."""
        return self._ready.get(self._aliases.get(name, name))

    def get_default(self) -> SchedulerBackend:
        """Return the backend of workloads that name none."""
        return self._ready[self._default]

    def named_or_default(self, name: str | None) -> SchedulerBackend | None:
        """Return the backend of that name, the default for an empty name, ``None`` for one that is not enabled."""
        return self.get(name) if name else self.get_default()

    def names(self) -> list[str]:
        """Return the names of the enabled backends, in order."""
        return sorted(self._ready)

    def topology_aware(self) -> dict[str, TopologyAware]:
        """Return the enabled backends that manage a topology object, by name, in order."""
        return {name: each for name, each in sorted(self._ready.items()) if isinstance(each, TopologyAware)}

    @property
    def _ready(self) -> Mapping[str, SchedulerBackend]:
        if self._backends is None:
            raise RuntimeError(
                "the backend registry is not initialised yet; call initialize() before controllers start"
            )
        return self._backends


def _capabilities(answer: Any) -> Capabilities:
    found = _some_capabilities(answer)
    for name, said in found.named().items():
        if not isinstance(said, bool):
            raise InvalidAnswer(f"Capabilities whose {name} is {shown(said)}", "True or False")
    return found


async def _initialized(catalogue: Catalogue, context: BackendContext, profile: Profile) -> SchedulerBackend:
    kind = catalogue.get(profile.name)
    if kind is None:
        raise InitializationFailed(f"profile {profile.name!r} ({profile.where}): no backend of that name is installed")
    about = f"profile {profile.name!r} ({profile.where})"
    limit = asyncio.timeout(INIT_SECONDS)
    try:
        backend = kind(context, profile.config)
        async with limit:
            await backend.init()
        _capabilities(backend.capabilities)
        if isinstance(backend, TopologyAware):
            _resource(backend.topology_resource)
    except raised_later() as error:
        if limit.expired():
            text = f"init has not ended within {INIT_SECONDS:.0f} s; see whether its scheduler is healthy"
            raise InitializationFailed(f"{about}: {text}") from error
        raise InitializationFailed(f"{about}: {told(error)}") from error
    log.info("backend initialised", backend=backend.name, interface=backend.interface_version)
    return backend
