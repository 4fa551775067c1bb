"""``spinney plan``: what would have to be done, with its price; done only if that is asked for."""

import click

from spinney.cli.options import cluster_options, from_option, namespace_option, output_option, with_body


@click.group()
def plan() -> None:
    """Plan changes of a cluster, with what each costs. Nothing is written unless --execute is given."""


@plan.command()
@click.option("--for", "gang", metavar="GANG", help="Make room for this gang (NAME or NAMESPACE/NAME), which waits.")
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
@output_option("table", "json")
@with_body
def defrag() -> None:
    """Find the fewest moves that free the room a gang needs, or whole nodes, and say what each costs.

    A gang that loses more pods than it can spare starts anew as a whole, and all its pods count. Gangs that may not be
    preempted, that nobody would make anew, that share devices, or that a disruption budget protects stay.
    """
