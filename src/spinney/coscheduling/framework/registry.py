"""Which plugins there are: the built-in ones, and those of installed packages.

A package offers a plugin under the entry-point group ``spinney.framework_plugins``: the name is the plugin's, the
object is called with the handle and the arguments from the configuration and returns the plugin. A plugin class whose
constructor takes the two is such an object.
"""

from collections.abc import Callable, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final

from spinney.api.documents import nearest
from spinney.coscheduling.framework.handle import Handle
from spinney.coscheduling.framework.points import FrameworkPlugin

ENTRY_POINTS: Final = "spinney.framework_plugins"

Builder = Callable[[Handle, Mapping[str, Any]], FrameworkPlugin]
"""Makes a plugin from the arguments in its configuration; raises ``ValueError`` for ones it does not understand."""


class UnknownFrameworkPlugin(LookupError):
    """A plugin name that nobody registered."""

    def __init__(self, name: str, known: list[str]) -> None:
        super().__init__(f"no plugin is called {name!r}; {nearest(name, known)}")


class PluginRegistry:
    """Plugin builders by name. Mutable until the scheduler is made; entry points are loaded when asked for."""

    def __init__(self, builders: Mapping[str, Builder] | None = None) -> None:
        self._builders: dict[str, Builder] = dict(builders or {})
        self._offered: dict[str, EntryPoint] = {}

    @classmethod
    def installed(cls, builders: Mapping[str, Builder]) -> "PluginRegistry":
        """Return the given builders and those of installed packages; a name taken twice is an error."""
        registry = cls(builders)
        for offered in entry_points(group=ENTRY_POINTS):
            if offered.name in registry._builders or offered.name in registry._offered:
                raise ValueError(
                    f"entry point {offered.value} of group {ENTRY_POINTS}: the plugin name {offered.name!r} is taken; "
                    "rename one of the two"
                )
            registry._offered[offered.name] = offered
        return registry

    def register(self, name: str, builder: Builder) -> None:
        if name in self._builders or name in self._offered:
            raise ValueError(f"a plugin called {name!r} is registered already; choose another name")
        self._builders[name] = builder

    def names(self) -> list[str]:
        """Return the names of all plugins, sorted."""
        return sorted({*self._builders, *self._offered})

    def build(self, name: str, handle: Handle, arguments: Mapping[str, Any]) -> FrameworkPlugin:
        """Make a plugin; raises :class:`UnknownFrameworkPlugin`."""
        builder = self._builders.get(name)
        if builder is None:
            offered = self._offered.get(name)
            if offered is None:
                raise UnknownFrameworkPlugin(name, self.names())
            builder = self._builders[name] = _loaded(offered)
        return builder(handle, arguments)


def _loaded(offered: EntryPoint) -> Builder:
    try:
        builder: Builder = offered.load()
    except Exception as error:
        raise ValueError(
            f"entry point {offered.value} of group {ENTRY_POINTS} cannot be loaded: {type(error).__name__}: {error}; "
            "repair or remove the package, or take the plugin out of the profile"
        ) from error
    return builder
