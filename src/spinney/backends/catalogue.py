"""Which backends can be enabled: the built-in ones and those that installed packages bring.

A package brings a backend by an entry point in the group ``spinney.backends`` whose object is the backend class. The
built-in ones go through the same :meth:`Catalogue.register`. An entry point is only imported when its name is
asked for, and a name that two packages claim is only refused then: what is wrong with an installed backend must not
stop an operator that never enables it.
"""

from collections.abc import Iterable
from functools import cache
from importlib.metadata import EntryPoint, entry_points

import structlog

from spinney.backends.interface import INTERFACE_VERSION, SchedulerBackend, deprecations, is_compatible
from spinney.backends.soundness import faults_of, never_called
from spinney.extensions.answers import shown
from spinney.runtime.faults import raised, told

log = structlog.get_logger()

GROUP = "spinney.backends"


class UnusableBackend(ValueError):
    """A backend is installed, and cannot be served."""


class Catalogue:
    """Backend classes by profile name. Mutable while it is filled, at start; read-only afterwards by convention."""

    def __init__(self) -> None:
        self._classes: dict[str, type[SchedulerBackend]] = {}
        self._entry_points: dict[str, EntryPoint] = {}
        self._aliases: dict[str, str] = {}
        self._refused: dict[str, UnusableBackend] = {}

    def discover(self, installed: Iterable[EntryPoint] | None = None) -> None:
        """Add the backends that installed packages bring."""
        for entry_point in _installed() if installed is None else installed:
            self.register_entry_point(entry_point)

    def register(self, backend: type[SchedulerBackend]) -> None:
        """Add a backend class under its name and aliases; raises if it is badly written or a name is already taken."""
        written = f"{backend.__module__}.{backend.__qualname__}"
        if faults := faults_of(backend):
            raise UnusableBackend(f"backend {getattr(backend, 'name', None)!r} ({written}): {'; '.join(faults)}")
        if not is_compatible(backend.interface_version):
            raise UnusableBackend(
                f"backend {backend.name!r} ({written}) is written for backend "
                f"interface {backend.interface_version}, this operator serves {INTERFACE_VERSION}; "
                "install a release of the backend made for this major version"
            )
        for name in (backend.name, *backend.aliases):
            self._claim(name, written)
        self._classes[backend.name] = backend
        self._aliases |= dict.fromkeys(backend.aliases, backend.name)
        for text in deprecations(backend):
            log.warning("backend implements what is to go", backend=backend.name, deprecation=text)
        for text in never_called(backend):
            log.warning("backend has a method that nobody calls", backend=backend.name, method=text)

    def register_entry_point(self, entry_point: EntryPoint) -> None:
        """Add a backend that is imported when it is first asked for; so is a name already taken refused."""
        try:
            self._claim(entry_point.name, entry_point.value)
        except UnusableBackend as error:
            self._refused.setdefault(self.canonical(entry_point.name), error)
            return
        self._entry_points[entry_point.name] = entry_point

    def names(self) -> list[str]:
        """Return every name a profile may use, aliases included, in order."""
        return sorted([*self._classes, *self._entry_points, *self._aliases])

    def canonical(self, name: str) -> str:
        """Return the name an alias stands for; other names are returned as they are."""
        return self._aliases.get(name, name)

    def get(self, name: str) -> type[SchedulerBackend] | None:
        """Return the backend class for a name or alias, importing it if need be; ``None`` when there is none."""
        name = self.canonical(name)
        if name in self._refused:
            raise self._refused[name]
        if name in self._entry_points:
            try:
                self._load(self._entry_points.pop(name))
            except UnusableBackend as error:
                self._refused[name] = error
                raise
        return self._classes.get(name)

    def _load(self, entry_point: EntryPoint) -> None:
        try:
            backend = entry_point.load()
        except raised() as error:
            raise UnusableBackend(
                f"backend {entry_point.name!r}: importing {entry_point.value} failed: {told(error)}"
            ) from error
        if not (isinstance(backend, type) and issubclass(backend, SchedulerBackend)):
            raise UnusableBackend(
                f"backend {entry_point.name!r}: {entry_point.value} is {shown(backend)}, "
                "expected a subclass of spinney.backends.SchedulerBackend"
            )
        name = getattr(backend, "name", None)
        if name != entry_point.name:
            raise UnusableBackend(
                f"backend {entry_point.name!r}: {entry_point.value} calls itself {name!r}; "
                "the entry point must have the backend's name"
            )
        self.register(backend)

    def _claim(self, name: str, by: str) -> None:
        taken = self._classes.get(name) or self._classes.get(self._aliases.get(name, ""))
        holder = f"{taken.__module__}.{taken.__qualname__}" if taken else None
        if name in self._entry_points:
            holder = self._entry_points[name].value
        if holder is not None:
            raise UnusableBackend(f"two backends are called {name!r}: {holder} and {by}; uninstall one of them")


@cache
def _installed() -> tuple[EntryPoint, ...]:
    """Return what installed packages declare; looking through all of them takes longer than everything else here."""
    return tuple(entry_points(group=GROUP))
