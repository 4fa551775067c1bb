"""Choosing victims by arithmetic: the least important ones whose leaving makes room for every task of a job.

Tasks are given room one after the other. While a task has none, the next step of the victim order is added to what
could be freed; as soon as some node has room for the task, the steps that touch that node are chosen, and only they.
Steps that were passed over on the way stay untouched. For a job that must lie in one domain of a topology this is done
per domain, and the domain that needs the least important victims wins.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

import msgspec
import numpy as np

from spinney.cluster.fitting import Demand
from spinney.cluster.table import Mask
from spinney.gangs.tree import required_of_all
from spinney.scheduler.framework.jobs import PodGroupInfo
from spinney.scheduler.framework.session import Session
from spinney.scheduler.framework.tasks import PodInfo, by_request
from spinney.scheduler.victims.order import Step, Steps
from spinney.scheduler.victims.room import FreedRoom


class VictimChoice(msgspec.Struct, frozen=True):
    """The chosen steps in victim order, and the place of the last."""

    steps: tuple[Step, ...]
    last: int


class JobDemand:
    """What the tasks of a job ask for, and the nodes each may go to."""

    def __init__(self, session: Session, job: PodGroupInfo, tasks: Sequence[PodInfo]) -> None:
        self.tasks = tasks
        width = session.nodes.table.idle.shape[1]
        self._kinds = {
            request.number: Demand(request.vector(width), len(alike), _suiting(session, alike))
            for request, alike in by_request(tasks).items()
        }
        self.domains = _domains(session, job)
        """The domains of which one must hold the job, ``[node]`` each; ``None`` if it may lie anywhere."""

    @property
    def uniform(self) -> bool:
        """Tell whether all tasks ask for the same, and for no share of a device: then arithmetic is exact."""
        return len(self._kinds) == 1 and self.tasks[0].request.share is None

    def suits(self, task: PodInfo, within: Mask | None) -> Mask:
        """Return the nodes a task may ever go to, ``[node]``."""
        mask = self._kinds[task.request.number].usable
        assert mask is not None, "every kind of tasks has its nodes"
        return mask if within is None else mask & within

    @cached_property
    def anywhere(self) -> Mask:
        """The nodes that at least one of the tasks may ever go to, ``[node]``."""
        usable = [kind.usable for kind in self._kinds.values() if kind.usable is not None]
        found: Mask = np.logical_or.reduce(usable)
        return found

    def possible_in(self, room: FreedRoom, counts: Mapping[int, int] | None = None) -> list[Mask | None]:
        """Return the domains, or ``None`` for anywhere, where ``room`` holds the tasks, counting each kind alone.

        ``counts`` are some of the tasks, by the number of their request class.
        """
        rooms = [
            (kind.count if counts is None else counts.get(number, 0), kind.per_node(room.free))
            for number, kind in self._kinds.items()
        ]
        if self.domains is None:
            return [None] if all(int(counts.sum()) >= needed for needed, counts in rooms) else []
        return [
            within for within in self.domains if all(int(counts[within].sum()) >= needed for needed, counts in rooms)
        ]


def choose(
    demand: JobDemand, room: FreedRoom, steps: Steps, places: Sequence[Mask | None], *, narrow: bool = True
) -> VictimChoice | None:
    """Return the steps that make room for all tasks in one of ``places``; ``None`` if all steps together do not.

    At least one step is chosen. ``places`` are domains, or ``None`` for anywhere. ``narrow`` chooses on a node only
    what is needed there; otherwise every job on it gives up all it was asked for so far.
    """
    domains = [within for within in places if within is not None]
    if len(domains) < len(places):
        return _Choosing(room, steps, narrow=narrow).choose(demand, enumerate(steps), None)
    best: VictimChoice | None = None
    by_domain = _by_domain(steps, domains)
    for number, within in enumerate(domains):
        found = _Choosing(room, steps, narrow=narrow).choose(demand, by_domain.get(number, ()), within)
        if found is not None and (best is None or found.last < best.last):
            best = found
    return best


class _Choosing:
    """One run over the victim order. Mutable: what is chosen, what was passed over, and the room both would leave."""

    def __init__(self, room: FreedRoom, steps: Steps, *, narrow: bool) -> None:
        self._steps = steps
        self._narrow = narrow
        self._sure, self._possible = room.copy(), room.copy()
        self._chosen: dict[int, Step] = {}
        self._passed: dict[int, dict[int, Step]] = {}
        """Steps that are not chosen, by row and place in the order."""

    def choose(self, demand: JobDemand, steps: Iterable[tuple[int, Step]], within: Mask | None) -> VictimChoice | None:
        """Give every task room."""
        coming = iter(steps)
        for task in demand.tasks:
            row = self._find_row(task, demand.suits(task, within), coming)
            if row is None:
                return None
            for place, step in sorted(self._passed.get(row, {}).items()):
                if self._narrow and self._chosen and self._sure.fits_on(task.request, row):
                    break
                self._take(place, step)
            self._sure.take(task, row)
            self._possible.take(task, row)
        places = sorted(self._chosen)
        return VictimChoice(tuple(self._chosen[place] for place in places), places[-1]) if places else None

    def _find_row(self, task: PodInfo, suits: Mask, coming: Iterator[tuple[int, Step]]) -> int | None:
        """Return where a task has room: without more victims, with those passed over, or with the next ones."""
        if self._chosen:
            row = self._sure.tightest(task.request, suits)
            if row is None and self._passed:
                row = self._first_completed(task, suits)
            if row is not None:
                return row
        for place, step in coming:
            self._possible.release(step.tasks)
            rows = step.rows
            for row in rows:
                self._passed.setdefault(row, {})[place] = step
            fitting = [row for row in rows if suits[row] and self._possible.fits_on(task.request, row)]
            if fitting:
                return min(fitting, key=self._preference)
            row = None if self._chosen else self._possible.tightest(task.request, suits)
            if row is not None:
                # There is room already; a search begins with a victim all the same, who will then stay.
                self._take(place, step)
                return row
        return None

    def _preference(self, row: int) -> tuple[int, str]:
        """Rank rows where the newest step makes room: fewest victims if only the needed ones go, then by name."""
        return (len(self._passed[row]) if self._narrow else 0, self._sure.name_of(row))

    def _first_completed(self, task: PodInfo, suits: Mask) -> int | None:
        """Return the row where steps passed over give a task room, the one where the earliest of them do."""
        fitting = np.flatnonzero(self._possible.fitting(task.request, suits)).tolist()
        rows = [row for row in fitting if row in self._passed]
        return min(rows, key=lambda row: self._completed_at(task, row), default=None)

    def _completed_at(self, task: PodInfo, row: int) -> int:
        """Return the place of the step after which a row has room for a task."""
        sure, last = self._sure, -1
        before = sure.of_row(row)
        for place, step in sorted(self._passed[row].items()):
            if sure.fits_on(task.request, row):
                break
            last = place
            sure.release([each for each in step.tasks if each.row == row])
        sure.restore(row, before)
        return last

    def _take(self, place: int, step: Step) -> None:
        """Choose a step, and the earlier ones of its job: a gang is given up from its edges, or it would break."""
        for each, taken in self._steps.of_job(step.job):
            if each in self._chosen or (self._narrow and each > place):
                continue
            self._chosen[each] = taken
            self._sure.release(taken.tasks)
            for row in taken.rows:
                passed = self._passed.get(row, {})
                passed.pop(each, None)
                if not passed:
                    self._passed.pop(row, None)


def _suiting(session: Session, tasks: Sequence[PodInfo]) -> Mask:
    """Return the nodes that one of ``tasks`` may ever go to, ``[node]``."""
    judge = session.ask.node_rules
    kinds = {id(judge.rules(task)): task for task in reversed(tasks)}
    found: Mask = np.logical_or.reduce([judge.suits(task) for task in kinds.values()])
    return found


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
    found = session.topologies.required(required_of_all(job.root))
    if found is None:
        return None
    topology, depth = found
    table = session.nodes.table
    level = session.snapshot.domain_trees.tree(topology, table).levels[depth]
    return [table.mask(level.members(domain)) for domain in range(len(level))]
