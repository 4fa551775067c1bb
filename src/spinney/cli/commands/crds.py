"""``spinney crds``: print custom resource definitions, write them into a directory, or create those a cluster lacks."""

from pathlib import Path

import click

from spinney.cli.options import cluster_options, with_body

OWNERS = ("grove", "kai", "volcano", "scheduler-plugins")


@click.command(name="crds")
@click.option(
    "--of",
    "owners",
    multiple=True,
    type=click.Choice((*OWNERS, "all")),
    default=("grove",),
    show_default=True,
    help="Whose kinds; may be repeated. Those of a scheduler come with its own installation, where it is installed.",
)
@click.option(
    "--output",
    "-o",
    type=click.Path(file_okay=False, path_type=Path),
    help="Directory to write one file per kind into; without it they go to standard output.",
)
@click.option("--create", is_flag=True, help="Create those the cluster lacks; one that exists is never changed.")
@cluster_options
@with_body
def crds() -> None:
    """Show the custom resource definitions Spinney works with, or create those that a cluster lacks."""
