"""``spinney version``."""

import click

import spinney


@click.command()
def version() -> None:
    """Print the version of Spinney."""
    click.echo(spinney.__version__)
