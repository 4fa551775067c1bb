"""What a command is given about schedulers: configurations, plugins in files, kinds of nodes that could be added."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from spinney.api.documents import InvalidConfiguration, InvalidDocument
from spinney.cli.running import in_one_line
from spinney.cli.settings.node_files import read_nodes
from spinney.cli.terminal.output import apart_from_plugins
from spinney.scheduler.config import SchedulerConfig
from spinney.scheduler.config_files import load_config
from spinney.scheduler.framework.plugin import PluginRegistry
from spinney.sim.policies.files import InvalidPolicy, Policies, PolicyFile, policies_in, with_policies
from spinney.sim.remedies.node_groups import AddableNodes, addable

PluginText = tuple[Path, str, Mapping[str, str]]
"""What ``--plugin`` becomes: path, class and arguments."""
_NONE: Final = Policies()


def scheduler_settings(path: Path | None, policies: Policies = _NONE) -> SchedulerConfig | None:
    """Read a configuration if one is given, checked with the plugins that are installed and those of ``policies``."""
    with in_one_line(InvalidConfiguration):
        return load_config(path, policies.registry()) if path is not None else None


def contenders(
    default: SchedulerConfig, configs: Sequence[Path], files: Sequence[PluginText], policies: Policies
) -> Iterator[tuple[str, SchedulerConfig, PluginRegistry]]:
    """Yield what a comparison runs, by name: each configuration, or the default one, and again with the plugins given.

    A configuration that names such a plugin runs only with it.
    """
    for path in configs or (None,):
        config = scheduler_settings(path, policies) or default
        name = str(path) if path is not None else "default"
        if not policies.named_in(config):
            yield name, *with_policies(config, Policies())
        if policies:
            yield f"{name} + {', '.join(str(file) for file, _, _ in files)}", *with_policies(config, policies)


def node_groups_in(path: Path | None) -> tuple[AddableNodes, ...]:
    """Return the kinds of nodes that a file describes; none without a file."""
    if path is None:
        return ()
    with in_one_line(InvalidDocument):
        return addable(read_nodes(path))


def policies_of(plugins: Iterable[PluginText]) -> Policies:
    with in_one_line(InvalidPolicy):
        return policies_in(
            PolicyFile(file, name, arguments) for path, name, arguments in plugins for file in _files_at(path)
        )


def _files_at(path: Path) -> Sequence[Path]:
    """Return the file at ``path``, or the Python files of a directory; raises :class:`InvalidPolicy` if it has none."""
    if not path.is_dir():
        return [path]
    if found := sorted(path.glob("*.py")):
        return found
    raise InvalidPolicy(f"{path}: this directory has no .py file; expected one with a class that extends Plugin")


def session_policies(plugins: Iterable[PluginText]) -> Policies:
    """Return the plugins of all files, for a command that only runs the session scheduler."""
    with in_one_line(InvalidPolicy), apart_from_plugins():
        return policies_of(plugins).only_session()
