"""The configuration of a session scheduler that a command is given."""

from pathlib import Path

import click

from spinney.scheduler.config import InvalidConfiguration, SchedulerConfig, load_config
from spinney.scheduler.plugins import default_registry


def scheduler_settings(path: Path | None) -> SchedulerConfig | None:
    """Read a configuration if one is given, checked with the plugins that are installed."""
    try:
        return load_config(path, default_registry()) if path is not None else None
    except InvalidConfiguration as error:
        raise click.ClickException(str(error)) from error
