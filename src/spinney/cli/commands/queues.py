"""``spinney queues``: the tree of queues with what each is entitled to, holds and asks for."""

import click

from spinney.cli.options import cluster_options, from_option, output_option, scheduler_config_option, with_body


@click.command()
@click.option(
    "--resource", multiple=True, metavar="NAME", help="Only this resource: gpu, cpu, memory; may be repeated."
)
@cluster_options
@from_option
@scheduler_config_option
@output_option("table", "wide", "json", "yaml")
@with_body
def queues() -> None:
    """Show the queues: quota, limit, fair share, what is allocated and what is requested.

    The table shows GPUs; -o wide shows cpu and memory too.
    """
