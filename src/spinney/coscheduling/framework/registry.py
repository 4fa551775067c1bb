"""Which plugins there are: the built-in ones, and those of installed packages.

A package offers a plugin under the entry-point group ``spinney.framework_plugins``: the name is the plugin's, the
object is called with the handle and the arguments from the configuration and returns the plugin. A plugin class whose
constructor takes the two is such an object.
"""

from collections.abc import Callable, Mapping
from typing import Any

from spinney.coscheduling.framework.handle import Handle
from spinney.coscheduling.framework.points import FrameworkPlugin
from spinney.extensions.registry import Builders

Builder = Callable[[Handle, Mapping[str, Any]], FrameworkPlugin]
"""Makes a plugin from the arguments in its configuration; raises ``ValueError`` for ones it does not understand."""


class FrameworkRegistry(Builders[Builder]):
    """Plugin builders by name; a name is taken once."""

    group = "spinney.framework_plugins"
    replaceable = False

    @classmethod
    def installed(cls, builders: Mapping[str, Builder]) -> "FrameworkRegistry":
        """Return the given builders and those of installed packages; a name taken twice is an error."""
        registry = cls(builders)
        registry.offer_entry_points()
        return registry
