"""``spinney completion``: what makes a shell complete commands, options and names."""

import click
from click.shell_completion import get_completion_class

VARIABLE = "_SPINNEY_COMPLETE"
"""The environment variable by which the script asks what could come next."""


def completion(*, shell: str) -> None:
    kind = get_completion_class(shell)
    assert kind is not None, "the option allows only shells that click knows"
    root = click.get_current_context().find_root()
    click.echo(kind(root.command, {}, "spinney", VARIABLE).source())
