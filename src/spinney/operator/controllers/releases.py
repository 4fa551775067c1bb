"""Opening gates and letting gangs go, never both at once.

A gate is opened because a gang says so, and the request is on its way when another controller finds that the gang is
not wanted any more. So whoever deletes a gang closes it first: no further gate is opened on its word, and those under
way are waited for.
"""

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from spinney.api.podgang import PodGang


class Releases:
    """The gates being opened on the word of each gang, and the gangs that are closed, by uid. Mutable."""

    def __init__(self) -> None:
        self._under_way: Counter[str] = Counter()
        self._closed: dict[str, asyncio.Event] = {}

    @contextmanager
    def opening(self, gang: PodGang) -> Iterator[bool]:
        """Announce that a gate is opened inside the block; yields whether that is still allowed."""
        uid = _uid(gang)
        if uid in self._closed:
            yield False
            return
        self._under_way[uid] += 1
        try:
            yield True
        finally:
            self._under_way[uid] -= 1
            if not self._under_way[uid]:
                del self._under_way[uid]
                if uid in self._closed:
                    self._closed[uid].set()

    async def close(self, gang: PodGang) -> None:
        """Allow no further gate, and wait for those under way."""
        quiet = self._closed.setdefault(_uid(gang), asyncio.Event())
        if self._under_way[_uid(gang)]:
            await quiet.wait()

    def reopen(self, gang: PodGang) -> None:
        """Allow gates again: the gang is wanted after all, or it is gone and nobody will ask. Ends any wait for it."""
        quiet = self._closed.pop(_uid(gang), None)
        if quiet is not None:
            quiet.set()


def _uid(gang: PodGang) -> str:
    return gang.metadata.uid or ""
