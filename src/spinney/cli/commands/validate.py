"""``spinney validate``: everything that can be wrong with a manifest and needs no cluster to be found."""

import click

from spinney.cli.options import TEXT_FILE, file_option, output_option, with_body


@click.command()
@file_option
@click.option(
    "--config",
    type=TEXT_FILE,
    help="The operator's configuration: only what it enables is allowed.",
)
@output_option("text", "json", "yaml")
@with_body
def validate() -> None:
    """Check manifests offline: every fault with its file, line and field.

    Exits with 1 if there is one.
    """
