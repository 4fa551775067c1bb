"""The configurations of session schedulers that a command is given."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from spinney.api.documents import InvalidConfiguration
from spinney.cli.running import in_one_line
from spinney.cli.settings.plugin_files import PluginText
from spinney.scheduler.config import SchedulerConfig
from spinney.scheduler.config_files import load_config
from spinney.scheduler.framework.plugin import PluginRegistry
from spinney.sim.policies.files import Policies, with_policies

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
