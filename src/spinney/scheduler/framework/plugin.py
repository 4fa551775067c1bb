"""What a plugin is, and how the scheduler finds it.

A plugin is built anew for every session, from the string arguments the configuration gives it. It registers functions
when the session opens and may tidy up when it closes. Plugins are found by name: those registered by
:func:`register_plugin_builder`, and those that installed distributions declare under the entry-point group
``spinney.plugins``.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Final

import msgspec

from spinney.extensions.arguments import InvalidArguments, read_arguments
from spinney.extensions.registry import Builders

if TYPE_CHECKING:
    from spinney.scheduler.framework.session import Session


class Constraint(StrEnum):
    """What pods, gangs and queues may require and only a plugin can keep."""

    NODE_RULES = "rules about nodes"
    TOPOLOGY = "required topology levels"
    DEVICE_CLAIMS = "device claims"
    QUEUE_LIMITS = "queue limits"


class Plugin(ABC):
    """A policy of the scheduler. One instance serves one session; the class itself is its builder."""

    name: ClassVar[str]
    """What the configuration, logs and reasons call it."""
    arguments_type: ClassVar[type[msgspec.Struct] | None] = None
    """The arguments it takes, checked when the configuration is read; without one it is given whatever there is."""
    honours: ClassVar[frozenset[Constraint]] = frozenset()
    """The constraints it keeps. What no plugin of a session keeps is not met: jobs that require it wait."""
    contradicts: ClassVar[frozenset[str]] = frozenset()
    """Names of plugins that decide the same in another way: a configuration that enables one beside it is refused."""
    treats_alike: ClassVar[bool] = False
    """Promises that the plugin treats alike what is alike, so that it need not be asked about each pod.

    What it answers about a pod is the same for all pods of the pod set that make the same request, and does not change
    because one of them was placed. What it answers about jobs depends on nothing but their namespace, queue, priority,
    whether they are preemptible, their tree, what their pods request and what they hold. Built-in plugins keep this.
    """

    def __init__(self, arguments: Mapping[str, str] = MappingProxyType({})) -> None:
        self.arguments = arguments
        """What the configuration gives the plugin; ``read_arguments`` makes its type of them."""

    @abstractmethod
    def on_session_open(self, session: "Session") -> None:
        """Look at the session's snapshot and register functions with it."""

    def on_session_close(self, session: "Session") -> None:  # noqa: B027 - most plugins have nothing to tidy up
        """Tidy up, or report; called for every plugin that was opened, also after an action failed."""


Builder = Callable[[Mapping[str, str]], Plugin]
"""Makes a plugin from its arguments; called once per session."""


class PluginRegistry(Builders[Builder]):
    """The session scheduler's plugins, and what they take."""

    group = "spinney.plugins"

    def arguments_type(self, name: str) -> type[msgspec.Struct] | None:
        """Return the type a plugin declares for its arguments, or ``None``; raises :class:`UnknownPlugin`."""
        declared: type[msgspec.Struct] | None = getattr(self.builder(name), "arguments_type", None)
        return declared

    def argument_problems(self, name: str, arguments: Mapping[str, str]) -> Sequence[tuple[str, str]]:
        """Return the arguments that a plugin does not take, and why; raises :class:`UnknownPlugin`."""
        kind = self.arguments_type(name)
        if kind is not None:
            try:
                read_arguments(kind, arguments)
            except InvalidArguments as error:
                return error.problems
        return ()

    def contradictions(self, names: Sequence[str]) -> Iterator[tuple[str, str]]:
        """Yield the plugins of a list that contradict one before them, each with what to say of it."""
        for number, name in enumerate(names):
            for other in names[:number]:
                if other in self._contradicted_by(name) or name in self._contradicted_by(other):
                    yield name, f"plugin {name} contradicts plugin {other}; leave one of the two out"

    def _contradicted_by(self, name: str) -> frozenset[str]:
        declared: frozenset[str] = getattr(self.builder(name), "contradicts", frozenset())
        return declared


REGISTERED: Final = PluginRegistry()
"""What was registered in this process."""


def register_plugin_builder(name: str, builder: Builder) -> None:
    """Make a plugin known to every scheduler built afterwards in this process."""
    REGISTERED.register(name, builder)
