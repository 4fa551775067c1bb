"""``spinney delete``: delete what manifests name."""

import click

from spinney.cli.options import cluster_options, done_by, file_option, namespace_option


@click.command()
@file_option
@namespace_option
@cluster_options
@click.option("--dry-run", is_flag=True, help="Have the server check everything and delete nothing.")
@click.option("--ignore-not-found", is_flag=True, help="Do not mind objects that are not there.")
@done_by("spinney.cli.bodies.delete:delete")
def delete() -> None:
    """Delete what manifests name, last written first; what they own goes with them.

    Exits with 1 if one was not there.
    """
