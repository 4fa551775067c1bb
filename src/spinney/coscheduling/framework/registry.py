"""Which plugins there are: the built-in ones, and those of installed packages.

A package offers a plugin under the entry-point group ``spinney.framework_plugins``: the name is the plugin's, the
object is called with the handle and the arguments from the configuration and returns the plugin. A plugin class whose
constructor takes the two is such an object.
"""

from collections.abc import Callable, Mapping
from importlib.metadata import EntryPoint
from typing import Any

from spinney.coscheduling.framework.handle import Handle
from spinney.coscheduling.framework.points import FrameworkPlugin
from spinney.extensions.registry import Builders

Builder = Callable[[Handle, Mapping[str, Any]], FrameworkPlugin]
"""Makes a plugin from the arguments in its configuration; raises ``ValueError`` for ones it does not understand."""


class PluginRegistry(Builders[Builder]):
    """Plugin builders by name; a name is taken once."""

    group = "spinney.framework_plugins"

    @classmethod
    def installed(cls, builders: Mapping[str, Builder]) -> "PluginRegistry":
        """Return the given builders and those of installed packages; a name taken twice is an error."""
        registry = cls(builders)
        registry.offer_entry_points()
        return registry

    def offer(self, entry: EntryPoint) -> None:
        """Add what a package declares; ``ValueError`` if the name is taken."""
        if entry.name in self:
            raise ValueError(
                f"entry point {entry.value} of group {self.group}: the plugin name {entry.name!r} is taken; "
                "rename one of the two"
            )
        super().offer(entry)

    def register(self, name: str, builder: Builder) -> None:
        """Add a builder; ``ValueError`` if there is one of the same name."""
        if name in self:
            raise ValueError(f"a plugin called {name!r} is registered already; choose another name")
        super().register(name, builder)
