"""Counting the writes that happen inside a block of code.

The safety resync must tell whether a reconcile changed anything. Rather than have every reconciler report it, the
client notes each successful write here, in a context variable that tasks started inside the block inherit.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar


class Writes:
    """How many writes succeeded so far. Mutable."""

    def __init__(self) -> None:
        self.count = 0


_current: ContextVar[Writes | None] = ContextVar("spinney_writes", default=None)


@contextmanager
def counting_writes() -> Iterator[Writes]:
    """Count the writes of clients inside the block."""
    writes = Writes()
    token = _current.set(writes)
    try:
        yield writes
    finally:
        _current.reset(token)


def note_write() -> None:
    """Note one write, where writes are counted."""
    if (writes := _current.get()) is not None:
        writes.count += 1
