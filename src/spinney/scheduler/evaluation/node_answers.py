"""What rules answer about nodes, in columns, whatever form they answer in; who fails refuses, and is told about.

Rules of one kind are asked together about the same nodes; those that promise nothing in turn, each about the nodes that
those before it have left.
"""

from collections.abc import Callable, Sequence
from itertools import repeat
from math import inf, isfinite
from operator import add
from typing import Any, Final, cast

import numpy as np

from spinney.cluster.classes import RequestClass
from spinney.cluster.journal import Rows
from spinney.cluster.table import Mask
from spinney.extensions.answers import InvalidAnswer, shown
from spinney.runtime.faults import raised
from spinney.scheduler.evaluation.rule_sets import AskedRule
from spinney.scheduler.framework import validation
from spinney.scheduler.framework.extension_points import (
    DoesNotFit,
    Fit,
    NodeOrderColumns,
    NodeOrderFn,
    Predicate,
    PredicateColumns,
    PredicateFn,
    Score,
)
from spinney.scheduler.framework.failures import Failures
from spinney.scheduler.framework.hooks import Hooks
from spinney.scheduler.framework.jobs import PodGroupInfo
from spinney.scheduler.framework.nodes import NodeInfo, Nodes, NodeSet, Scores
from spinney.scheduler.framework.tasks import PodInfo
from spinney.scheduler.framework.timing import Timings
from spinney.scheduler.knowledge.learning import Learned
from spinney.scheduler.knowledge.reaching import reach_of
from spinney.scheduler.knowledge.refusals import reasons_of

PREDICATE: Final = "predicate"
SCORE: Final = "node_order"
GPU_SCORE: Final = "gpu_order"


