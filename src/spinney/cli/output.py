"""How commands print: columns for people, JSON and YAML for programs, and progress on standard error.

Colour is only used on a terminal, and never when ``NO_COLOR`` is set to anything.
"""

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import click
import yaml

from spinney.api.struct import to_json

GAP: Final = "   "

_COLOURS: Final = {
    "running": "green",
    "placed": "green",
    "placeable": "green",
    "starting": "yellow",
    "gated": "yellow",
    "terminating": "yellow",
    "pending": "red",
}


def columns(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table as kubectl prints one: aligned, without lines, the last column ragged."""
    table = [list(headings), *([_cell(cell) for cell in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = [GAP.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table]
    return "\n".join(lines)


def print_data(value: Any, form: str) -> None:
    """Print a value as ``json`` or ``yaml``."""
    plain = to_json(value)
    if form == "yaml":
        click.echo(yaml.safe_dump(plain, sort_keys=False, allow_unicode=True), nl=False)
    else:
        import json  # noqa: PLC0415 - only here

        click.echo(json.dumps(plain, indent=2, ensure_ascii=False))


def coloured(state: str) -> str:
    """Return a state's word in its colour, where colour is wanted."""
    if os.environ.get("NO_COLOR") or state not in _COLOURS:
        return state
    return click.style(state, fg=_COLOURS[state])


def shortened(text: str, limit: int) -> str:
    """Return ``text`` on one line, cut to ``limit`` characters."""
    flat = " ".join(text.split())
    return flat if len(flat) <= limit else flat[: limit - 4].rstrip() + " ..."


@contextmanager
def progress(text: str) -> Iterator[Callable[[str], None]]:
    """Show that something is under way while the block runs, if standard error is a terminal.

    The block is given a function that changes the text.
    """
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console  # noqa: PLC0415 - commands that finish at once do not pay for it

    with Console(stderr=True).status(text) as status:
        yield status.update


def _cell(value: object) -> str:
    """Return a value on one line; what it is indented by stays."""
    text = str(value) if value not in ("", None) else "-"
    return text[: len(text) - len(text.lstrip())] + " ".join(text.split())
