"""The engine of simulations: what happens in which order, when cycles follow, and when a run ends."""

from datetime import timedelta

from spinney.sim.engine import Cycled, Engine


class Played:
    """An engine whose events and cycles are noted. Mutable."""

    def __init__(self, *, every: float = 0.0, wakes_after: timedelta | None = None) -> None:
        self.noted: list[tuple[float, str]] = []
        self._wakes_after = wakes_after
        self.engine = Engine(self._cycle, every=every)

    def at(self, moment: float, what: str, *order: float, wants_cycle: bool = True) -> int:
        """Have something noted."""
        return self.engine.at(moment, lambda: self._note(what, wants_cycle), order)

    def _note(self, what: str, wants_cycle: bool) -> bool:
        self.noted.append((self.engine.now, what))
        return wants_cycle

    def _cycle(self) -> Cycled:
        self._note("cycle", wants_cycle=False)
        return Cycled(False, self.engine.clock.now() + self._wakes_after if self._wakes_after is not None else None)


def test_one_cycle_follows_all_that_happens_at_a_moment() -> None:
    """What has a lower order is first, whoever asked first; and what was cancelled does not happen."""
    played = Played()
    played.at(5.0, "job", 2)
    played.at(5.0, "end", 1)
    played.engine.cancel(played.at(4.0, "never"))
    played.at(7.0, "nobody waits", wants_cycle=False)
    played.engine.run()

    assert played.noted == [(5.0, "end"), (5.0, "job"), (5.0, "cycle"), (7.0, "nobody waits")]


def test_cycles_keep_to_their_period() -> None:
    """Events between two periods share a cycle."""
    played = Played(every=10.0)
    played.at(1.0, "a")
    played.at(2.0, "b")
    played.engine.run()

    assert played.noted == [(1.0, "a"), (2.0, "b"), (10.0, "cycle")]


def test_a_run_without_an_end_ends_though_somebody_always_wants_another_cycle() -> None:
    """It is patient first; a run that has an end goes on until then."""
    played = Played(wakes_after=timedelta(minutes=1))
    played.at(0.0, "job")
    played.engine.run()
    assert played.engine.now >= 86400.0, "a day of a cycle a minute is not too much"

    end = played.engine.now + 7 * 86400.0
    played.engine.run(end)
    assert played.noted[-1] == (end, "cycle")
