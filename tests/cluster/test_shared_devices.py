"""Shared devices in columns: the same as one device after the other, whatever was booked."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from spinney.cluster.sharing import NO_DEVICE, SharedDevices
from spinney.cluster.table import Holding

_ROWS = np.arange(5)
_BOOKINGS = st.lists(
    st.tuples(
        st.integers(0, 4), st.sampled_from("abc"), st.sampled_from(list(Holding)), st.sampled_from([1600, 4700, 8100])
    ),
    max_size=30,
)


@settings(max_examples=60, deadline=None)
@given(bookings=_BOOKINGS, undone=st.integers(0, 30), forked=st.booleans())
def test_columns_say_what_the_devices_of_each_node_say(
    bookings: list[tuple[int, str, Holding, int]], undone: int, *, forked: bool
) -> None:
    """Bookings, and taking them back, on a fork or not, leave columns that agree with the devices of every row."""
    shared = SharedDevices()
    for row, group, holding, parts in bookings:
        shared.book(row, group, holding, parts)
    original = shared
    if forked:
        shared = shared.fork()
    for row, group, holding, parts in reversed(bookings[len(bookings) - min(undone, len(bookings)) :]):
        shared.book(row, group, holding, -parts)

    for each in (original, shared):
        later, kept, now = each.free_later(_ROWS), each.kept_later(_ROWS), each.free_now(_ROWS)
        for row in _ROWS.tolist():
            devices = list(each.of_row(row).values())
            assert _there(later[:, row]) == sorted(use.free_later for use in devices)
            assert _there(kept[:, row]) == sorted(use.free_later for use in devices if use.active + use.pipelined)
            assert _there(now[:, row]) == sorted(min(use.free, use.free_later) for use in devices if use.exists)


def _there(parts: np.ndarray) -> list[int]:
    return sorted(each for each in parts.tolist() if each != NO_DEVICE)


def test_a_row_that_is_forgotten_has_no_devices() -> None:
    """A node that is gone leaves nothing in the columns."""
    shared = SharedDevices()
    shared.book(2, "a", Holding.ACTIVE, 4700)
    shared.drop_row(2)

    assert (shared.free_later(_ROWS) == NO_DEVICE).all()
