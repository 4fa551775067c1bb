"""Slots: when the next of many like jobs starts, which use the same room one after the other."""

from collections.abc import Callable

from spinney.scheduler.plugins.backfill.slots import Slots


def room_at(*moments: float) -> Callable[[int], float | None]:
    """Room for one more at each of these moments."""
    return lambda count: moments[count - 1] if count <= len(moments) else None


def starts(slots: Slots, *lengths: float) -> list[float | None]:
    return [slots.next(length) for length in lengths]


def test_those_that_find_room_at_once_do_not_wait_for_each_other() -> None:
    """As many start at a moment as have room then."""
    assert starts(Slots(room_at(5.0, 5.0, 5.0, 5.0)), 10.0, 10.0, 10.0) == [5.0, 5.0, 5.0]


def test_room_is_used_again_when_a_job_ends() -> None:
    """Short jobs follow each other in the same room long before there is room for all of them at once."""
    assert starts(Slots(room_at(0.0, 1000.0)), 10.0, 10.0, 10.0, 10.0) == [0.0, 10.0, 20.0, 30.0]


def test_new_room_is_taken_if_it_comes_before_a_job_ends() -> None:
    """Long jobs wait for other nodes, not for each other."""
    assert starts(Slots(room_at(0.0, 30.0)), 100.0, 100.0, 100.0, 100.0) == [0.0, 30.0, 100.0, 130.0]


def test_all_room_there_will_be_is_found() -> None:
    """Of eleven jobs that have room at once, and no more, the twelfth waits for the first to end."""
    assert starts(Slots(room_at(*[0.0] * 11)), *[7.0] * 12) == [0.0] * 11 + [7.0]


def test_where_no_end_is_known_nothing_is_said() -> None:
    """Without room that will come there is no start."""
    assert starts(Slots(lambda _: None), 1.0) == [None]


def test_who_is_not_asked_about_has_its_room_all_the_same() -> None:
    """A job whose start is known already goes before those after it."""
    asked: list[int] = []

    def room_for(count: int) -> float:
        asked.append(count)
        return 50.0 * count

    slots = Slots(room_for)
    slots.skip(10.0)
    assert not asked, "nothing is looked for before somebody asks"
    assert slots.next(10.0) == 60.0
