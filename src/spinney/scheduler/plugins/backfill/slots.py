"""When the next of many like jobs starts: as soon as there is room for one more, or as one before it ends.

Room for one, two, four and so on of them is looked for in the outlook; in between, time is taken to pass evenly.
"""

import heapq
import math
from collections.abc import Callable


class Slots:
    """Room for jobs that ask for the same, given to one after the other. Mutable; times are seconds from now.

    ``lent`` places are there from now on, for jobs that start before ``until``: then they would have been free anyway.
    """

    def __init__(self, room_for: Callable[[int], float | None], *, lent: int = 0, until: float = 0.0) -> None:
        self._room_for = room_for
        """In how many seconds there is room for so many at once; ``None``: never, or nobody knows."""
        self._known = [(0, 0.0)]
        """How many have room, and when: the numbers that were asked for."""
        self._most = math.inf
        """So many never have room at once."""
        self._used = 0
        self._again: list[float] = []
        """When jobs end that were given room: a heap."""
        self._lent = [0.0] * lent
        """When lent places are free: a heap."""
        self._until = until
        self._skipped: list[float] = []
        """How long those run that were not given room yet."""

    def skip(self, length: float) -> None:
        """Leave room for a job that runs for so long; when it starts is not asked."""
        self._skipped.append(length)

    def next(self, length: float) -> float | None:
        """Return when the next job starts, which runs for so long; ``None``: never, or nobody knows."""
        for skipped in self._skipped:
            self._give(skipped)
        self._skipped.clear()
        return self._give(length)

    def _give(self, length: float) -> float | None:
        fresh = self._slot(self._used + 1)
        again = self._again[0] if self._again else math.inf
        start = min(fresh, again)
        if self._lent and self._lent[0] <= start:
            return self._lend(length)
        if start == math.inf:
            return None
        if again < fresh:
            heapq.heappop(self._again)
        else:
            self._used += 1
        heapq.heappush(self._again, start + length)
        return start

    def _lend(self, length: float) -> float:
        start = heapq.heappop(self._lent)
        if start + length < self._until:
            heapq.heappush(self._lent, start + length)
        return start

    def _slot(self, number: int) -> float:
        """Return when there is room for so many at once, had none of them ended."""
        while self._known[-1][0] < number < self._most:
            self._look_further()
        if number > self._known[-1][0]:
            return math.inf
        place = next(place for place, (count, _) in enumerate(self._known) if count >= number)
        count, at = self._known[place]
        before, earlier = self._known[place - 1]
        return at - (at - earlier) * (count - number) / (count - before)

    def _look_further(self) -> None:
        """Ask for twice as many, or half way to what is too many."""
        last = self._known[-1][0]
        tried = max(2 * last, 1) if self._most == math.inf else (last + int(self._most)) // 2
        at = self._room_for(tried)
        if at is None:
            self._most = tried
        else:
            self._known.append((tried, at))
