"""``spinney delete``: delete what manifests name."""

import click

from spinney.cli.options import cluster_options, file_option, namespace_option, with_body


@click.command()
@file_option
@namespace_option
@cluster_options
@click.option("--dry-run", is_flag=True, help="Have the server check everything and delete nothing.")
@click.option("--ignore-not-found", is_flag=True, help="Do not mind objects that are not there.")
@with_body
def delete() -> None:
    """Delete what manifests name, last written first; what they own goes with them.

    Exits with 1 if one was not there.
    """
