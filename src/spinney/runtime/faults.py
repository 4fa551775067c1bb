"""What is taken for a fault of code that others wrote and that is called here.

Such code may raise anything: also the end of the program, which is not for it to decide, a cancellation that nobody
asked for, or a class that is no ``Exception`` (as a panic of a library written in Rust is). All of it is the fault of
whoever raised it, and ends nothing else. What comes from outside passes: the interrupt of a user, and the word that the
work is of no use any more.

``except raised() as error:`` reads so. Python evaluates the call only when something was raised.
"""

import asyncio
import sys
import threading
from typing import Final

from spinney.runtime.tasks import is_being_cancelled

Caught = tuple[type[BaseException], ...]
_TOLD: Final = 1000
"""How much is told of what an error says: all of it may be a whole page, and more than a status can hold."""


class Stopping(BaseException):
    """Ends work from outside; it is nobody's fault, whatever code it passes."""


def raised() -> Caught:
    """Return what to catch around code of others that awaits nothing."""
    return () if _comes_from_outside(sys.exception()) else (BaseException,)


def raised_later() -> Caught:
    """Return what to catch around code of others that is awaited: a cancellation of the task passes, too."""
    error = sys.exception()
    if isinstance(error, GeneratorExit) or (isinstance(error, asyncio.CancelledError) and is_being_cancelled()):
        return ()
    return raised()


def _comes_from_outside(error: BaseException | None) -> bool:
    if isinstance(error, KeyboardInterrupt):  # Python interrupts no other thread
        return threading.current_thread() is threading.main_thread()
    return isinstance(error, Stopping)


def told(error: BaseException) -> str:
    """Return an error of others as a message tells it: its type and what it says, if that can be had."""
    kind, text = type(error).__name__, text_of(error)
    said = f"{kind}: {text}" if text else kind
    return f"{said}, though nobody cancelled it" if isinstance(error, asyncio.CancelledError) else said


def text_of(error: BaseException) -> str:
    """Return what an error of others says, or that it cannot be had."""
    try:
        text = printable(str(error))
    except raised() as another:
        return f"its text cannot be had: {type(another).__name__}"
    return text if len(text) <= _TOLD else f"{text[:_TOLD]} ..."


def printable(text: str) -> str:
    """Return a text of others as it can be written anywhere: halves of characters, which no encoding has, as escapes.

    Names of files that are not UTF-8 are read as such halves.
    """
    return str.encode(text, errors="backslashreplace").decode()
