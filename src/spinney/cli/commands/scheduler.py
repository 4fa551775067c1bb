"""``spinney scheduler``: run the session scheduler against a cluster, or beside another scheduler without writing."""

import click

from spinney.cli.options import configuration_options, plugin_option, process_options, with_body


@click.command()
@configuration_options(config=": Spinney's own form, or a KAI SchedulingShard", check="and print it with every default")
@plugin_option
@click.option("--dry-run", is_flag=True, help="Only watch: decide, write nothing, and compare with who does write.")
@click.option(
    "--scheduler-name",
    "scheduler_names",
    multiple=True,
    metavar="NAME",
    help="Serve pods of this name, instead of those the configuration lists; may be repeated.",
)
@process_options(leading="Schedule")
@with_body
def scheduler() -> None:
    """Run the session scheduler against a cluster.

    With --dry-run it runs beside another scheduler, whose pods --scheduler-name names (default-scheduler, say), and
    never writes. It logs what it would have done, and when it is stopped it prints a comparison.
    """
