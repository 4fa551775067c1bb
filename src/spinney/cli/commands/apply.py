"""``spinney apply``: write manifests to a cluster by server-side apply."""

import click

from spinney.cli.options import cluster_options, file_option, namespace_option, with_body


@click.command()
@file_option
@namespace_option
@cluster_options
@click.option("--dry-run", is_flag=True, help="Have the server check everything and write nothing.")
@click.option("--force-conflicts", is_flag=True, help="Take over fields that somebody else manages.")
@with_body
def apply() -> None:
    """Apply manifests, in the order written; stops at the first that is refused."""