class NodeAnswers:
    """Asks rules about nodes."""

    def __init__(self, nodes: Nodes, hooks: Hooks, timings: Timings, failures: Failures) -> None:
        self._nodes = nodes
        self._hooks = hooks
        self._timings = timings
        self._failures = failures

    def knowledge_of(self, rule: Predicate | Score, moment: Callable[[], int]) -> Learned[Any] | None:
        """Return what can be known about a rule; ``None`` if nothing can, or if it is not to be used."""
        reach = None if rule.columns or rule.stateful else reach_of(rule.fn)
        if reach is None:
            return None
        until = moment if rule.plugin in self._hooks.listeners else None
        call: Callable[[PodInfo, PodGroupInfo, NodeInfo], Any]
        kind: type
        worst: float
        if any(rule is each for each in self._hooks.predicates):
            call, hook, kind, worst = _verdict(cast("PredicateFn", rule.fn)), PREDICATE, bool, False
        else:
            call, hook, kind, worst = _score(cast("NodeOrderFn", rule.fn)), SCORE, float, -np.inf

        def failed(error: BaseException) -> float:
            self._failed(rule, hook, error)
            return worst

        reasons = reasons_of(rule.fn) if hook == PREDICATE else None
        return Learned(call, reach, self._nodes, kind=kind, failed=failed, moment=until, reasons=reasons)

    def in_turn(self, asked: tuple[list[AskedRule], list[AskedRule]], task: PodInfo, rows: Rows) -> tuple[Mask, Scores]:
        """Ask each rule about the ``rows`` that those before it have left; return one verdict and one score per row."""
        fits = np.ones(len(rows), dtype=np.bool_)
        total = np.zeros(len(rows), dtype=np.float64)
        predicates, scores = asked
        for rule, learned in predicates:
            left = rows[fits]
            if len(left):
                fits[fits] = self.let_by(cast("Predicate", rule), learned, task, left)
        for rule, learned in scores:
            left = rows[fits]
            if len(left):
                nodes = NodeSet(self._nodes, left)
                with self._timings.measure(rule.plugin, SCORE):
                    found, had = self._score_in_turn(cast("Score", rule), learned, task, nodes)
                total[fits] += found
                if had is not None:
                    fits[fits] = had
        return fits, total

    def let_by(self, rule: Predicate, learned: Learned[Any] | None, task: PodInfo, rows: Rows) -> Mask:
        """Return which of ``rows`` a predicate lets a task go to, by what is known about it where anything is."""
        with self._timings.measure(rule.plugin, PREDICATE):
            if learned is not None:
                return learned.about_nodes(task, rows)
            return self.of_predicate(rule, task, task.job, NodeSet(self._nodes, rows))

    def _score_in_turn(
        self, rule: Score, learned: Learned[Any] | None, task: PodInfo, nodes: NodeSet
    ) -> tuple[Scores, Mask | None]:
        """Return scores and, where not every node has one, which have."""
        if learned is None:
            return self._finite(rule, *self._ask_score(rule, task, task.job, nodes), nodes)
        known: Scores = learned.about_nodes(task, nodes.rows)
        return self._finite(rule, known, np.flatnonzero(np.isneginf(known)).tolist(), nodes)

    def judge(
        self, rules: tuple[list[Predicate], list[Score]], task: PodInfo, job: PodGroupInfo, rows: Rows
    ) -> tuple[Mask | None, Scores]:
        """Ask rules about ``rows``; return one verdict per row, none where nobody refuses any, and one score."""
        predicates, scores = rules
        fits: Mask | None = None
        if not predicates and not scores:
            return fits, np.zeros(len(rows))
        nodes = NodeSet(self._nodes, rows)
        for predicate in predicates:
            with self._timings.measure(predicate.plugin, PREDICATE):
                fits = _both(fits, self.of_predicate(predicate, task, job, nodes))
        if not scores:
            return fits, np.zeros(len(rows))
        answers: list[tuple[Scores, Sequence[int]]] = []
        for each in scores:
            with self._timings.measure(each.plugin, SCORE):
                answers.append(self._ask_score(each, task, job, nodes))
        score = answers[0][0]
        for found, _ in answers[1:]:
            score = score + found
        if isfinite(score.dot(score)) and not any(dropped for _, dropped in answers):
            return fits, score  # what is not finite makes no finite sum
        score = np.zeros(len(rows))
        for each, (found, dropped) in zip(scores, answers, strict=True):
            checked, had = self._finite(each, found, dropped, nodes)
            fits = fits if had is None else _both(fits, had)
            score += checked
        return fits, score

    def of_few(
        self, rules: tuple[list[Predicate], list[Score]], request: RequestClass, rows: Sequence[int]
    ) -> Sequence[float]:
        """Ask rules about a few rows, one or more; return one score per row, minus infinity where one refuses."""
        rows, (predicates, scores) = tuple(rows), rules
        total: Sequence[float] = ()
        for score in scores:
            said = self._of_few(score, SCORE, request, rows)
            total = list(map(add, total, said)) if total else said
        if not isfinite(sum(total)):
            total = [each if isfinite(each) else -inf for each in total]
        for predicate in predicates:
            lets = self._of_few(predicate, PREDICATE, request, rows)
            if not all(lets):
                total = [each if fits else -inf for each, fits in zip(total or repeat(0.0), lets, strict=False)]
        return total or [0.0] * len(rows)

    def _of_few(
        self, rule: Predicate | Score, hook: str, request: RequestClass, rows: Sequence[int]
    ) -> Sequence[float]:
        """Return what a rule answers about a few rows; where it fails, or a score is not finite, what refuses them."""
        assert rule.few is not None, "all rules that are asked answer so"
        try:
            with self._timings.measure(rule.plugin, hook):
                said = validation.few_of(rule.few(request, rows), len(rows))
            if not isfinite(sum(said)):
                validation.must_be_finite(np.array(said), NodeSet(self._nodes, np.array(rows, dtype=np.intp)))
        except raised() as error:  # a node without an answer is refused
            self._failed(rule, hook, error)
            return [0.0 if hook == PREDICATE else -inf] * len(rows)
        return said

    def of_predicate(self, rule: Predicate, task: PodInfo, job: PodGroupInfo, nodes: NodeSet) -> Mask:
        """Return which of ``nodes`` a predicate lets a task go to."""
        if rule.columns:
            try:
                return validation.mask_of(cast("PredicateColumns", rule.fn)(task, job, nodes), nodes)
            except raised() as error:  # a predicate that fails refuses
                self._failed(rule, PREDICATE, error)
                return np.zeros(len(nodes), dtype=np.bool_)
        return np.array([self.lets(rule, task, job, node) for node in nodes], dtype=np.bool_)

    def lets(self, rule: Predicate, task: PodInfo, job: PodGroupInfo, node: NodeInfo) -> bool:
        """Tell whether a predicate that judges node by node lets a task go to ``node``."""
        try:
            said = cast("PredicateFn", rule.fn)(task, job, node)
            return said is None or accepts(said)
        except DoesNotFit:
            return False
        except raised() as error:  # a predicate that fails refuses
            self._failed(rule, PREDICATE, error)
            return False

    def _ask_score(self, rule: Score, task: PodInfo, job: PodGroupInfo, nodes: NodeSet) -> tuple[Scores, Sequence[int]]:
        """Return scores, which may not be finite, and the places of nodes that have none: those are dropped."""
        if rule.columns:
            try:
                return validation.scores_of(cast("NodeOrderColumns", rule.fn)(task, job, nodes), nodes), ()
            except raised() as error:  # a node without a score is dropped
                self._failed(rule, SCORE, error)
                return np.zeros(len(nodes)), range(len(nodes))
        fn = cast("NodeOrderFn", rule.fn)
        said: list[Any] = []
        dropped: list[int] = []
        for position, node in enumerate(nodes):
            try:
                said.append(fn(task, node))
            except raised() as error:  # a node without a score is dropped
                self._failed(rule, SCORE, error)
                said.append(0.0)
                dropped.append(position)
        numbers = validation.all_numbers(said)
        if numbers is None:
            numbers = np.zeros(len(nodes))
            for position, each in enumerate(said):
                try:
                    numbers[position] = validation.number(each)
                except InvalidAnswer as error:
                    self._failed(rule, SCORE, error)
                    dropped.append(position)
        return numbers, dropped

    def _finite(self, rule: Score, found: Scores, dropped: Sequence[int], nodes: NodeSet) -> tuple[Scores, Mask | None]:
        """Return scores and, where not every node has one that is finite, which have."""
        if not dropped and isfinite(np.add.reduce(found)):  # what is not finite makes no finite sum
            return found, None
        had = np.isfinite(found)
        if had.all() and not dropped:
            return found, None
        without = np.array(dropped, dtype=np.intp)
        odd = ~had
        odd[without] = False
        try:
            validation.must_be_finite(found[odd], nodes.where(odd))
        except InvalidAnswer as error:
            self._failed(rule, SCORE, error)
        had[without] = False
        return np.where(had, found, 0.0), had

    def _failed(self, rule: Predicate | Score, hook: str, error: BaseException) -> None:
        event = "plugin failed while judging nodes, which are refused"
        self._failures.add(event, rule.plugin, hook, rule.fn, error)


