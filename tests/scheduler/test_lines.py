"""Lines: what jobs that wait one behind the other save together if places are there at once."""

import math
from collections.abc import Callable

import pytest

from spinney.scheduler.plugins.backfill.lines import Gain, WaitingLine


def room_at(*moments: float) -> Callable[[int], float | None]:
    """Room for one more at each of these moments."""
    return lambda count: moments[count - 1] if count <= len(moments) else None


@pytest.mark.parametrize(
    ("lengths", "room", "gain"),
    [
        pytest.param([10.0], [100.0], Gain(1, 100.0, 10.0), id="one saves its wait, and has gone when it has run"),
        pytest.param([10.0], [4.0], Gain(1, 4.0, 4.0), id="other room is there before it has run"),
        pytest.param([10.0] * 3, [100.0], Gain(3, 300.0, 30.0), id="short ones follow each other in the place"),
        pytest.param([90.0] * 2, [100.0], Gain(2, 200.0, 100.0), id="who comes late has room anyway"),
    ],
)
def test_all_in_a_line_move_up(lengths: list[float], room: list[float], gain: Gain) -> None:
    """Each starts earlier by a place that is there at once, and the place is free again after the last of them."""
    assert WaitingLine(lengths, room_at(*room)).gain(1, until=128.0) == gain


def test_a_place_that_would_soon_be_free_anyway_saves_less() -> None:
    """It serves those who start before it would have been free; the others have room that comes then."""
    line = WaitingLine([10.0] * 4, room_at(16.0))
    assert line.gain(1, until=16.0) == Gain(4, (16 - 0) + (26 - 10) + (36 - 16) + (46 - 26), 36.0)


def test_several_places_are_free_again_when_the_last_of_them_is() -> None:
    """Room for two small jobs is no room for a large one until both have gone."""
    assert WaitingLine([10.0, 30.0], room_at(100.0)).gain(2, until=128.0) == Gain(2, 100.0 + 110.0, 30.0)


def test_where_nobody_knows_when_room_comes_a_place_is_worth_everything() -> None:
    """Without an end that is known the first might wait for ever."""
    assert WaitingLine([10.0], lambda _: None).gain(1, until=128.0) == Gain(1, math.inf, 0.0)
