"""Choosing victims by arithmetic: the least important ones whose leaving makes room for every task of a job.

Tasks are given room one after the other. While a task has none, the next step of the victim order is added to what
could be freed; as soon as some node has room for the task, the steps that touch that node are chosen, and only they.
Steps that were passed over on the way stay untouched. For a job that must lie in one domain of a topology this is done
per domain, and the domain that needs the least important victims wins.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from spinney.cluster.table import Mask
from spinney.gangs.tree import GroupSet, TopologyConstraint
from spinney.scheduler.jobs import PodGroupInfo
from spinney.scheduler.session import Session
from spinney.scheduler.tasks import PodInfo
from spinney.scheduler.victims.order import Step, Steps
from spinney.scheduler.victims.room import Room


@dataclass(frozen=True, slots=True)
class Choice:
    """The chosen steps in victim order, and the place of the last."""

    steps: tuple[Step, ...]
    last: int


class Demand:
    """What the tasks of a job ask for, and the nodes each may go to."""

    def __init__(self, session: Session, job: PodGroupInfo, tasks: Sequence[PodInfo]) -> None:
        self.tasks = tasks
        self.counts: dict[int, list[PodInfo]] = {}
        for task in tasks:
            self.counts.setdefault(task.request.number, []).append(task)
        self._suits: dict[int, Mask] = {number: session.judge.suits(alike[0]) for number, alike in self.counts.items()}
        self.domains = _domains(session, job)
        """The domains of which one must hold the job, ``[node]`` each; ``None`` if it may lie anywhere."""

    @property
    def uniform(self) -> bool:
        """Tell whether all tasks ask for the same, and for no share of a device: then arithmetic is exact."""
        return len(self.counts) == 1 and self.tasks[0].request.share is None

    def suits(self, task: PodInfo, within: Mask | None) -> Mask:
        """Return the nodes a task may ever go to, ``[node]``."""
        mask = self._suits[task.request.number]
        return mask if within is None else mask & within

    def room_for(self, room: Room, number: int, within: Mask | None) -> int:
        """Return how many tasks of a request class a room holds."""
        task = self.counts[number][0]
        return int(room.count(task.request, self.suits(task, within)).sum())

    def possible_in(self, room: Room) -> list[Mask | None]:
        """Return the domains, or ``None`` for anywhere, where ``room`` holds the tasks, counting each kind alone."""
        rooms = [
            (len(alike), room.count(alike[0].request, self.suits(alike[0], None))) for alike in self.counts.values()
        ]
        if self.domains is None:
            return [None] if all(int(counts.sum()) >= needed for needed, counts in rooms) else []
        return [
            within for within in self.domains if all(int(counts[within].sum()) >= needed for needed, counts in rooms)
        ]


def choose(demand: Demand, room: Room, steps: Steps, places: Sequence[Mask | None]) -> Choice | None:
    """Return the steps that make room for all tasks in one of ``places``; ``None`` if all steps together do not.

    At least one step is chosen. ``places`` are domains, or ``None`` for anywhere.
    """
    domains = [within for within in places if within is not None]
    if len(domains) < len(places):
        return _choose(demand, room, enumerate(steps), None)
    best: Choice | None = None
    by_domain = _by_domain(steps, domains)
    for number, within in enumerate(domains):
        found = _choose(demand, room, by_domain.get(number, ()), within)
        if found is not None and (best is None or found.last < best.last):
            best = found
    return best


def _choose(demand: Demand, room: Room, steps: Iterable[tuple[int, Step]], within: Mask | None) -> Choice | None:
    sure, possible = room.copy(), room.copy()
    chosen: dict[int, Step] = {}
    waiting: dict[int, dict[int, Step]] = {}
    coming = iter(steps)
    for task in demand.tasks:
        suits = demand.suits(task, within)
        row = sure.tightest(task.request, suits) if chosen else None
        if row is None and waiting:
            row = _first_completed(sure, possible, task, suits, waiting)
        while row is None:
            following = next(coming, None)
            if following is None:
                return None
            place, step = following
            possible.release(step.tasks)
            rows = step.rows
            for each in rows:
                waiting.setdefault(each, {})[place] = step
            row = next((each for each in rows if suits[each] and possible.fits_on(task.request, each)), None)
            if row is None and not chosen:
                row = possible.tightest(task.request, suits)
                if row is not None and row not in waiting:
                    # There is room already; a search begins with a victim all the same, who will then stay.
                    _take_step(place, step, chosen, waiting, sure)
        for place, step in sorted(waiting.get(row, {}).items()):
            if chosen and sure.fits_on(task.request, row):
                break
            _take_step(place, step, chosen, waiting, sure)
        sure.take(task, row)
        possible.take(task, row)
    places = sorted(chosen)
    return Choice(tuple(chosen[place] for place in places), places[-1]) if places else None


def _first_completed(
    sure: Room, possible: Room, task: PodInfo, suits: Mask, waiting: Mapping[int, Mapping[int, Step]]
) -> int | None:
    """Return the row where the steps passed over so far give a task room, the one where the earliest of them do."""
    fitting = np.flatnonzero(possible.fitting(task.request, suits)).tolist()
    rows = [row for row in fitting if row in waiting]
    return min(rows, key=lambda row: _completed_at(sure, task, row, waiting[row]), default=None)


def _completed_at(sure: Room, task: PodInfo, row: int, steps: Mapping[int, Step]) -> int:
    """Return the place of the step after which a row has room for a task."""
    before = sure.of_row(row)
    last = -1
    for place, step in sorted(steps.items()):
        if sure.fits_on(task.request, row):
            break
        last = place
        sure.release([each for each in step.tasks if each.row == row])
    sure.restore(row, before)
    return last


def _take_step(
    place: int, step: Step, chosen: dict[int, Step], waiting: dict[int, dict[int, Step]], sure: Room
) -> None:
    chosen[place] = step
    sure.release(step.tasks)
    for row in step.rows:
        of_row = waiting.get(row)
        if of_row is not None:
            of_row.pop(place, None)
            if not of_row:
                del waiting[row]


def _by_domain(steps: Steps, domains: Sequence[Mask]) -> dict[int, list[tuple[int, Step]]]:
    of_row: dict[int, int] = {}
    for number, within in enumerate(domains):
        of_row.update((row, number) for row in np.flatnonzero(within).tolist())
    found: dict[int, list[tuple[int, Step]]] = {}
    for place, step in enumerate(steps):
        for number in dict.fromkeys(of_row[row] for row in step.rows if row in of_row):
            found.setdefault(number, []).append((place, step))
    return found


def _domains(session: Session, job: PodGroupInfo) -> list[Mask] | None:
    constraint = _required(job.root)
    topology = session.topologies.get(constraint.topology) if constraint is not None else None
    if constraint is None or topology is None:
        return None
    depth = topology.depth(constraint.required)
    if depth is None:
        return None
    table = session.nodes.table
    level = session.snapshot.domain_trees.tree(topology, table).levels[depth]
    masks: list[Mask] = []
    for domain in range(len(level)):
        mask = np.zeros(table.capacity, dtype=np.bool_)
        mask[level.members(domain)] = True
        masks.append(mask)
    return masks


def _required(root: GroupSet) -> TopologyConstraint | None:
    """Return the required constraint that holds for all pods of a job, if there is one."""
    member: GroupSet = root
    while True:
        if member.topology is not None and member.topology.required:
            return member.topology
        if len(member.members) != 1:
            return None
        only = member.members[0]
        if not isinstance(only, GroupSet):
            return only.topology if only.topology is not None and only.topology.required else None
        member = only