def _both(fits: Mask | None, also: Mask) -> Mask:
    return also if fits is None else fits & also


def _verdict(fn: PredicateFn) -> Callable[[PodInfo, PodGroupInfo, NodeInfo], bool]:
    def verdict(task: PodInfo, job: PodGroupInfo, node: NodeInfo) -> bool:
        try:
            return accepts(fn(task, job, node))
        except DoesNotFit:
            return False

    return verdict


def _score(fn: NodeOrderFn) -> Callable[[PodInfo, PodGroupInfo, NodeInfo], float]:
    def score(task: PodInfo, job: PodGroupInfo, node: NodeInfo) -> float:
        found = validation.number(fn(task, node))
        if found == -np.inf:  # stands for a failure
            raise InvalidAnswer(f"-inf for node {node.name}", "a finite number")
        return found

    return score


def accepts(answer: Fit) -> bool:
    """Tell whether a predicate's answer means *fits*; raises :class:`InvalidAnswer` for one that means nothing."""
    if answer is None or answer is True:
        return True
    if answer is False or isinstance(answer, str):
        return False
    found = validation.single(answer)  # type: ignore[unreachable] # what numpy compares gives a truth value of its own
    if isinstance(found, np.bool_):
        return bool(found)
    raise InvalidAnswer(shown(answer), "None or True where a pod fits, False or a reason where not")
