"""A policy in a file: the plugin classes of a Python file that is not installed, for trying it on a snapshot.

The file is run as a module under a name of its own, anew each time, so an edit counts at the next run. What is wrong
with it is one sentence with its line.
"""

import importlib.util
import inspect
import sys
import traceback
from collections.abc import Iterable
from pathlib import Path

import msgspec

from spinney.scheduler.config import PluginOption, SchedulerConfig
from spinney.scheduler.plugin import Plugin, PluginRegistry, default_registry


class InvalidPolicy(ValueError):  # noqa: N818 - named for the situation
    """A file that holds no policy; the text says which, where and why."""


def plugins_in(path: Path) -> list[type[Plugin]]:
    """Return the plugin classes that a file defines, in the order written; raises :class:`InvalidPolicy`."""
    spec = importlib.util.spec_from_file_location(f"policy_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise InvalidPolicy(f"{path}: is no Python file; expected a .py file with a class that extends Plugin")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where dataclasses and pickles look for it
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        raise InvalidPolicy(f"{path}:{error.lineno}: {error.msg}") from error
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        line = next((each.lineno for each in frames if Path(each.filename).name == path.name), None)
        raise InvalidPolicy(f"{path}:{line}: {type(error).__name__}: {error}") from error
    found = [
        each
        for each in vars(module).values()
        if isinstance(each, type) and issubclass(each, Plugin) and each.__module__ == module.__name__
    ]
    if not found:
        raise InvalidPolicy(f"{path}: defines no class that extends spinney.scheduler.Plugin")
    unnamed = [each.__name__ for each in found if not getattr(each, "name", "")]
    if unnamed:
        raise InvalidPolicy(f"{path}: {unnamed[0]} has no name; give the class an attribute 'name'")
    for each in found:
        _must_be_built(path, each)
    return found


def _must_be_built(path: Path, plugin: type[Plugin]) -> None:
    """Build a plugin as a session would, to say now what is wrong with its class."""
    here = f"{path}:{inspect.getsourcelines(plugin)[1]}"
    if missing := getattr(plugin, "__abstractmethods__", None):
        raise InvalidPolicy(f"{here}: {plugin.__name__} has no {', '.join(sorted(missing))}(self, session)")
    try:
        plugin({})
    except Exception as error:
        raise InvalidPolicy(
            f"{here}: {plugin.__name__} cannot be built: {type(error).__name__}: {error}; a plugin is called with its "
            "arguments, a mapping of text to text, and may leave __init__ out"
        ) from error


def with_plugins(config: SchedulerConfig, plugins: Iterable[type[Plugin]]) -> tuple[SchedulerConfig, PluginRegistry]:
    """Return a configuration and a registry that also have ``plugins``, after those that are configured.

    A class that has the name of a configured plugin replaces it where that stands.
    """
    registry = default_registry()
    for plugin in plugins:
        registry.register(plugin.name, plugin)
        if all(option.name != plugin.name for option in config.plugins):
            config = msgspec.structs.replace(config, plugins=(*config.plugins, PluginOption(plugin.name)))
    return config, registry
