"""``spinney record``: what happens on a cluster, to be replayed later."""

from pathlib import Path

import click

from spinney.cli.options import argument, cluster_options, with_body


@click.command()
@argument(
    "directory", type=click.Path(file_okay=False, path_type=Path), meaning="Where to write; made if it is not there."
)
@click.option("--every", default="60s", show_default=True, metavar="DURATION", help="How often to look.")
@click.option("--for", "lasting", metavar="DURATION", help="How long to record; until interrupted without it.")
@cluster_options
@with_body
def record() -> None:
    """Write what happens on a cluster to DIRECTORY, for 'spinney replay'.

    Reads only: a snapshot is taken every so often, and kept where it differs from the one before. Like 'spinney
    snapshot' it holds what scheduling reads and nothing else.
    """
