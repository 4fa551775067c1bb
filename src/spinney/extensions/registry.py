"""Plugins by name: those that were registered, and those that installed distributions declare as entry points.

Each scheduler has a registry of its own, with the entry-point group and the sort of builder that are its own.
"""

from collections.abc import Iterator, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import ClassVar, Generic, TypeVar, cast

from spinney.api.documents import nearest
from spinney.runtime.faults import raised, told

B = TypeVar("B")


class UnknownPlugin(LookupError):
    """The configuration names a plugin that nobody provides."""


class InvalidPlugin(UnknownPlugin):
    """What was registered, or what an entry point leads to, is no plugin builder, or is badly written."""


class Builders(Generic[B]):
    """Builders by plugin name. Mutable until a scheduler is built with it."""

    group: ClassVar[str]
    """The entry-point group under which distributions declare builders."""
    replaceable: ClassVar[bool] = True
    """Whether a builder that is registered replaces one of the same name, declared or registered before."""

    def __init__(self, builders: Mapping[str, B] | None = None) -> None:
        self._found: dict[str, B | EntryPoint] = dict(builders or {})
        self._taken_twice: dict[str, str] = {}
        """Names that two distributions declare, and what to say of it to who asks for one."""

    def __contains__(self, name: object) -> bool:
        return name in self._found

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._found))

    def faults_of(self, name: str, builder: B) -> list[str]:
        """Return what is wrong with a builder as it is written, each with what to write."""
        return []

    def register(self, name: str, builder: B) -> None:
        """Add a builder; ``ValueError`` if one of the same name may not be replaced.

        Raises :class:`InvalidPlugin` for one that is badly written.
        """
        self._check(name, builder)
        if name in self and not self.replaceable:
            raise ValueError(f"a plugin called {name!r} is registered already; choose another name")
        self._found[name] = builder
        self._taken_twice.pop(name, None)

    def builder(self, name: str) -> B:
        """Return a builder; raises :class:`UnknownPlugin`, or :class:`InvalidPlugin` for one that cannot be loaded."""
        if name not in self._found:
            hint = nearest(name, list(self))
            if not hint.endswith("?"):
                hint += f". Is its distribution installed, with an entry point in group {self.group!r}?"
            raise UnknownPlugin(f"no plugin is called {name!r}; {hint}")
        if name in self._taken_twice:
            raise InvalidPlugin(self._taken_twice[name])
        found = self._found[name]
        if isinstance(found, EntryPoint):
            loaded = cast("B", _loaded(found))
            self._check(name, loaded, f" ({_source(found)})")
            found = self._found[name] = loaded
        return found

    def _check(self, name: str, builder: B, source: str = "") -> None:
        if faults := self.faults_of(name, builder):
            raise InvalidPlugin(f"plugin {name!r:.100}{source} is badly written: {'; '.join(faults)}")

    def offer_entry_points(self) -> None:
        """Add what installed distributions declare.

        Nothing is imported before it is asked for by name: what is not used can break nothing.
        """
        for entry in entry_points(group=self.group):
            self.offer(entry)

    def offer(self, entry: EntryPoint) -> None:
        """Add what a distribution declares; what was registered stays, or is not to be taken twice: ``ValueError``.

        What two distributions declare is refused when it is asked for.
        """
        if entry.name in self and not self.replaceable:
            raise ValueError(
                f"entry point {entry.value} of group {self.group}: the plugin name {entry.name!r} is taken; "
                "rename one of the two"
            )
        known = self._found.setdefault(entry.name, entry)
        if isinstance(known, EntryPoint) and known.value != entry.value:
            self._taken_twice[entry.name] = (
                f"two plugins are called {entry.name!r}: {_source(known)} and {_source(entry)}; uninstall one of them"
            )


def _source(entry: EntryPoint) -> str:
    return f"{entry.value} of {entry.dist.name if entry.dist is not None else 'an unnamed distribution'}"


def _loaded(entry: EntryPoint) -> object:
    source = entry.dist.name if entry.dist is not None else "an unnamed distribution"
    where = f"entry point {entry.name!r} of {source} in group {entry.group!r}"
    try:
        builder: object = entry.load()
    except raised() as error:
        raise InvalidPlugin(
            f"{where} cannot be loaded from {entry.value}: {told(error)}; "
            "repair or remove the distribution, or take the plugin out of the configuration"
        ) from error
    if not callable(builder):
        raise InvalidPlugin(f"{where} is {builder!r}, but must be a callable that returns a plugin")
    return builder
