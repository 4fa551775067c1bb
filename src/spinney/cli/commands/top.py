"""``spinney top``: the nodes of any cluster and the gangs on them, as they change."""

import click

from spinney.cli.options import cluster_options, from_option, namespace_option, with_body


@click.command()
@namespace_option
@cluster_options
@from_option
@click.option("--once", is_flag=True, help="Print one picture and end; the default without a terminal.")
@with_body
def top() -> None:
    """Watch a cluster: gangs with those that wait first, nodes, queues, and the racks as a picture.

    Arrows scroll, / searches, s sorts, enter opens the page of a gang or a node, tab is the next page, q ends it.
    Without -n the pods of all namespaces are shown.
    """
