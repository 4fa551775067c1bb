"""What a plugin is, and how the scheduler finds it.

A plugin is built anew for every session, from the string arguments the configuration gives it. It registers functions
when the session opens and may tidy up when it closes. Plugins are found by name: those registered by
:func:`register_plugin_builder`, and those that installed distributions declare under the entry-point group
``spinney.plugins``.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from enum import StrEnum
from functools import lru_cache
from importlib.metadata import EntryPoint
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Final

import msgspec

from spinney.extensions.answers import InvalidAnswer, shown
from spinney.extensions.arguments import InvalidArguments, no_texts, read_arguments
from spinney.extensions.registry import Builders
from spinney.extensions.soundness import called_faults, name_faults
from spinney.runtime.faults import told

if TYPE_CHECKING:
    from spinney.scheduler.framework.session import Session


_CALLED: Final = ("on_session_open", "on_session_close")


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
    replaces_built_in: ClassVar[bool] = False
    """It has the name of a built-in plugin because it is to take its place; without this it is refused."""
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


def a_plugin(built: Any) -> Plugin:
    """Return what a builder made; raises :class:`InvalidAnswer` for what is no plugin, or one that is badly written."""
    if not isinstance(built, Plugin):
        raise InvalidAnswer(shown(built), "a plugin, an object of a class that extends Plugin")
    if faults := _class_faults(type(built)):
        raise InvalidAnswer(f"a plugin that is badly written: {'; '.join(faults)}", "a plugin")
    return built


Builder = Callable[[Mapping[str, str]], Plugin]
"""Makes a plugin from its arguments; called once per session."""


class PluginRegistry(Builders[Builder]):
    """The session scheduler's plugins, and what they take."""

    group = "spinney.plugins"

    def __init__(self, built_in: Mapping[str, Builder] = MappingProxyType({})) -> None:
        super().__init__(built_in)
        self._built_in = built_in

    def faults_of(self, name: str, builder: Builder) -> list[str]:
        """Return what is wrong with a plugin class as it is written, each with what to write."""
        faults = _faults_of(name, builder)
        if name in self._built_in and not getattr(builder, "replaces_built_in", False):
            faults.append(
                "its name is that of a built-in plugin, whose place it would take; give it another name, or write "
                "`replaces_built_in = True` if that is meant"
            )
        return faults

    def offer(self, entry: EntryPoint) -> None:
        """Add what a distribution declares; one with the name of a built-in plugin is judged when it is asked for."""
        if entry.name in self._built_in and self._found[entry.name] is self._built_in[entry.name]:
            self._found[entry.name] = entry
        super().offer(entry)

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


def _faults_of(name: object, builder: object) -> list[str]:
    """Return what is wrong with what is registered under a name, each with what to write."""
    faults = list(name_faults(name))
    if not callable(builder):
        return [*faults, f"it is {shown(builder)}, register the class itself, or a function that makes the plugin"]
    if not isinstance(builder, type):
        return faults  # what a function makes is looked at when it has
    if not issubclass(builder, Plugin):
        return [*faults, f"{builder.__name__} does not extend Plugin, write `class {builder.__name__}(Plugin)`"]
    return [*faults, *_class_faults(builder)]


@lru_cache(maxsize=1000)  # each session builds its plugins anew
def _class_faults(plugin: type[Plugin]) -> tuple[str, ...]:
    return tuple(_faults_in(plugin))


def _faults_in(plugin: type[Plugin]) -> Iterator[str]:
    if missing := getattr(plugin, "__abstractmethods__", None):
        yield f"it has no {', '.join(sorted(missing))}(self, session)"
    kind: Any = plugin.arguments_type
    if kind is not None and not (isinstance(kind, type) and issubclass(kind, msgspec.Struct)):
        yield f"arguments_type is {shown(kind)}, write a class that derives from msgspec.Struct, or None"
    elif kind is not None:
        yield from _argument_faults(kind)
    yield from _set_faults("honours", plugin.honours, Constraint, "frozenset({Constraint.TOPOLOGY})")
    yield from _set_faults("contradicts", plugin.contradicts, str, 'frozenset({"backfill"})')
    for field in ("replaces_built_in", "treats_alike"):
        said: Any = getattr(plugin, field)
        if not isinstance(said, bool):
            yield f"{field} is {shown(said)}, write True or False"
    yield from called_faults(plugin, _CALLED)


def _argument_faults(kind: type[msgspec.Struct]) -> Iterator[str]:
    try:
        for field in no_texts(kind):
            yield f"arguments_type has {field}, which no text can be read as; write a text, and divide it yourself"
    except (NameError, TypeError) as error:  # its annotations name what is not there, or is no type
        yield f"arguments_type has a field that has no type: {told(error)}"


def _set_faults(field: str, found: Any, kind: type, example: str) -> Iterator[str]:
    if not isinstance(found, Set) or not all(isinstance(each, kind) for each in found):
        yield f"{field} is {shown(found)}, write a set such as {example}"
