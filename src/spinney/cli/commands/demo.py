"""``spinney demo``: gangs come up on a GPU cluster, one does not fit and says why, and a change lets it in."""

import click

from spinney.cli.options import with_body


@click.command()
@click.option("--keep", is_flag=True, help="Leave the cluster running afterwards, for kubectl, until Ctrl-C.")
@click.option("--plain", is_flag=True, help="Print lines instead of a live view; the default without a terminal.")
@with_body
def demo() -> None:
    """Bring gangs up on an embedded GPU cluster and show what happens; takes half a minute."""
