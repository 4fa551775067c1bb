"""The rules that apply to a task, by how long their answers hold, and what they promise together."""

from collections.abc import Iterator
from typing import Any, NamedTuple, cast

from spinney.scheduler.framework.extension_points import Predicate, Score
from spinney.scheduler.knowledge.learning import Learned


class AskedRule(NamedTuple):
    """A rule that is asked in turn, with what is known about it, if it can be known."""

    rule: Predicate | Score
    learned: Learned[Any] | None


class TaskRules(NamedTuple):
    """The rules that apply to a task, by how long their answers hold."""

    fixed: tuple[list[Predicate], list[Score]]
    """Hold for the session: nothing but request class and node."""
    usage: tuple[list[Predicate], list[Score]]
    """Hold until something changes on the node."""
    job: tuple[list[Predicate], list[Score]]
    """Hold for the pod set until something changes on the node."""
    asked: tuple[list[AskedRule], list[AskedRule]]
    """Are asked in turn."""
    signature: tuple[int, ...]
    few: bool
    """Whether those that hold until something changes on the node can be asked about a few rows by numbers."""

    @property
    def learned(self) -> Iterator[Learned[Any]]:
        """Return what is known about the rules that are asked in turn."""
        return (each.learned for asked in self.asked for each in asked if each.learned is not None)

    @property
    def extent_of_knowledge(self) -> list[tuple[int, bool, bool]]:
        """Return on how much the answers about a task have depended so far; it grows as more is asked about it."""
        traces = [each.trace for each in self.learned]
        return [(len(trace.read), trace.by_node, trace.moves) for trace in traces]

    @property
    def only_room_limits(self) -> bool:
        """Tell whether, once a node is a candidate, only its resources can end that, as far as rules were asked."""
        if self.usage[0] or self.job[0]:
            return False
        return all(each.learned is not None and not each.learned.trace.by_use for each in self.asked[0])

    @property
    def monotone(self) -> bool:
        """Tell whether placing a task on a node never lowers the node's score, as far as rules were asked."""
        promised = all(rule.monotone for _, scores in (self.fixed, self.usage, self.job) for rule in scores)
        return promised and all(
            each.rule.monotone or (each.learned is not None and not each.learned.trace.by_use) for each in self.asked[1]
        )

    @property
    def by_class(self) -> bool:
        """Tell whether verdicts and scores are the same for every task of a request class."""
        return not any(self.job + self.asked)

    @property
    def on_the_spot(self) -> list[Predicate]:
        """Return the predicates that are to be asked about a node just before a task is placed there."""
        return [cast("Predicate", each.rule) for each in self.asked[0] if _is_asked_on_the_spot(each)]

    @property
    def planned(self) -> "TaskRules":
        """Return the rules by which can be planned where several tasks go: all but those above."""
        predicates = [each for each in self.asked[0] if not _is_asked_on_the_spot(each)]
        return self if len(predicates) == len(self.asked[0]) else self._replace(asked=(predicates, self.asked[1]))

    @property
    def local(self) -> bool:
        """Tell whether placing a task on a node changes nothing about other nodes, as far as rules were asked."""
        predicates, scores = self.asked
        return all(_is_local(each.learned) for each in predicates) and all(
            _is_local(each.learned) if each.learned is not None else each.rule.monotone for each in scores
        )


def _is_asked_on_the_spot(asked: AskedRule) -> bool:
    """Tell whether a predicate judges node by node and is to be asked at the moment of each placement."""
    return asked.rule.stateful and not asked.rule.columns


def _is_local(learned: Learned[Any] | None) -> bool:
    return learned is not None and not learned.trace.moves
