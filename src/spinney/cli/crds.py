"""``spinney crds``: print the custom resource definitions, or write them into a directory."""

from pathlib import Path

import click

from spinney.cli.options import done_by


@click.command(name="crds")
@click.option(
    "--output",
    "-o",
    type=click.Path(file_okay=False, path_type=Path),
    help="Directory to write one file per kind into; without it they go to standard output.",
)
@done_by("spinney.cli.bodies.crds:crds")
def crds() -> None:
    """Show the custom resource definitions Spinney works with, ready for kubectl apply."""
