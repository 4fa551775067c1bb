"""Answers by what was read: a tree that grows as a function is asked.

A function that is understood (:mod:`~spinney.scheduler.knowledge.reaching`) answers by what it reads of its arguments
and by data that can be compared. So the first fact that it reads is always the same one, the second depends on the
value of the first only, and so on: a tree of facts, with an answer at the end of each branch. A pod and a node that
take a branch which is known need not be asked about. Nodes are led through the tree in columns, many at a time.

When the data that the function reaches has changed, everything learned is forgotten. So it is at every placement, if
the plugin listens to placements.
"""

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar

import msgspec
import numpy as np

from spinney.cluster.journal import Rows
from spinney.runtime.faults import raised
from spinney.scheduler.framework.nodes import Nodes
from spinney.scheduler.framework.tasks import PodInfo
from spinney.scheduler.knowledge import facts
from spinney.scheduler.knowledge.facts import Column, Fact, NodeFact, PodFact
from spinney.scheduler.knowledge.reaching import Reach, State
from spinney.scheduler.knowledge.recording import JobView, NodeView, ReadingNotes, TaskView
from spinney.scheduler.knowledge.refusals import Reasons

A = TypeVar("A")
Call = Callable[[Any, Any, Any], A]
"""Asks a function about a task, its job and a node; returns the answer as the framework uses it."""

_ROOT: Final = None
_FEW: Final = 48
"""Up to so many nodes are told apart one by one, more in columns."""
_LARGEST: Final = 1_000_000


class _Question:
    """The next fact that is read, and what follows by its value."""

    __slots__ = ("branches", "fact")

    def __init__(self, fact: Fact | None) -> None:
        self.fact = fact
        self.branches: dict[Hashable, _Branch] = {}


class _ByNode(_Question):
    """The question which node it is: answers stand in a column."""

    __slots__ = ("answers", "known")

    def __init__(self, capacity: int, kind: type) -> None:
        super().__init__(facts.WHOLE_NODE)
        self.known = np.zeros(capacity, dtype=np.bool_)
        self.answers: Column = np.zeros(capacity, dtype=kind)


class _Answer(msgspec.Struct, Generic[A], frozen=True):
    value: A


class _Moving(msgspec.Struct, frozen=True):
    """The function reads something that cannot be looked up for others, so it is asked each time."""

    with_node_only: bool


_Branch = _Question | _Answer[Any] | _Moving


@dataclass(slots=True)
class AnswerTrace:
    """What answers about one task depended on. Mutable: it grows with every answer."""

    read: dict[PodFact, Hashable] = field(default_factory=dict)
    """What was read of the task and its job, with the values."""
    by_node: bool = False
    by_use: bool = False
    """Something that changes with what is on the node was read."""
    moves: bool = False
    """Something was read that any decision may change."""


