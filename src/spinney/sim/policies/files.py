"""A policy in a file: the plugin classes of a Python file that is not installed.

The file is run as a module under a name of its own, anew each time, so an edit counts at the next run. It may hold
plugins of the session scheduler and of the coscheduler; each is added after what is configured. What is wrong with the
file is one sentence with its line.
"""

import importlib.util
import inspect
import sys
import traceback
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any
from zlib import crc32

import msgspec

from spinney.api.documents import nearest
from spinney.coscheduling.framework.points import FrameworkPlugin
from spinney.coscheduling.framework.registry import FrameworkRegistry
from spinney.coscheduling.plugins import BUILT_IN as FRAMEWORK_PLUGINS
from spinney.coscheduling.process.configuration import (
    MULTI_POINT,
    CoschedulerConfiguration,
    PluginArguments,
    PluginChoice,
)
from spinney.coscheduling.process.configuration import PluginSet as PointPlugins
from spinney.extensions.arguments import InvalidArguments, read_arguments
from spinney.runtime.faults import raised, told
from spinney.scheduler.config import PluginOption, SchedulerConfig
from spinney.scheduler.framework.plugin import Plugin, PluginRegistry
from spinney.scheduler.plugins import default_registry


class InvalidPolicy(ValueError):
    """A file that holds no policy; the text says which, where and why."""


@dataclass(frozen=True)
class PolicyFile:
    """A file, the class in it that is meant (empty: all), and the arguments it is given."""

    path: Path
    name: str = ""
    arguments: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Policies:
    """The plugins of some files, for each scheduler, with their arguments."""

    session: tuple[tuple[type[Plugin], Mapping[str, str]], ...] = ()
    framework: tuple[tuple[type[FrameworkPlugin], Mapping[str, str]], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.session or self.framework)

    def registry(self) -> PluginRegistry:
        """Return the session scheduler's plugins that are installed, and those of the files."""
        registry = default_registry()
        for plugin, _ in self.session:
            registry.register(plugin.name, plugin)
        return registry

    def named_in(self, config: SchedulerConfig) -> bool:
        """Tell whether a configuration names a plugin of the files, and so is nothing without them."""
        own = {plugin.name for plugin, _ in self.session} - set(default_registry())
        return not own.isdisjoint(option.name for option in config.plugins)

    def only_session(self) -> "Policies":
        """Return the same; raises :class:`InvalidPolicy` if it has none of the session scheduler's plugins."""
        if self.framework and not self.session:
            name = self.framework[0][0].__name__
            raise InvalidPolicy(f"{name} is a plugin of the coscheduler; expected a class that extends Plugin")
        return self

    def only_framework(self) -> "Policies":
        """Return the same; raises :class:`InvalidPolicy` if it has none of the coscheduler's plugins."""
        if self.session and not self.framework:
            name = self.session[0][0].__name__
            raise InvalidPolicy(
                f"{name} is a plugin of the session scheduler; expected a class that extends an extension point of "
                "spinney.coscheduling.framework"
            )
        return self


def policies_in(files: Iterable[PolicyFile]) -> Policies:
    """Return the plugins of files, in the order written; raises :class:`InvalidPolicy`."""
    session: list[tuple[type[Plugin], Mapping[str, str]]] = []
    framework: list[tuple[type[FrameworkPlugin], Mapping[str, str]]] = []
    for file in files:
        module = _module(file.path)
        found = _meant(file, [*_classes(module, Plugin), *_classes(module, FrameworkPlugin)])
        for each in found:
            _must_be_new(file, each, session if issubclass(each, Plugin) else framework)
            if issubclass(each, Plugin):
                _must_be_built(file, each)
                session.append((each, file.arguments))
            else:
                framework.append((each, file.arguments))
    return Policies(tuple(session), tuple(framework))


def plugins_in(path: Path) -> list[type[Plugin]]:
    """Return the session scheduler's plugin classes that a file defines; raises :class:`InvalidPolicy`."""
    return [plugin for plugin, _ in policies_in([PolicyFile(path)]).only_session().session]


def with_plugins(config: SchedulerConfig, plugins: Iterable[type[Plugin]]) -> tuple[SchedulerConfig, PluginRegistry]:
    """Return a configuration and a registry that also have ``plugins``, after those that are configured.

    A class that has the name of a configured plugin replaces it where that stands.
    """
    return with_policies(config, Policies(tuple((plugin, {}) for plugin in plugins)))


def with_policies(config: SchedulerConfig, policies: Policies) -> tuple[SchedulerConfig, PluginRegistry]:
    """Return a configuration and a registry that also have the session scheduler's plugins of ``policies``."""
    for plugin, arguments in policies.session:
        option = PluginOption(plugin.name, dict(arguments))
        present = [each.name for each in config.plugins]
        if plugin.name not in present:
            plugins = (*config.plugins, option)
        elif arguments:
            plugins = tuple(option if each.name == plugin.name else each for each in config.plugins)
        else:
            plugins = config.plugins
        config = msgspec.structs.replace(config, plugins=plugins)
    return config, policies.registry()


