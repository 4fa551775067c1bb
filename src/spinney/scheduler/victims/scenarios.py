"""Scenarios to try when the first choice did not hold: more victims, and other ones, step by step.

Victims are accumulated in their order. After each step come, for every node the newest step touches, the accumulated
steps of the jobs on that node alone, then, if victims of several nodes may go together, all accumulated steps; each on
top of what was settled on for fewer tasks. Whatever has no room by arithmetic is left out. All accumulated steps
together are tried after each of the first few steps and then only when their number has doubled, so the work grows with
the number of victims, not its square.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from spinney.runtime.faults import raised
from spinney.scheduler.framework import validation
from spinney.scheduler.framework.jobs import PodGroupInfo
from spinney.scheduler.framework.session import Session
from spinney.scheduler.framework.tasks import NUMBER, PodInfo
from spinney.scheduler.victims.order import Step, Steps
from spinney.scheduler.victims.room import FreedRoom
from spinney.scheduler.victims.selecting import JobDemand

_EACH_STEP_UNTIL = 32
_GENERATOR = "scenario_generator"


class Scenarios:
    """Sets of steps that have room for some tasks of a job, what was settled on included in each."""

    def __init__(
        self,
        demand: JobDemand,
        tasks: Sequence[PodInfo],
        room: FreedRoom,
        settled: Sequence[Step],
        *,
        across_nodes: bool,
    ) -> None:
        self._demand = demand
        self._across_nodes = across_nodes
        self._counts = Counter(map(NUMBER, tasks))
        self._settled = tuple(settled)
        self._base = _without(room, settled)

    def among(self, steps: Steps) -> Iterator[tuple[Step, ...]]:
        """Yield the sets to try, in order."""
        if self._settled and self._holds(self._base):
            yield self._settled
        passed: list[Step] = []
        everything = self._base.copy()
        on_row: dict[int, dict[PodGroupInfo, None]] = {}
        of_job: dict[PodGroupInfo, list[Step]] = {}
        known = set(map(id, self._settled))
        whole_at = 1
        for step in (each for each in steps if id(each) not in known):
            passed.append(step)
            everything.release(step.tasks)
            of_job.setdefault(step.job, []).append(step)
            for row in step.rows:
                on_row.setdefault(row, {})[step.job] = None
            if not self._holds(everything):
                continue
            rows = sorted(step.rows, key=everything.name_of)
            per_node = [tuple(each for job in on_row[row] for each in of_job[job]) for row in rows]
            yield from self._per_node(per_node)
            if self._across_nodes and len(passed) >= whole_at:
                whole_at = len(passed) + 1 if len(passed) < _EACH_STEP_UNTIL else 2 * len(passed)
                if any(len(local) < len(passed) for local in per_node):
                    yield (*self._settled, *passed)
        if self._across_nodes and len(passed) >= _EACH_STEP_UNTIL and self._holds(everything):
            yield (*self._settled, *passed)

    def _per_node(self, candidates: Iterable[tuple[Step, ...]]) -> Iterator[tuple[Step, ...]]:
        """Yield the accumulated steps of the jobs on each node, where they make room; equal sets only once."""
        for local in dict.fromkeys(candidates):
            if self._holds(_without(self._base, local)):
                yield (*self._settled, *local)

    def _holds(self, room: FreedRoom) -> bool:
        """Tell whether a room holds the tasks: exactly where all are alike, else as far as each kind can tell."""
        return bool(self._demand.possible_in(room, self._counts))


def _without(room: FreedRoom, steps: Iterable[Step]) -> FreedRoom:
    after = room.copy()
    for step in steps:
        after.release(step.tasks)
    return after


def generated_scenarios(session: Session, job: PodGroupInfo) -> Iterator[Sequence[PodInfo]]:
    """Return the scenarios of every generator in the order of registration; one that raises has nothing more to say."""
    for name, hook in session.hooks.scenario_generators.items():
        proposals: Iterator[Sequence[PodInfo]] | None = None
        while True:
            try:
                with session.timings.measure(hook.plugin, _GENERATOR):
                    proposals = iter(hook.fn(session, job)) if proposals is None else proposals
                    victims = validation.victims(next(proposals, None))
            except raised() as error:  # it has nothing more to say
                fields = {"generator": name, "job": str(job.key)}
                session.failures.add("scenario generator failed", hook.plugin, _GENERATOR, hook.fn, error, **fields)
                break
            if victims is None:
                break
            yield victims
