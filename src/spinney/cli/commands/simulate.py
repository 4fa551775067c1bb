"""``spinney simulate``: what would be placed where, what would wait and why, and what another configuration changes."""

import click

from spinney.cli.options import (
    FILE,
    TEXT_FILE,
    argument,
    cluster_options,
    from_option,
    namespace_option,
    node_groups_option,
    output_option,
    plugin_option,
    with_body,
)


@click.command()
@argument(
    "snapshot",
    required=False,
    type=FILE,
    meaning="A file of 'spinney snapshot', KAI's snapshot zip, or manifests; without it the cluster is read.",
)
@from_option
@click.option("-f", "--file", "files", multiple=True, type=TEXT_FILE, help="Workload to add; may be repeated.")
@click.option(
    "--config",
    "configs",
    multiple=True,
    type=TEXT_FILE,
    help="Scheduler configuration; with two, the difference between them is shown.",
)
@plugin_option
@node_groups_option
@click.option(
    "--cycles",
    type=click.IntRange(1),
    default=20,
    show_default=True,
    help="Stop after so many cycles; earlier when one changes nothing.",
)
@namespace_option
@cluster_options
@output_option("table", "wide", "json", "yaml")
@with_body
def simulate() -> None:
    """Run scheduling cycles on SNAPSHOT and say what happens; nothing is written anywhere.

    SNAPSHOT is a file of 'spinney snapshot', KAI's snapshot zip, or manifests; without it the cluster is read. Workload
    files may hold Pods, PodGroups of any family, PodGangs and PodCliqueSets. With --plugin everything is run twice,
    without and with the plugin, and what it changes is shown.
    """
