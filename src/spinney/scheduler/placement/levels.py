"""What nodes say with one, two, three and more of some identical tasks on them, asked of all nodes at once.

Where placing a task on a node changes nothing about other nodes, what a node says with ``n`` of the tasks on it does
not depend on what is on the others. So a level is asked in one go: one more task is booked on every node, and every
rule that reads nodes is asked about all of them, a per-node function once per node. All of that is taken back in the
end; the tasks are then placed for good where the levels say they would have gone one by one.
"""

import heapq
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from spinney.cluster.journal import Rows
from spinney.cluster.pods import PodRecord
from spinney.cluster.resources import Vector
from spinney.cluster.table import Mask
from spinney.scheduler.evaluation.rule_sets import TaskRules
from spinney.scheduler.framework.nodes import Scores
from spinney.scheduler.framework.session import Session
from spinney.scheduler.framework.tasks import PodInfo


class Levels:
    """Verdicts and scores of some rows by the number of tasks on each. Mutable: levels are asked for when needed.

    Without ``score`` nobody asks for scores, and ``room`` says how many tasks each row holds.

    What is booked for asking is not in the journal: nobody else may look before it is taken back.
    """

    def __init__(
        self,
        session: Session,
        tasks: Sequence[PodInfo],
        rules: TaskRules,
        rows: Rows,
        *,
        score: Scores | None,
        room: Vector | None,
    ) -> None:
        self._session = session
        self._rules = rules
        self._scored = score is not None
        self._tasks = tasks
        self._rows = rows
        self._room = room
        self._counts = np.zeros(len(rows), dtype=np.int64)
        session.nodes.visitors = self._visitors
        known = np.zeros(len(rows)) if score is None else score
        self._levels: list[tuple[Mask, Scores]] = [(np.ones(len(rows), dtype=np.bool_), known)]

    def __getitem__(self, level: int) -> tuple[Mask, Scores]:
        """Return which rows take one more task with ``level`` of them there already, and how well they suit it."""
        while len(self._levels) <= level:
            self._levels.append(self._next())
        return self._levels[level]

    def take_back(self) -> None:
        """Undo what was booked for asking."""
        nodes = self._session.nodes
        used = self._counts > 0
        nodes.table.try_many(self._rows[used], -self._counts[used], self._tasks[0].request.requests)
        nodes.visitors = None

    def _visitors(self, row: int) -> list[PodRecord]:
        """Return the tasks that are on a row for the time being."""
        count = int(self._counts[self._rows == row].sum())
        return [task.record for task in self._tasks[:count]]

    def _next(self) -> tuple[Mask, Scores]:
        open_rows, _ = self._levels[-1]
        if self._room is not None:
            open_rows = open_rows & (self._room > len(self._levels))
        fits = np.zeros(len(self._rows), dtype=np.bool_)
        score = np.full(len(self._rows), -np.inf)
        if len(self._levels) > len(self._tasks) or not open_rows.any():
            return fits, score
        rows, nodes = self._rows[open_rows], self._session.nodes
        nodes.table.try_many(rows, np.ones(len(rows), dtype=np.int64), self._tasks[0].request.requests)
        self._counts[open_rows] += 1
        judge = self._session.ask.node_rules
        if self._scored:
            fits[open_rows], score[open_rows] = judge.ask_again(self._tasks[0], rows, self._rules)
        else:
            fits[open_rows] = judge.still_takes(self._tasks[0], rows, self._rules)
        return fits, score


def fill_ranked(session: Session, tasks: Sequence[PodInfo], rules: TaskRules, rows: Rows, room: Vector) -> Vector:
    """Return how many tasks each of ``rows``, best first, takes before the next is used; ``room`` bounds that.

    For scores that never fall by use, which therefore need not be known. Rows behind the last one needed are not asked
    and take none.
    """
    taken = np.zeros(len(rows), dtype=np.int64)
    begin, left = 0, len(tasks)
    while left > 0 and begin < len(rows):
        end = begin + int(np.searchsorted(np.cumsum(room[begin:]), left)) + 1
        part = slice(begin, min(end, len(rows)))
        with _levels(session, tasks, rules, rows[part], room=room[part]) as levels:
            for level in range(min(left, int(room[part].max()))):
                taken[part] += levels[level][0]
        left -= int(taken[part].sum())
        begin = end
    surplus = np.cumsum(taken) - len(tasks)
    return np.clip(taken - np.maximum(surplus, 0), 0, None)


def best_of_each(session: Session, tasks: Sequence[PodInfo], rules: TaskRules, rows: Rows, score: Scores) -> list[int]:
    """Return, for one task after the other, the position in ``rows`` of the best row by then; ties go to the first."""
    chosen: list[int] = []
    with _levels(session, tasks, rules, rows, score=score) as levels:
        heap = [(-value, position, 0) for position, value in enumerate(score.tolist())]
        heapq.heapify(heap)
        while heap and len(chosen) < len(tasks):
            _, position, level = heap[0]
            chosen.append(position)
            fits, scores = levels[level + 1]
            if fits[position]:
                heapq.heapreplace(heap, (-float(scores[position]), position, level + 1))
            else:
                heapq.heappop(heap)
    return chosen


@contextmanager
def _levels(
    session: Session,
    tasks: Sequence[PodInfo],
    rules: TaskRules,
    rows: Rows,
    *,
    score: Scores | None = None,
    room: Vector | None = None,
) -> Iterator[Levels]:
    levels = Levels(session, tasks, rules, rows, score=score, room=room)
    try:
        yield levels
    finally:
        levels.take_back()
