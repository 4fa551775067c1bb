"""``kubectl_complete-spinney``: what kubectl runs on tab after ``kubectl spinney``.

kubectl passes the words after the plugin's name, the last of which is to be completed, and reads what cobra's
completion writes: a word and its meaning per line, then a number that says what the shell may add by itself.
"""

import sys

import click
from click.shell_completion import ShellComplete

from spinney.cli import main as spinney

_FILES_TOO = 0
_NO_FILES = 4


def main() -> None:
    """Print what could come next."""
    words = sys.argv[1:] or [""]
    found = ShellComplete(spinney, {}, "spinney", "_SPINNEY_COMPLETE").get_completions(words[:-1], words[-1])
    words_found = [item for item in found if item.type == "plain"]
    for item in words_found:
        click.echo(f"{item.value}\t{' '.join(item.help.split())}" if item.help else item.value)
    # Where click wants a path it says so instead of naming any: the shell knows how to find them.
    click.echo(f":{_NO_FILES if len(words_found) == len(found) else _FILES_TOO}")