class Learned(Generic[A]):
    """A function that is understood, and what it answered so far. Mutable.

    ``kind`` is the type of answers about nodes; ``failed`` notes a failure about one and says what it counts as.
    ``moment`` counts placements, where the plugin listens to them: every answer is then forgotten with the next. What
    is read for ``reasons`` only does not count.
    """

    def __init__(
        self,
        call: Call[A],
        reach: Reach,
        nodes: Nodes,
        *,
        kind: type,
        failed: Callable[[BaseException], A],
        moment: Callable[[], int] | None = None,
        reasons: Reasons | None = None,
    ) -> None:
        self._call = call
        self._reach = reach
        self._nodes = nodes
        self._kind = kind
        self._failed = failed
        self._moment = moment
        self._reasons = reasons
        self.listens = moment is not None
        """Whether the plugin listens to placements."""
        self._last_moment = -1
        self._state: State | None = None
        self._top = _Question(None)
        self._size = 0
        self.trace = AnswerTrace()
        """What the answers since :meth:`begin` depended on."""

    def begin(self) -> None:
        """Begin to note what answers depend on."""
        self.trace = AnswerTrace()

    def refresh(self) -> bool:
        """Forget what no longer holds; return whether everything does."""
        if self._moment is not None and self._moment() != self._last_moment:
            self._last_moment, self._state = self._moment(), None
            self._forget()
            return False
        state = self._reach.state()
        if state is not None and state == self._state and self._size <= _LARGEST:
            return True
        self._state = state
        self._forget()
        return False

    def about_pod(self, task: PodInfo) -> A:
        """Return the answer about a task, of a function that is asked about no node."""
        self.refresh()
        found = self._branch(self._top, _ROOT, task, None)
        while isinstance(found, _Question):
            assert isinstance(found.fact, PodFact), "there is no node"
            found = self._branch(found, found.fact.of(task), task, None)
        if isinstance(found, _Answer):
            answer: A = found.value
            return answer
        self.trace.moves = True
        return self._call(task, task.job, None)

    def about_nodes(self, task: PodInfo, rows: Rows) -> Column:
        """Return the answers about a task and each of ``rows``."""
        self.refresh()
        answers: Column = np.zeros(len(rows), dtype=self._kind)
        if len(rows):
            self._descend(task, rows, answers)
        return answers

    def same_everywhere(self, task: PodInfo, row: int) -> _Answer[A] | None:
        """Return the answer about a task if it is the same for all nodes, and is known without asking about each."""
        if self.listens:
            notes, end = self._watched(task, row)  # what it answers now is forgotten with the next placement
            by_node = any(isinstance(fact, NodeFact) for fact in notes.read)
            return None if by_node or isinstance(end, _Moving) else end
        found = self._branch(self._top, _ROOT, task, row)
        while isinstance(found, _Question) and isinstance(found.fact, PodFact):
            found = self._branch(found, found.fact.of(task), task, row)
        return found if isinstance(found, _Answer) else None

    def alike_until(self, tasks: Sequence[PodInfo], start: int, end: int, row: int) -> int:
        """Return the place, from ``start`` to ``end``, of the first task that may get another answer than the last did.

        The last is the one that the trace is of; ``end`` means that all get the same answers.
        """
        if self.trace.moves:
            return start
        while start < end:
            start = self._same_until(tasks, start, end)
            if start == end or not self.answers_alike_anew(tasks[start], row):
                break
            start += 1
        return start

    def _same_until(self, tasks: Sequence[PodInfo], start: int, end: int) -> int:
        """Return the place of the first task of which something is different that was read."""
        for fact, value in self.trace.read.items():
            of = fact.of
            end = next((at for at in range(start, end) if of(tasks[at]) != value), end)
        return end

    def answers_alike_anew(self, task: PodInfo, row: int) -> bool:
        """Tell the same when what the trace is of may be forgotten: only answers that are the same everywhere are."""
        if self.trace.by_node:
            return False
        answer = self.same_everywhere(task, row)
        if answer is None:
            return False
        # A score that is the same everywhere changes nothing, whatever it is.
        value: Any = answer.value
        return bool(value) if self._kind is bool else bool(np.isfinite(value))

    # -- the tree ----------------------------------------------------------------------------------------------------

    def _descend(self, task: PodInfo, rows: Rows, answers: Column) -> None:
        trace = self.trace
        waiting: list[tuple[_Question, Hashable, Rows]] = [(self._top, _ROOT, np.arange(len(rows)))]
        while waiting:
            question, value, places = waiting.pop()
            found = self._branch(question, value, task, int(rows[places[0]]))
            if isinstance(found, _Answer):
                answers[places] = found.value
            elif isinstance(found, _Moving):
                trace.by_node = trace.by_use = True
                trace.moves = trace.moves or not found.with_node_only
                for place in places.tolist():
                    answers[place] = self._asked(task, int(rows[place]))
            elif isinstance(found.fact, PodFact):
                read = trace.read[found.fact] = found.fact.of(task)
                waiting.append((found, read, places))
            else:
                assert found.fact is not None, "only the top asks nothing"
                trace.by_node = True
                trace.by_use = trace.by_use or found.fact.by_use
                waiting += self._divided(found, rows, places, answers)

    def _divided(
        self, question: _Question, rows: Rows, places: Rows, answers: Column
    ) -> Iterator[tuple[_Question, Hashable, Rows]]:
        """Yield the places of nodes by their values of a fact; those whose answers stand in a column are answered."""
        if isinstance(question, _ByNode):
            here = rows[places]
            known = question.known[here]
            answers[places[known]] = question.answers[here[known]]
            for place in places[~known].tolist():
                yield question, int(rows[place]), np.array([place], dtype=np.intp)
            return
        assert isinstance(question.fact, NodeFact), "nodes are divided by facts about nodes"
        column = question.fact.of(self._nodes, rows[places])
        if len(places) > _FEW:
            order = np.argsort(column, kind="stable")
            ordered = column[order]
            begins = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
            for value, part in zip(ordered[begins].tolist(), np.split(places[order], begins[1:]), strict=True):
                yield question, value, part
            return
        groups: dict[Hashable, list[int]] = {}
        for place, value in zip(places.tolist(), column.tolist(), strict=True):
            groups.setdefault(value, []).append(place)
        for value, together in groups.items():
            yield question, value, np.array(together, dtype=np.intp)

    def _branch(self, question: _Question, value: Hashable, task: PodInfo, row: int | None) -> "_Branch":
        """Return what follows a question; what is not known is found by asking about a task and a node."""
        found = question.branches.get(value)
        if found is None:
            self._learn(task, row)
            if isinstance(question, _ByNode) and question.known[row]:
                return _Answer(question.answers[row])
            found = question.branches.get(value)
        return found if found is not None else self._give_up()

    def _asked(self, task: PodInfo, row: int) -> A:
        try:
            return self._call(task, task.job, self._nodes.info(row))
        except raised() as error:  # the caller goes on with the careful answer
            return self._failed(error)

    def _learn(self, task: PodInfo, row: int | None) -> None:
        """Ask, and add the branch."""
        notes, end = self._watched(task, row)
        question, value = self._top, _ROOT
        for fact, read in notes.read.items():
            following = question.branches.get(value)
            if following is None:
                following = self._question(fact)
                question.branches[value] = following
            if not isinstance(following, _Question) or following.fact is not fact:
                self._give_up()
                return
            question, value = following, read
        self._size += 1
        if isinstance(question, _ByNode) and isinstance(end, _Answer):
            question.known[row], question.answers[row] = True, end.value
        else:
            question.branches[value] = end

    def _watched(self, task: PodInfo, row: int | None) -> tuple[ReadingNotes, _Answer[A] | _Moving]:
        """Ask with views that note what is read; return the notes, and the answer if it depends on nothing else."""
        notes = ReadingNotes(task, -1 if row is None else row, self._reasons)
        job = JobView(task.job, notes)
        node = None if row is None else NodeView(self._nodes.info(row), self._nodes, notes)
        try:
            answer = _Answer(self._call(TaskView(task, job, notes), job, node))
        except raised():  # it is asked again, with the real objects, and fails visibly
            return notes, _Moving(with_node_only=False)
        if notes.moves or notes.moves_with_node:
            return notes, _Moving(with_node_only=not notes.moves)
        return notes, answer

    def _question(self, fact: Fact) -> _Question:
        if fact is not facts.WHOLE_NODE:
            return _Question(fact)
        capacity = self._nodes.table.capacity
        self._size += capacity // 16
        return _ByNode(capacity, self._kind)

    def _give_up(self) -> _Moving:
        """Ask each time from now on: the same reads were followed by different ones."""
        moving = _Moving(with_node_only=False)
        self._top.branches = {_ROOT: moving}
        return moving

    def _forget(self) -> None:
        self._top = _Question(None)
        self._size = 0
