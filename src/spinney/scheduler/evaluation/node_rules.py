"""Which nodes may take a task, and how well each suits it, kept in columns and refreshed where something changed.

Rules that depend on nothing but the request class are judged for all nodes once per class and session; those that read
what is on a node are judged again for the rows the usage journal names. Rules that also depend on the job are judged
per job, pod set and request class, for the nodes that are asked about. All that is for rules that promise it.

Every other rule is asked in turn, in the order of plugins, predicates before scores, each about the nodes that
resources and the rules before it have left. What is known about such a rule (:mod:`spinney.scheduler.knowledge`) spares
questions, but changes no answer.

Resource fit is not a rule of any plugin: it is always checked.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from math import inf
from operator import not_
from typing import Any, Final, NamedTuple, cast

import numpy as np

from spinney.cluster.classes import RequestClass
from spinney.cluster.fitting import few_fit_later_and_now
from spinney.cluster.journal import Rows
from spinney.cluster.table import Mask
from spinney.gangs.tree import GangKey
from spinney.runtime.faults import printable, raised, text_of
from spinney.scheduler.evaluation.node_answers import GPU_SCORE, PREDICATE, SCORE, NodeAnswers
from spinney.scheduler.evaluation.rule_sets import AskedRule, TaskRules
from spinney.scheduler.framework.extension_points import Predicate, PredicateFn, Score
from spinney.scheduler.framework.failures import Failures
from spinney.scheduler.framework.hooks import Hooks
from spinney.scheduler.framework.jobs import PodGroupInfo
from spinney.scheduler.framework.nodes import NodeInfo, Nodes, NodeSet, Scores
from spinney.scheduler.framework.tasks import PodInfo
from spinney.scheduler.framework.timing import Timings
from spinney.scheduler.knowledge.learning import Learned

_FEW: Final = 16
"""Up to so many nodes, numbers are quicker than arrays."""
_CELLS: Final = 1 << 23
"""How many verdicts are kept, of all kinds of pods about all nodes. With their scores they take up to 30 bytes each."""


@dataclass(slots=True)
class Judged:
    """Scores of all rows, ``[node]``, for one request class or one pod set; mutable, a cache."""

    score: Scores
    """Minus infinity where a pod may not go."""
    now: Mask
    """Where a pod may go, whether it may at once."""
    roomy: Mask
    """Where there is room for a pod, and rules that hold for the session let it go."""
    valid: Mask | None
    position: int
    outdated: bool = False
    """Whether a rule has come to see nodes differently since, also those on which nothing changed."""
    ranked: Scores | None = None
    """The scores in the order of the nodes' names, if asked for; the last stands for rows that are no node."""


class Candidates(NamedTuple):
    """Nodes a task may go to, in name order, whether it fits there now, and how well each suits it."""

    rows: Rows
    now: Mask
    score: Scores


_Conditions = tuple[tuple[Callable[[PodInfo], bool], ...], dict[tuple[bool, ...], TaskRules]]
"""What has to be asked about every task, and the rules that apply, by what is answered."""


