"""``spinney demo``: chooses the screen and tells the story."""

import sys

from spinney.cli.demo.screen import LiveScreen, PlainScreen
from spinney.cli.demo.story import tell
from spinney.cli.logs import log_to_stderr
from spinney.cli.running import until_interrupted


def demo(*, keep: bool, plain: bool) -> None:
    """Show the demo on this terminal, or as lines."""
    log_to_stderr()
    screen = PlainScreen() if plain or not sys.stdout.isatty() else LiveScreen()
    until_interrupted(tell(screen, keep=keep))
