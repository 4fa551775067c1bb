"""Places that are kept in a session for jobs that wait, and what those that wait are told."""

from datetime import UTC, datetime, timedelta

import msgspec

from spinney.api.durations import format_duration
from spinney.api.time import timestamp
from spinney.cluster.journal import Rows
from spinney.cluster.table import Matrix
from spinney.explain.amounts import first_few
from spinney.gangs.tree import GangKey
from spinney.scheduler.framework.session import Session
from spinney.scheduler.plugins.backfill.forecasts import StartForecast
from spinney.scheduler.plugins.backfill.memory import GivenPlace


class Reservation(msgspec.Struct, frozen=True, eq=False):
    """A place that is kept: from ``at`` on, or from now on where that is not known."""

    key: GangKey
    queue: str
    at: float | None
    """Seconds from now."""
    rows: Rows
    held: Matrix
    left: Matrix
    """What others may take of the rows for longer, ``[row, resource]``; kept up to date."""
    slots: dict[int, int]
    from_smaller: int = 0
    """If this is given, the rows are kept only from jobs whose pods ask for fewer GPUs than so many."""


def slots_of(rows: Rows) -> dict[int, int]:
    """Return where each row stands among those of a reservation."""
    return {row: slot for slot, row in enumerate(rows.tolist())}


def kept_alone(kept: Reservation, waited: timedelta) -> str:
    """Return what is kept for a job though it is not known when it is free, in words."""
    long = format_duration(waited)
    if kept.from_smaller:
        return f"a node is kept for it, which has waited {long}, from pods of fewer than {kept.from_smaller} GPUs"
    return (
        f"{len(kept.rows)} nodes are kept for it, which has waited {long}; when they are free is not known, because "
        "what runs there states no run time"
    )


def foreseen(now: datetime, forecast: StartForecast) -> str | None:
    """Return when a job without a place is expected to start, in words; ``None`` if that is over, or not sure."""
    if forecast.interval is None:
        return None
    low, high = (datetime.fromtimestamp(round(forecast.made + each), UTC) for each in forecast.interval)
    if high < now:
        return None
    return f"no place is kept for it; 80 % of such jobs start between {timestamp(low)} and {timestamp(high)}"


def expected_start(session: Session, promise: GivenPlace) -> str:
    """Return when and where a job is expected to start, in words."""
    names = sorted(session.nodes.info(row).name for row in promise.rows.tolist())
    when = f"it is expected to start at {timestamp(promise.at)} on {first_few(names)}"
    if promise.interval is None:
        return f"a place is kept for it: {when}; too few forecasts so far to say how sure that is"
    low, high = (timestamp(promise.at + timedelta(seconds=round(each))) for each in promise.interval)
    return f"a place is kept for it: {when} (80 % of such jobs start between {low} and {high})"
