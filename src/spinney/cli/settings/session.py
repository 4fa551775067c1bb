"""The configuration of a session scheduler that a command is given."""

from pathlib import Path
from typing import Final

import click

from spinney.backends.documents import InvalidConfiguration
from spinney.scheduler.config import SchedulerConfig
from spinney.scheduler.config_files import load_config
from spinney.sim.policies.files import Policies

_NONE: Final = Policies()


def scheduler_settings(path: Path | None, policies: Policies = _NONE) -> SchedulerConfig | None:
    """Read a configuration if one is given, checked with the plugins that are installed and those of ``policies``."""
    try:
        return load_config(path, policies.registry()) if path is not None else None
    except InvalidConfiguration as error:
        raise click.ClickException(str(error)) from error
