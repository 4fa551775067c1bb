"""Working off what was noted, also while the disk is full."""

from collections.abc import Callable
from typing import NoReturn

import structlog

from spinney.runtime import Clock
from spinney.server.background.notes import KeyQueue, T
from spinney.server.store import ChangeNotKept

log = structlog.get_logger()

_PAUSE = 1.0  # seconds before a change that could not be kept is tried again


async def work_off(notes: KeyQueue[T], work: Callable[[T], None], clock: Clock) -> NoReturn:
    """Do ``work`` for every item until cancelled; what could not be kept is tried again until it is."""
    while True:
        item = await notes.take()
        try:
            work(item)
        except ChangeNotKept as error:
            log.warning("background work of the embedded cluster waits", item=str(item), reason=str(error))
            notes.note(item)
            await clock.sleep(_PAUSE)
