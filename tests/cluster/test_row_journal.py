"""What a reader of the journal of a table is told about the rows that changed."""

from unittest.mock import patch

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from spinney.cluster import journal
from spinney.cluster.journal import RowJournal

ROWS = 9
changes = st.lists(st.integers(0, ROWS - 1) | st.sets(st.integers(0, ROWS - 1), min_size=1), max_size=40)


@given(changes, st.integers(0, 40), st.integers(1, 5), st.sampled_from([0, 1, 64]))
def test_a_reader_is_told_every_row_that_changed_since(
    marked: list[int | set[int]], seen: int, keep: int, at_once: int
) -> None:
    """However far it is behind, how much is kept one by one, and whether rows changed alone or together."""
    seen = min(seen, len(marked))
    with patch.multiple(journal, _KEEP=keep, _AT_ONCE=at_once):
        kept = RowJournal(position=7)
        for each in marked:
            if isinstance(each, int):
                kept.mark_row(each)
            else:
                kept.mark(np.array(sorted(each), dtype=np.intp))
        expected = set[int]().union(*[{each} if isinstance(each, int) else each for each in marked[seen:]])
        for one in (kept, kept.fork()):
            found, few = one.since(7 + seen), one.few_since(7 + seen, 4)
            assert found is not None
            assert sorted(found.tolist()) == sorted(expected)
            assert few is None or set(few) == expected
            assert len(few or ()) <= 4


def test_a_reader_from_before_the_journal_began_is_told_nothing() -> None:
    """Any row may have changed then."""
    kept = RowJournal(position=7)
    kept.mark_row(1)
    assert kept.since(6) is None
    assert kept.few_since(6, 4) is None
