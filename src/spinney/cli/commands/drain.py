"""``spinney drain``: empty nodes, one gang at a time."""

import click

from spinney.cli.clusters import completing
from spinney.cli.options import DURATION, argument, cluster_options, with_body


@click.command()
@argument(
    "nodes",
    nargs=-1,
    required=True,
    metavar="NODE...",
    shell_complete=completing.nodes,
    meaning="The nodes to empty; all are cordoned before the first pod is evicted.",
)
@cluster_options
@click.option("--dry-run", is_flag=True, help="Say which gangs would have to leave, and which budgets are in the way.")
@click.option("--no-checkpoints", is_flag=True, help="Do not ask gangs that declare a checkpoint grace first.")
@click.option("--force", is_flag=True, help="Evict pods that nothing will make anew, too.")
@click.option(
    "--timeout",
    type=DURATION,
    default="10m",
    show_default=True,
    metavar="DURATION",
    help="How long each gang may take to have what it needs again; 0 waits for ever.",
)
@with_body
def drain() -> None:
    """Cordon nodes and evict their pods, one gang at a time, within disruption budgets.

    The next gang is not touched before the last has its minimum of ready pods on other nodes again. Its scheduler
    repairs it in its domain, or moves it whole. Gangs that declare a checkpoint grace are asked first. Pods of
    DaemonSets and static pods stay. Exits with 1 when a gang does not come back in time; the nodes stay cordoned, and
    the command can be run again.
    """
