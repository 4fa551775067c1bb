"""``spinney demo``: chooses the screen and tells the story."""

import sys

import click

from spinney.cli.demo.screen import LiveScreen, Screen
from spinney.cli.demo.stage import Stuck
from spinney.cli.demo.story import tell
from spinney.cli.running import until_interrupted
from spinney.cli.terminal.abilities import takes_commands
from spinney.cli.terminal.logs import log_to_stderr


def demo(*, keep: bool, plain: bool) -> None:
    log_to_stderr()
    screen = Screen() if plain or not takes_commands(sys.stdout) else LiveScreen()
    try:
        until_interrupted(tell(screen, keep=keep))
    except BaseExceptionGroup as group:  # the cluster runs in task groups
        stuck = group.subgroup(Stuck)
        if stuck is None:
            raise
        raise click.ClickException(str(_first(stuck))) from group


def _first(error: BaseException) -> BaseException:
    """Return the first error of a group, however deep it lies."""
    return _first(error.exceptions[0]) if isinstance(error, BaseExceptionGroup) else error
