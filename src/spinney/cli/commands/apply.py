"""``spinney apply``: write manifests to a cluster by server-side apply."""

import click

from spinney.cli.options import DURATION, cluster_options, file_option, namespace_option, with_body


@click.command()
@file_option
@namespace_option
@cluster_options
@click.option("--dry-run", is_flag=True, help="Have the server check everything and write nothing.")
@click.option("--force-conflicts", is_flag=True, help="Take over fields that another manager owns.")
@click.option("--wait", is_flag=True, help="Then wait until the pods of all that was applied are ready.")
@click.option(
    "--timeout",
    type=DURATION,
    default="5m",
    show_default=True,
    metavar="DURATION",
    help="How long --wait waits, such as 90s or 1h; 0 waits for ever.",
)
@with_body
def apply() -> None:
    """Apply manifests, in the order written; stops at the first that is refused.

    With --wait it says gang by gang what is being waited for, and exits with 1 when the time is over.
    """
