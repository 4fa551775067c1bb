"""Plugins in files that a command is given with ``--plugin``."""

from collections.abc import Iterable, Mapping
from pathlib import Path

import click

from spinney.sim.policies import InvalidPolicy, Policies, PolicyFile, policies_in

PluginText = tuple[Path, str, Mapping[str, str]]
"""What ``--plugin`` becomes: path, class and arguments."""


def policies_of(plugins: Iterable[PluginText]) -> Policies:
    """Return the plugins of all files."""
    try:
        return policies_in(PolicyFile(*each) for each in plugins)
    except InvalidPolicy as error:
        raise click.ClickException(str(error)) from error


def session_policies(plugins: Iterable[PluginText]) -> Policies:
    """Return the plugins of all files, for a command that only runs the session scheduler."""
    try:
        return policies_of(plugins).only_session()
    except InvalidPolicy as error:
        raise click.ClickException(str(error)) from error
