"""What changes a cluster: manifests that are applied or deleted, CRDs, and nodes that are emptied or freed."""

import click

from spinney.cli.clusters import completing
from spinney.cli.options import (
    WrittenPath,
    argument,
    cluster_options,
    file_option,
    from_option,
    namespace_option,
    output_option,
    plugin_option,
    scheduler_config_option,
    timeout_option,
    with_body,
)


@click.command()
@file_option
@namespace_option
@cluster_options
@click.option("--dry-run", is_flag=True, help="Have the server check everything and write nothing.")
@click.option("--force-conflicts", is_flag=True, help="Take over fields that another manager owns.")
@click.option("--wait", is_flag=True, help="Then wait until the pods of all that was applied are ready.")
@timeout_option("5m", "How long --wait waits, such as 90s or 1h; 0 waits for ever.")
@with_body
def apply() -> None:
    """Apply manifests, in the order written; what is refused keeps no other from being applied, as with kubectl.

    With --wait it says gang by gang what is being waited for, and exits with 1 when the time is over.
    """


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
    type=WrittenPath(file_okay=False),
    help="Directory to write one file per kind into; without it, or with -, they go to standard output.",
)
@click.option("--create", is_flag=True, help="Create those the cluster lacks; one that exists is never changed.")
@cluster_options
@with_body
def crds() -> None:
    """Show the custom resource definitions Spinney works with, or create those that a cluster lacks."""


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
@timeout_option("10m", "How long each gang may take to have what it needs again; 0 waits for ever.")
@with_body
def drain() -> None:
    """Cordon nodes and evict their pods, one gang at a time, within disruption budgets.

    The next gang is not touched before the last has its minimum of ready pods on other nodes again. Its scheduler
    repairs it in its domain, or moves it whole. Gangs that declare a checkpoint grace are asked first. Pods of
    DaemonSets and static pods stay. Exits with 1 when a gang does not come back in time; the nodes stay cordoned, and
    the command can be run again.
    """


@click.group()
def plan() -> None:
    """Plan changes of a cluster, with what each costs. Nothing is written unless --execute is given."""


@plan.command()
@click.option(
    "--for",
    "gang",
    metavar="GANG",
    shell_complete=completing.listed,
    help="Make room for this gang (NAME or NAMESPACE/NAME), which waits.",
)
@click.option("--nodes", type=click.IntRange(1), metavar="N", help="Free all GPUs of so many nodes instead.")
@click.option(
    "--sharing",
    "level",
    metavar="LABEL",
    help="With --nodes: the nodes must share a value of this label, such as a rack.",
)
@click.option(
    "--solver",
    type=click.Choice(["auto", "exact", "greedy"]),
    default="auto",
    show_default=True,
    help="exact: the fewest moves there are (needs 'spinney[plan]'); greedy: fast; auto: exact on small clusters.",
)
@click.option("--execute", is_flag=True, help="Carry the plan out, gang by gang, within disruption budgets.")
@namespace_option
@cluster_options
@from_option
@scheduler_config_option
@plugin_option
@output_option("table", "json")
@with_body
def defrag() -> None:
    """Find the fewest moves that free the room a gang needs, or whole nodes, and say what each costs.

    A gang that loses more pods than it can spare starts anew as a whole, and all its pods count. Gangs that may not be
    preempted, that nobody would make anew, that share devices, or that a disruption budget protects stay.
    """
