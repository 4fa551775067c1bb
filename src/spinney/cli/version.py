"""``spinney version``."""

import click

from spinney import __version__


@click.command()
def version() -> None:
    """Print the version of Spinney."""
    click.echo(__version__)
