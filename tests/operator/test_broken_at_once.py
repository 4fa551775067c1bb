"""A workload that ran and broke is told from one that never ran, even within its first second."""

from datetime import UTC, datetime

from spinney.api.meta import Condition
from spinney.operator.status.podclique import POD_CLIQUE_SCHEDULED, set_since, was_well_before

CREATED = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)
SAME_SECOND = datetime(2026, 1, 1, 12, 0, 0, 900_000, tzinfo=UTC)
RUNS = Condition(type=POD_CLIQUE_SCHEDULED, status="True", reason="SufficientScheduledPods")
WAITS = Condition(type=POD_CLIQUE_SCHEDULED, status="False", reason="InsufficientScheduledPods")


def test_what_breaks_in_its_first_second_is_known_to_have_run() -> None:
    """Scheduled and broken within the second of its creation, it counts as having been well."""
    conditions = set_since((), RUNS, SAME_SECOND, CREATED)
    conditions = set_since(conditions, WAITS, SAME_SECOND, CREATED)

    assert was_well_before(conditions, POD_CLIQUE_SCHEDULED, CREATED)


def test_what_never_ran_is_not_broken_however_long_it_waits() -> None:
    """A workload that was never scheduled does not count as having been well, whenever its status is written."""
    later = datetime(2026, 1, 1, 13, 0, 0, tzinfo=UTC)
    conditions = set_since((), WAITS, later, CREATED)
    conditions = set_since(conditions, WAITS, later, CREATED)

    assert not was_well_before(conditions, POD_CLIQUE_SCHEDULED, CREATED)
