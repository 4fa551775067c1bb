"""Plugins in files that a command is given with ``--plugin``."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from spinney.cli.running import in_one_line
from spinney.sim.policies.files import InvalidPolicy, Policies, PolicyFile, policies_in

PluginText = tuple[Path, str, Mapping[str, str]]
"""What ``--plugin`` becomes: path, class and arguments."""


def policies_of(plugins: Iterable[PluginText]) -> Policies:
    """Return the plugins of all files."""
    with in_one_line(InvalidPolicy):
        return policies_in(
            PolicyFile(file, name, arguments) for path, name, arguments in plugins for file in _python_files(path)
        )


def _python_files(path: Path) -> list[Path]:
    return sorted(path.glob("*.py")) if path.is_dir() else [path]


def session_policies(plugins: Iterable[PluginText]) -> Policies:
    """Return the plugins of all files, for a command that only runs the session scheduler."""
    with in_one_line(InvalidPolicy):
        return policies_of(plugins).only_session()