def with_framework_policies(
    config: CoschedulerConfiguration, policies: Policies
) -> tuple[CoschedulerConfiguration, FrameworkRegistry]:
    """Return a configuration and a registry whose profiles all have the coscheduler's plugins of ``policies``.

    A profile that enables such a plugin at some extension point has it there, and nowhere else.
    """
    registry = FrameworkRegistry.installed(FRAMEWORK_PLUGINS)
    for plugin, arguments in policies.framework:
        registry.register(plugin.name, plugin)
        profiles = []
        for profile in config.profiles:
            plugins = profile.plugins
            if not any(each.name == plugin.name for point in plugins.values() for each in point.enabled):
                everywhere = plugins.get(MULTI_POINT, PointPlugins())
                enabled = (*everywhere.enabled, PluginChoice(name=plugin.name))
                plugins = {**plugins, MULTI_POINT: msgspec.structs.replace(everywhere, enabled=enabled)}
            configured = profile.plugin_config
            if arguments:
                configured = (*configured, PluginArguments(name=plugin.name, args=dict(arguments)))
            profiles.append(msgspec.structs.replace(profile, plugins=plugins, plugin_config=configured))
        config = msgspec.structs.replace(config, profiles=tuple(profiles))
    return config, registry


class _Uncached(SourceFileLoader):
    """Loads a file as it is now: bytecode from before an edit within the same second is never taken for it."""

    def path_stats(self, path: str) -> Mapping[str, Any]:
        raise OSError(f"{path} is read each time")


def _module(path: Path) -> ModuleType:
    """Run a file as a module; files in two directories may be called alike."""
    name = f"policy_{path.stem}_{crc32(str(path.resolve()).encode()):08x}"
    spec = importlib.util.spec_from_file_location(name, path, loader=_Uncached(name, str(path)))
    if spec is None or spec.loader is None:
        raise InvalidPolicy(f"{path}: is no Python file; expected a .py file with a class that extends Plugin")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where dataclasses and pickles look for it
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        raise InvalidPolicy(f"{path}:{error.lineno}: {error.msg}") from error
    except raised() as error:
        frames = traceback.extract_tb(error.__traceback__)
        line = next((each.lineno for each in frames if Path(each.filename).resolve() == path.resolve()), None)
        raise InvalidPolicy(f"{path}:{line}: {told(error)}") from error
    return module


def _classes(module: ModuleType, base: type[Any]) -> list[type[Any]]:
    """Return the classes a module defines itself that extend ``base``."""
    return [
        each
        for each in vars(module).values()
        if isinstance(each, type) and issubclass(each, base) and each.__module__ == module.__name__
    ]


def _meant(file: PolicyFile, found: Sequence[type[Any]]) -> list[type[Any]]:
    """Return the classes that a file is named for."""
    if not found:
        raise InvalidPolicy(
            f"{file.path}: defines no class that extends spinney.scheduler.Plugin, or an extension point of "
            "spinney.coscheduling.framework"
        )
    chosen = [each for each in found if file.name in ("", each.__name__)]
    if not chosen:
        names = [each.__name__ for each in found]
        raise InvalidPolicy(f"{file.path}: has no plugin class {file.name}; {nearest(file.name, names)}")
    if file.arguments and len(chosen) > 1:
        names = [each.__name__ for each in found]
        raise InvalidPolicy(
            f"{file.path}: has {len(names)} plugin classes, so say which one the arguments are for: "
            f"{file.path}:{names[0]},..."
        )
    unnamed = [each.__name__ for each in chosen if not getattr(each, "name", "")]
    if unnamed:
        raise InvalidPolicy(f"{file.path}: {unnamed[0]} has no name; give the class an attribute 'name'")
    return chosen


def _must_be_new(file: PolicyFile, plugin: type[Any], known: Iterable[tuple[type[Any], Mapping[str, str]]]) -> None:
    """Refuse a second plugin of a name: one would take the place of the other."""
    for other, _ in known:
        if other.name == plugin.name:
            home = inspect.getfile(other)
            where = "" if Path(home).samefile(file.path) else f" of {home}"
            raise InvalidPolicy(
                f"{file.path}: {other.__name__}{where} and {plugin.__name__} are both named {plugin.name!r}; give each "
                f"a name of its own, or choose one: {file.path}:{plugin.__name__}"
            )


def _must_be_built(file: PolicyFile, plugin: type[Plugin]) -> None:
    """Build a plugin as a session would, to say now what is wrong with its class."""
    here = f"{file.path}:{inspect.getsourcelines(plugin)[1]}"
    if faults := default_registry().faults_of(plugin.name, plugin):
        raise InvalidPolicy(f"{here}: {plugin.__name__}: {'; '.join(faults)}")
    if file.arguments and plugin.arguments_type is not None:
        try:
            read_arguments(plugin.arguments_type, file.arguments)
        except InvalidArguments as error:
            raise InvalidPolicy(f"{file.path}:{plugin.__name__}: {error}") from error
    try:
        plugin(dict(file.arguments))
    except raised() as error:
        raise InvalidPolicy(
            f"{here}: {plugin.__name__} cannot be built: {told(error)}; a plugin is called with its "
            "arguments, a mapping of text to text, and may leave __init__ out"
        ) from error
