"""What a comparison runs: each configuration, and with plugins of the user each a second time with them.

A configuration that names such a plugin runs only with it.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from spinney.cli.settings.plugin_files import PluginText
from spinney.cli.settings.session import scheduler_settings
from spinney.scheduler.config import SchedulerConfig
from spinney.scheduler.framework.plugin import PluginRegistry
from spinney.sim.policies.files import Policies, with_policies


def contenders(
    default: SchedulerConfig, configs: Sequence[Path], files: Sequence[PluginText], policies: Policies
) -> Iterator[tuple[str, SchedulerConfig, PluginRegistry]]:
    """Yield what is to be run, by name; without a configuration the default one."""
    for path in configs or (None,):
        config = scheduler_settings(path, policies) or default
        name = str(path) if path is not None else "default"
        if not policies.named_in(config):
            yield name, *with_policies(config, Policies())
        if policies:
            yield f"{name} + {', '.join(str(file) for file, _, _ in files)}", *with_policies(config, policies)
