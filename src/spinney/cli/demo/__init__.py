"""``spinney demo``: gangs come up on a GPU cluster, one does not fit and says why, and a change lets it in."""

import sys

import click

from spinney.cli.demo.screen import LiveScreen, PlainScreen
from spinney.cli.demo.story import tell
from spinney.cli.logs import log_to_stderr
from spinney.cli.running import until_interrupted


@click.command()
@click.option("--keep", is_flag=True, help="Leave the cluster running afterwards, for kubectl, until Ctrl-C.")
@click.option("--plain", is_flag=True, help="Print lines instead of a live view; the default without a terminal.")
def demo(keep: bool, plain: bool) -> None:
    """Bring gangs up on an embedded GPU cluster and show what happens; takes half a minute."""
    log_to_stderr()
    screen = PlainScreen() if plain or not sys.stdout.isatty() else LiveScreen()
    until_interrupted(tell(screen, keep=keep))
