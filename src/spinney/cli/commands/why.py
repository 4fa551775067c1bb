"""``spinney why``: why something waits, and what would have to change."""

import click

from spinney.cli.clusters import completing
from spinney.cli.options import (
    argument,
    cluster_options,
    from_option,
    namespace_option,
    node_groups_option,
    output_option,
    plugin_option,
    scheduler_config_option,
    with_body,
)


@click.command()
@argument(
    "subject",
    metavar="[KIND/]NAME",
    shell_complete=completing.subjects,
    meaning="What to explain: pod/NAME, podgang/NAME, pcs/NAME, pclq/NAME, podgroup/NAME, queue/NAME, or just NAME.",
)
@namespace_option
@cluster_options
@from_option
@scheduler_config_option
@plugin_option
@node_groups_option
@click.option("-v", "--verbose", is_flag=True, help="Add what scheduler developers want to see: node sets.")
@click.option(
    "--best",
    type=click.IntRange(0),
    default=3,
    show_default=True,
    metavar="N",
    help="How many remedies to show; 0: none.",
)
@click.option(
    "--patience",
    type=click.FloatRange(0),
    default=10.0,
    show_default=True,
    metavar="SECONDS",
    help="How long to try changes at most; what was found by then is shown.",
)
@click.option(
    "--explanations",
    metavar="URL",
    help="The running scheduler's metrics endpoint: say where its last cycle and the simulation differ.",
)
@output_option("text", "json", "yaml")
@with_body
def why() -> None:
    """Say why a pod, gang, PodGroup, PodCliqueSet or queue waits.

    NAME may have its kind before it: pod/NAME, podgang/NAME, pcs/NAME, pclq/NAME, podgroup/NAME, queue/NAME. The
    cluster is only read. Where another scheduler decides, the answer is a simulation with its rules, and says so.
    """
