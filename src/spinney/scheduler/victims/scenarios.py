"""Scenarios to try when the first choice did not hold: more victims, and other ones, step by step.

Victims are accumulated in their order. After each step come, for every node the newest step touches, the accumulated
steps on that node alone, then all accumulated steps together; each on top of what easier searches have settled on.
Whatever has no room by arithmetic is left out. All accumulated steps together are tried after each of the first few
steps and then only when their number has doubled, so the work grows with the number of victims, not with its square.
"""

from collections.abc import Iterator, Sequence

from spinney.cluster.table import Mask
from spinney.scheduler.tasks import PodInfo
from spinney.scheduler.victims.order import Step, Steps
from spinney.scheduler.victims.room import Room
from spinney.scheduler.victims.selecting import Demand

_EACH_STEP_UNTIL = 32


def scenarios(
    demand: Demand, tasks: Sequence[PodInfo], room: Room, settled: Sequence[Step], steps: Steps
) -> Iterator[tuple[Step, ...]]:
    """Yield sets of steps that have room for the first ``tasks`` of a job, ``settled`` ones included in each."""
    base = room.copy()
    for step in settled:
        base.release(step.tasks)
    if settled and _holds(demand, tasks, base):
        yield tuple(settled)
    known = set(map(id, settled))
    passed: list[Step] = []
    on_row: dict[int, list[Step]] = {}
    everything = base.copy()
    whole_at = 1
    for step in steps:
        if id(step) in known:
            continue
        passed.append(step)
        everything.release(step.tasks)
        for row in step.rows:
            on_row.setdefault(row, []).append(step)
        if not _holds(demand, tasks, everything):
            continue
        tried: list[list[Step]] = []
        for row in sorted(step.rows, key=everything.name_of):
            local = on_row[row]
            if local in tried:
                continue
            tried.append(list(local))
            narrow = base.copy()
            for each in local:
                narrow.release(each.tasks)
            if _holds(demand, tasks, narrow):
                yield (*settled, *local)
        if len(passed) >= whole_at:
            whole_at = len(passed) + 1 if len(passed) < _EACH_STEP_UNTIL else 2 * len(passed)
            if passed not in tried:
                yield (*settled, *passed)
    if passed and len(passed) < whole_at - 1 and _holds(demand, tasks, everything):
        yield (*settled, *passed)


def _holds(demand: Demand, tasks: Sequence[PodInfo], room: Room) -> bool:
    """Tell whether a room holds tasks: exactly where all are alike, and otherwise as far as each kind can tell."""
    counts: dict[int, int] = {}
    for task in tasks:
        counts[task.request.number] = counts.get(task.request.number, 0) + 1
    places: Sequence[Mask | None] = demand.domains or (None,)
    return any(
        all(demand.room_for(room, number, within) >= count for number, count in counts.items()) for within in places
    )
