"""``spinney snapshot``: what scheduling reads of a cluster, in a file."""

from pathlib import Path

import click

from spinney.cli.options import cluster_options, with_body


@click.command()
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("snapshot.json.gz"),
    show_default=True,
    help="File to write (mode 0600).",
)
@cluster_options
@with_body
def snapshot() -> None:
    """Write a snapshot of a cluster for 'spinney simulate' and '--from'.

    It holds what scheduling reads and nothing else: no secrets, no environment, no commands.
    """
