"""What the user looks at, the keys as they are pressed, and what each does: a view and a key in, the next view out."""

import asyncio
import os
import re
import sys
import termios
import tty
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Final

PAGES: Final = ("gangs", "nodes", "queues", "racks")
SORTS: Final[Mapping[str, Sequence[str]]] = {
    "gangs": ("waiting first", "name", "GPUs", "queue"),
    "nodes": ("name", "free GPUs", "state"),
    "queues": ("tree",),
    "racks": ("rack",),
}
"""The orders of each page; the first is the one it begins with."""
HELP: Final = "tab page  ↑↓ PgUp PgDn move  enter open  esc back  / search  s sort  q quit"


@dataclass(frozen=True)
class ScreenView:
    """A page, or what was opened on it: where the cursor is, what is searched for, and how rows are ordered."""

    page: str = "gangs"
    opened: str = ""
    """The gang or node whose page is shown; empty for the list."""
    cursor: int = 0
    search: str = ""
    typing: bool = False
    sort: int = 0

    @property
    def order(self) -> str:
        orders = SORTS[self.page]
        return orders[self.sort % len(orders)]


def pressed(view: ScreenView, key: str, keys: Sequence[str], room: int) -> ScreenView | None:
    """Return the view after a key was pressed; ``None`` ends the program.

    ``keys`` are those of the rows that the view lists, ``room`` is how many of them fit on the screen.
    """
    if view.typing:
        return _typed(view, key)
    steps = {"up": -1, "k": -1, "down": 1, "j": 1, "pgup": -room, "pgdn": room, "home": -len(keys), "end": len(keys)}
    if key in steps:
        return replace(view, cursor=min(max(view.cursor + steps[key], 0), max(len(keys) - 1, 0)))
    match key:
        case "q":
            return None
        case "esc":
            return replace(view, opened="", cursor=0) if view.opened else replace(view, search="", cursor=0)
        case "enter" if not view.opened and view.cursor < len(keys) and view.page in ("gangs", "nodes"):
            return replace(view, opened=keys[view.cursor], cursor=0)
        case "/":
            return replace(view, typing=True, search="", cursor=0)
        case "s":
            return replace(view, sort=view.sort + 1, cursor=0)
        case "tab":
            return ScreenView(PAGES[(PAGES.index(view.page) + 1) % len(PAGES)])
        case "1" | "2" | "3" | "4":
            return ScreenView(PAGES[int(key) - 1])
        case _:
            return view


def _typed(view: ScreenView, key: str) -> ScreenView:
    match key:
        case "enter":
            return replace(view, typing=False)
        case "esc":
            return replace(view, typing=False, search="", cursor=0)
        case "backspace":
            return replace(view, search=view.search[:-1], cursor=0)
        case _ if len(key) == 1 and key.isprintable():
            return replace(view, search=view.search + key, cursor=0)
        case _:
            return view


_KEYS: Final = {
    "\x1b[A": "up",
    "\x1b[B": "down",
    "\x1b[5~": "pgup",
    "\x1b[6~": "pgdn",
    "\x1b[H": "home",
    "\x1b[F": "end",
    "\x1b": "esc",
    "\r": "enter",
    "\n": "enter",
    "\t": "tab",
    "\x7f": "backspace",
    "\x08": "backspace",
}
_SEQUENCE: Final = re.compile(r"\x1b\[[0-9;]*[A-Za-z~]|.", re.DOTALL)


def keys_in(text: str) -> list[str]:
    """Return the keys that a terminal sent: letters as they are, others by name; unknown ones are left out."""
    found = (_KEYS.get(part, part) for part in _SEQUENCE.findall(text))
    return [key for key in found if not key.startswith("\x1b")]


@contextmanager
def keys(some: asyncio.Event) -> Iterator[Callable[[], list[str]]]:
    """Set ``some`` when keys are pressed, for the time of the block, which is given a function that takes them.

    There are none where standard input is no terminal.
    """
    pressed: list[str] = []

    def taken() -> list[str]:
        found, pressed[:] = list(pressed), []
        return found

    if not sys.stdin.isatty():
        yield taken
        return
    descriptor, loop = sys.stdin.fileno(), asyncio.get_running_loop()
    before = termios.tcgetattr(descriptor)

    def read() -> None:
        pressed.extend(keys_in(os.read(descriptor, 1024).decode(errors="replace")))
        some.set()

    try:
        tty.setcbreak(descriptor)
        loop.add_reader(descriptor, read)
        yield taken
    finally:
        loop.remove_reader(descriptor)
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
