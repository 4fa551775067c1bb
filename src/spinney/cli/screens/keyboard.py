"""Keys as they are pressed: the terminal gives each at once, without a line end, and shows none of them."""

import asyncio
import os
import re
import sys
import termios
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

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