class NodeRules:
    """Judges nodes for tasks by the rules plugins have registered. Mutable: it remembers verdicts."""

    def __init__(
        self, nodes: Nodes, hooks: Hooks, timings: Timings, failures: Failures, moment: Callable[[], int]
    ) -> None:
        self._nodes = nodes
        self._hooks = hooks
        self._timings = timings
        self._failures = failures
        self._answers = NodeAnswers(nodes, hooks, timings, failures)
        self._classes: dict[tuple[int, tuple[int, ...]], tuple[Judged, Judged]] = {}
        self._pod_sets: dict[tuple[GangKey, str, int, tuple[int, ...]], Judged] = {}
        self._alike_conditions: dict[tuple[bool, ...], _Conditions] = {}
        rules: list[Predicate | Score] = [*hooks.predicates, *hooks.scores]
        self._rules = rules
        self._conditions: dict[int, _Conditions] = {}
        """By request class."""
        self._particular = any(rule.particular for rule in rules if rule.applies_to is not None)
        self._learned = {
            id(rule): self._answers.knowledge_of(rule, moment) for rule in rules if _scope(rule) == _IN_TURN
        }

    @property
    def have_failed(self) -> bool:
        """Tell whether a plugin got something wrong about nodes or devices: whose answers may then differ."""
        return self._failures.at((PREDICATE, SCORE, GPU_SCORE))

    def failures(self, gang: GangKey, one_of_each: Iterable[PodInfo]) -> Mapping[str, str]:
        """Return what plugins got wrong while they judged nodes or devices for a gang, by plugin: those were dropped.

        A score that failed about a pod like those of the gang is asked once more, about each kind of its pods.
        """
        if self._failures.at((SCORE,)):
            for task in one_of_each:
                scores = [score for score in self._hooks.scores if score.applies(task)]
                self._answers.judge(([], scores), task, task.job, self._nodes.all.rows)
        return self._failures.told((PREDICATE, SCORE, GPU_SCORE), gang)

    def rules(self, task: PodInfo) -> TaskRules:
        """Return the rules that apply to ``task``."""
        number = task.request.number
        known = self._conditions.get(number)
        if known is None:
            known = self._conditions[number] = self._conditions_for(task.request)
        conditions, by_answers = known
        answers = tuple([condition(task) for condition in conditions])
        rules = by_answers.get(answers)
        if rules is None:
            rules = by_answers[answers] = self._sorted(task)
        return rules

    def _conditions_for(self, request: RequestClass) -> _Conditions:
        """Return the conditions of rules that may apply to tasks which make the request, shared by many."""
        concerned = tuple([rule.for_requests is None or rule.for_requests(request) for rule in self._rules])
        asked = zip(self._rules, concerned, strict=True)
        conditions = tuple([rule.applies_to for rule, has_say in asked if has_say and rule.applies_to is not None])
        return self._alike_conditions.setdefault(concerned, (conditions, {}))

    def candidates(self, task: PodInfo, nodes: NodeSet, rules: TaskRules | None = None) -> Candidates:
        """Return the nodes of ``nodes`` that may take ``task``, now or after what is terminating is gone.

        ``rules`` are those of the task, where they have just been asked for.
        """
        rules = self.rules(task) if rules is None else rules
        for learned in rules.learned:
            learned.begin()
        judged = self._class_verdicts(task, rules)
        rows = nodes.rows
        score = judged.score[rows]
        fits = score > -np.inf
        rows, score = rows[fits], score[fits]
        if rules.job[0] or rules.job[1]:
            score = score + self._pod_set_verdicts(task, task.job, rules, rows).score[rows]
            fits = score > -np.inf
            rows, score = rows[fits], score[fits]
        if rules.asked[0] or rules.asked[1]:
            fits, extra = self._answers.in_turn(rules.asked, task, rows)
            rows, score = rows[fits], (score + extra)[fits]
        return Candidates(rows, judged.now[rows], score)

    def best_now(self, task: PodInfo, nodes: NodeSet, rules: TaskRules) -> int | None:
        """Return the row of the best node for ``task``, if it fits there now; for rules that go by request alone."""
        judged = self._class_verdicts(task, rules)
        if nodes is self._nodes.all:
            ranked = judged.ranked
            if ranked is None:
                ranked = judged.ranked = np.append(judged.score[nodes.rows], -np.inf)
            place = int(ranked.argmax())
            found = ranked.item(place) > -inf
            row = nodes.rows.item(place) if found else 0
        else:
            rows, _, score = self.candidates(task, nodes, rules)
            found = len(rows) > 0
            row = int(rows[score.argmax()]) if found else 0
        return row if found and judged.now.item(row) else None

    def _have_same_rules(self, task: PodInfo, other: PodInfo, rules: TaskRules) -> bool:
        """Tell whether ``rules``, those of ``other``, are those of ``task``, which makes the same request.

        Rules that treat alike pods alike apply to both, but that placed pods may have rules about their labels.
        """
        if not self._particular:
            labels = task.record.pod.metadata.labels
            if not self._nodes.rule_carriers or labels == other.record.pod.metadata.labels:
                return True
        return self.rules(task) is rules

    def alike(self, tasks: Sequence[PodInfo], start: int, row: int, first: TaskRules) -> int:
        """Return how many tasks from ``start`` on get the answers that the first of them, by its rules, was given.

        All are of one pod set and request class. ``row`` is any candidate. What is answered by plugins that listen to
        placements is only known when its turn comes.
        """
        end = len(tasks)
        for each in first.learned:
            if not each.listens:
                end = each.alike_until(tasks, start + 1, end, row)
        if self._particular or self._nodes.rule_carriers:
            rest = range(start + 1, end)
            end = next((at for at in rest if not self._have_same_rules(tasks[at], tasks[start], first)), end)
        return end - start

    def still_alike(
        self, task: PodInfo, first: PodInfo, row: int, rules: TaskRules, learned: Sequence[Learned[Any]]
    ) -> bool:
        """Tell whether ``rules`` answer about ``task`` as they did about ``first``, though others were placed since.

        ``learned`` is what is known about them.
        """
        if not self._have_same_rules(task, first, rules):
            return False
        return not learned or all(each.refresh() or each.answers_alike_anew(task, row) for each in learned)

    def takes_now(self, task: PodInfo, node: NodeInfo, asked: Sequence[Predicate]) -> bool:
        """Tell whether predicates that are asked on the spot let ``task`` go to ``node``."""
        for rule in asked:
            with self._timings.measure(rule.plugin, PREDICATE):
                if not self._answers.lets(rule, task, task.job, node):
                    return False
        return True

    def ask_again(self, task: PodInfo, rows: Rows, rules: TaskRules) -> tuple[Mask, Scores]:
        """Return verdicts on ``rows`` as they are at this moment, and scores where a task may go; nothing is kept."""
        fixed, _ = self._class(task, rules)
        later, _ = self._nodes.resource_fit(task.request, rows)
        score = fixed.score[rows]
        fits = fixed.roomy[rows] & later
        for predicates, scores in (rules.usage, rules.job):
            if predicates or scores:
                left, extra = self._answers.judge((predicates, scores), task, task.job, rows[fits])
                score[fits] += extra
                if left is not None:
                    fits[fits] = left
        found, extra = self._answers.in_turn(rules.asked, task, rows[fits])
        score[fits] += extra
        fits[fits] = found
        return fits, score

    def still_takes(self, task: PodInfo, rows: Rows, rules: TaskRules) -> Mask:
        """Return which of some candidates, all of which have room, rules still let take ``task`` as they are now."""
        predicates = [rule for each in (rules.usage, rules.job) for rule in each[0]]
        left, _ = self._answers.judge((predicates, []), task, task.job, rows)
        fits = np.ones(len(rows), dtype=np.bool_) if left is None else left.copy()
        if rules.asked[0]:
            fits[fits] = self._answers.in_turn((rules.asked[0], []), task, rows[fits])[0]
        return fits

    def refused_by(self, task: PodInfo, nodes: NodeSet, *, besides: str) -> Iterator[tuple[str, Mask]]:
        """Return, by plugin but for one, the nodes of ``nodes`` that a predicate refuses, each judged on its own."""
        for rule in self._hooks.predicates:
            if rule.plugin != besides and rule.applies(task):
                yield rule.plugin, ~self._answers.let_by(rule, self._learned.get(id(rule)), task, nodes.rows)

    def reason_of(self, plugin: str, task: PodInfo, node: NodeInfo) -> str:
        """Return what a plugin's per-node predicates say about ``node``, in brackets; empty if they give no reason."""
        for rule in self._hooks.predicates:
            if rule.plugin != plugin or rule.columns or not rule.applies(task):
                continue
            try:
                answer = cast("PredicateFn", rule.fn)(task, task.job, node)
            except raised() as error:  # what it raised is its reason
                answer = text_of(error)
            if isinstance(answer, str) and answer:
                return f" ({printable(answer)})"
        return ""

    def look_again(self) -> None:
        """Have every rule that reads what is on nodes asked again: one of them has come to see them differently."""
        for _, current in self._classes.values():
            current.outdated = True
        for verdicts in self._pod_sets.values():
            verdicts.position = -1

    def suits(self, task: PodInfo) -> Mask:
        """Return the nodes, ``[node]``, that ``task`` may ever go to, whatever is on them."""
        rules = self.rules(task)
        return self._class(task, rules)[0].roomy

    def lasting_refusals(self, task: PodInfo, rows: Rows) -> Mapping[str, Mask]:
        """Return, by plugin, which of ``rows`` a predicate refuses now and still would if pods left them.

        Of what a predicate reads it is known that it changes, or not; of one that is not understood it is assumed that
        it does not. One that judges each placement when it is made is not asked.
        """
        found: dict[str, Mask] = {}
        for rule in self._hooks.predicates:
            if rule.stateful or not rule.applies(task):
                continue
            learned = self._learned.get(id(rule))
            refused = ~self._answers.let_by(rule, learned, task, rows)
            if learned is not None:
                for place in refused.nonzero()[0].tolist():
                    learned.begin()
                    learned.about_nodes(task, rows[place : place + 1])
                    refused[place] = learned.trace.moves or not learned.trace.by_use
            if refused.any():
                found[rule.plugin] = refused | found.get(rule.plugin, False)
        return found

    # -- caches ------------------------------------------------------------------------------------------------------

    def _sorted(self, task: PodInfo) -> TaskRules:
        sets: tuple[tuple[list[Any], list[Any]], ...] = (([], []), ([], []), ([], []))
        asked: tuple[list[AskedRule], list[AskedRule]] = ([], [])
        signature = [number for number, rule in enumerate(self._rules) if rule.applies(task)]
        for number in signature:
            rule, is_score = self._rules[number], number >= len(self._hooks.predicates)
            scope = _scope(rule)
            if scope == _IN_TURN:
                asked[is_score].append(AskedRule(rule, self._learned[id(rule)]))
            else:
                sets[scope][is_score].append(rule)
        few = all(rule.few is not None for rules in sets[1] for rule in rules)
        return TaskRules(sets[0], sets[1], sets[2], asked, tuple(signature), few)

    def _class_verdicts(self, task: PodInfo, rules: TaskRules) -> Judged:
        known = self._class(task, rules)
        current, usage = known[1], self._nodes.table.usage
        if current.outdated or current.position != usage.position:
            by_numbers = rules.few and not current.outdated
            few = usage.few_since(current.position, _FEW) if by_numbers else None
            if few is None:
                changed = usage.since(current.position)
                rows = self._nodes.all.rows if changed is None else changed
                if usage.only_taken_since(current.position):
                    rows = rows[current.roomy.take(rows)]
                    few = rows.tolist() if by_numbers and len(rows) <= _FEW else None
            if few is None:
                self._refresh(known, rules, task, rows)
            else:
                self._refresh_few(known, rules, task.request, few)
        return current

    def _class(self, task: PodInfo, rules: TaskRules) -> tuple[Judged, Judged]:
        """Return what holds for a request class for the session, and until something changes on a node."""
        key = (task.request.number, rules.signature)
        known = self._classes.get(key)
        if known is None:
            everything = self._nodes.all.rows
            fixed = self._blank()
            fixed.score[everything] = _barred(*self._answers.judge(rules.fixed, task, task.job, everything))
            fixed.roomy = fixed.score > -np.inf
            self._make_room(self._classes)
            known = self._classes[key] = (fixed, self._blank())
            self._refresh(known, rules, task, everything)
        return known

    def _refresh(self, known: tuple[Judged, Judged], rules: TaskRules, task: PodInfo, rows: Rows) -> None:
        """Judge rows on which something changed; all that have room, where nodes are seen differently now."""
        fixed, current = known
        nodes, everything = self._nodes, self._nodes.all.rows
        later, now = nodes.resource_fit(task.request, rows)
        roomy = later & fixed.roomy.take(rows)
        current.roomy[rows] = roomy
        if now is not later:
            current.now[rows] = now
        if current.outdated:
            rows, current.outdated = everything, False
            roomy = current.roomy.take(rows)
        score = np.empty(len(rows))
        score.fill(-inf)
        (places,) = roomy.nonzero()
        if len(places):
            open_rows = rows.take(places)
            if rules.few and len(open_rows) <= _FEW and rows is not everything:
                found: Scores | Sequence[float] = self._answers.of_few(rules.usage, task.request, open_rows.tolist())
            else:
                nodes.note_fit(task.request, open_rows, now=current.now.take(open_rows))
                found = _barred(*self._answers.judge(rules.usage, task, task.job, open_rows))
            score[places] = fixed.score.take(open_rows) + found
        current.score[rows] = score
        current.position = nodes.table.usage.position
        if current.ranked is not None:
            current.ranked[slice(len(rows)) if rows is everything else nodes.table.rank[rows]] = score

    def _refresh_few(
        self, known: tuple[Judged, Judged], rules: TaskRules, request: RequestClass, rows: Sequence[int]
    ) -> None:
        """Do the same where few rows have changed: one number after the other is quicker than arrays."""
        fixed, current = known
        table = self._nodes.table
        # Where there was no room there is none now, unless something may have given some.
        may_fit = (current if table.usage.only_taken_since(current.position) else fixed).roomy.item
        current.position = table.usage.position
        rows = [row for row in rows if may_fit(row)]
        if not rows:
            return
        later, now = few_fit_later_and_now(self._nodes.ledger, request, rows)
        if now is not later:
            current.now[rows] = now
        score, roomy, ranked, rank = current.score, current.roomy, current.ranked, table.rank.item
        open_rows = list(compress(rows, later))
        had_room = roomy.item
        for row in compress(rows, map(not_, later)):
            if had_room(row):  # most had none before
                roomy[row], score[row] = False, -inf
                if ranked is not None:
                    ranked[rank(row)] = -inf
        if open_rows:
            lasting = fixed.score.item
            for row, total in zip(open_rows, self._answers.of_few(rules.usage, request, open_rows), strict=True):
                roomy[row], score[row] = True, (here := lasting(row) + total)
                if ranked is not None:
                    ranked[rank(row)] = here

    def _pod_set_verdicts(self, task: PodInfo, job: PodGroupInfo, rules: TaskRules, rows: Rows) -> Judged:
        key = (job.key, task.pod_set.name, task.request.number, rules.signature)
        usage = self._nodes.table.usage
        known = self._pod_sets.get(key)
        if known is None:
            self._make_room(self._pod_sets)
            known = self._pod_sets[key] = self._blank()
            known.valid = np.zeros(self._nodes.table.capacity, dtype=np.bool_)
        assert known.valid is not None, "verdicts of pod sets say which rows they cover"
        if known.position != usage.position:
            dirty = usage.since(known.position)
            known.valid[slice(None) if dirty is None else dirty] = False
            known.position = usage.position
        missing = rows[~known.valid[rows]]
        if len(missing):
            known.score[missing] = _barred(*self._answers.judge(rules.job, task, job, missing))
            known.valid[missing] = True
        return known

    def _make_room(self, cache: dict[Any, Any]) -> None:
        """Forget the kind that has been known longest, if there are many: it is judged again when it is needed."""
        if cache and len(cache) * self._nodes.table.capacity >= _CELLS:
            del cache[next(iter(cache))]

    def _blank(self) -> Judged:
        capacity = self._nodes.table.capacity
        return Judged(
            score=np.full(capacity, -np.inf),
            now=np.ones(capacity, dtype=np.bool_),
            roomy=np.zeros(capacity, dtype=np.bool_),
            valid=None,
            position=self._nodes.table.usage.position,
        )


def _barred(fits: Mask | None, score: Scores) -> Scores:
    """Return scores that are minus infinity where a pod may not go."""
    return score if fits is None else np.where(fits, score, -np.inf)


_IN_TURN: Final = 3


def _scope(rule: Predicate | Score) -> int:
    """Return the place in a :class:`TaskRules` that a rule's promises give it."""
    if rule.stateful or rule.particular:
        return _IN_TURN
    if rule.per_job:
        return 2
    return 1 if rule.reads_usage else 0
