"""How commands print: columns for people, JSON and YAML for programs, and progress on standard error.

Colour is only used on a terminal, and never when ``NO_COLOR`` is set to anything.
"""

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from shutil import get_terminal_size
from typing import Any, Final, TextIO

import click
import yaml

from spinney.api.struct import to_json
from spinney.cli.terminal.abilities import takes_commands
from spinney.cli.terminal.printable import printable

GAP: Final = "   "
_LAST_COLUMN: Final = 60
"""Characters of a text that may be cut, where there is no terminal to fit."""
_LEAST_COLUMN: Final = 20
"""Characters it keeps on the narrowest terminal."""
_NARROW: Final = 100
"""Characters of a terminal below which tables leave out what they can do without."""

COLOURS: Final = {
    "running": "green",
    "ready": "green",
    "placed": "green",
    "placeable": "green",
    "starting": "yellow",
    "gated": "yellow",
    "terminating": "yellow",
    "cordoned": "yellow",
    "pending": "red",
    "not ready": "red",
}
"""How words for the state of gangs, pods and nodes are coloured."""


def echo(text: object = "", *, err: bool = False, nl: bool = True) -> None:
    """Print a text on standard output, or on standard error."""
    try:
        click.echo(printable(str(text)), err=err, nl=nl)
    except BrokenPipeError:
        raise  # nobody reads on, which is no fault
    except OSError as error:
        let_go(sys.stderr if err else sys.stdout)
        raise click.ClickException(unwritable(error)) from error


def unwritable(error: OSError) -> str:
    """Return that nothing can be printed, and why."""
    return f"standard output cannot be written: {error.strerror}"


def let_go(stream: TextIO) -> None:
    """Let go of what a stream still holds: Python would try once more at its end, and say that it failed."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


@contextmanager
def apart_from_plugins() -> Iterator[None]:
    """Have standard output to ourselves: what plugins print while the block runs goes to standard error."""
    with redirect_stdout(sys.stderr):
        yield


def columns(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table as kubectl prints one: aligned, without lines, the last column ragged."""
    table = [list(headings), *([_cell(cell) for cell in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = [GAP.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table]
    return "\n".join(lines)


def room_for(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> int:
    """Return how many characters a last column may have for the table to fit the terminal; without one, a few words."""
    if not sys.stdout.isatty():
        return _LAST_COLUMN
    table = [list(headings), *([_cell(cell) for cell in row] for row in rows)]
    used = sum(max(map(len, column)) + len(GAP) for column in zip(*table, strict=True))
    return max(get_terminal_size().columns - used, _LEAST_COLUMN)


def is_narrow() -> bool:
    """Tell whether the answer goes to a terminal that has no room for every column."""
    return sys.stdout.isatty() and get_terminal_size().columns < _NARROW


def print_data(value: Any, form: str) -> None:
    """Print a value as ``json`` or ``yaml``."""
    plain = to_json(value)
    if form == "yaml":
        echo(yaml.safe_dump(plain, sort_keys=False, allow_unicode=True), nl=False)
    else:
        import json  # noqa: PLC0415 - only here

        echo(json.dumps(plain, indent=2, ensure_ascii=False))


def coloured(state: str) -> str:
    """Return a state's word in its colour, where colour is wanted."""
    if os.environ.get("NO_COLOR") or not takes_commands(sys.stdout) or state not in COLOURS:
        return state
    return click.style(state, fg=COLOURS[state])


def shortened(text: str, limit: int) -> str:
    """Return ``text`` on one line, cut to ``limit`` characters."""
    flat = " ".join(text.split())
    return flat if len(flat) <= limit else flat[: limit - 4].rstrip() + " ..."


@contextmanager
def progress(text: str, *, steps: int | None = None, repeat: bool = False) -> Iterator[Callable[[str], None]]:
    """Show what is under way and for how long, while the block runs and if standard error is a terminal.

    The block is given a function to call at the beginning of each step, with its text; with ``steps`` there is a bar.
    Where there is no terminal, ``repeat`` prints each new text in a line of its own.
    """
    if not takes_commands(sys.stderr):
        said = ""

        def once(what: str) -> None:
            nonlocal said
            if what != said:
                echo(what, err=True)
            said = what

        yield once if repeat else lambda _: None
        return
    from rich.console import Console  # noqa: PLC0415 - commands that finish at once do not pay for it
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn  # noqa: PLC0415

    shown = [SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()]
    if steps is not None:
        shown.insert(1, BarColumn(24))
    with Progress(*shown, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(text, total=steps)
        begun = 0

        def say(what: str) -> None:
            nonlocal begun
            bar.update(task, description=what, completed=begun)
            begun += 1

        yield say


def _cell(value: object) -> str:
    """Return a value on one line; what it is indented by stays."""
    text = str(value) if value not in ("", None) else "-"
    return text[: len(text) - len(text.lstrip())] + " ".join(text.split())
