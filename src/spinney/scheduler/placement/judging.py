"""Which nodes may take a task, and how well each suits it, kept in columns and refreshed where something changed.

Rules that depend on nothing but the request class are judged for all nodes once per class and session; those that read
what is on a node are judged again for the rows the usage journal names. Rules that also depend on the job are judged
per job, pod set and request class, for the nodes somebody asks about. Stateful rules are judged every time.

Resource fit is not a rule of any plugin: it is always checked.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, cast

import numpy as np

from spinney.cluster.classes import RequestClass
from spinney.cluster.devices import DEVICE
from spinney.cluster.journal import Rows
from spinney.cluster.resources import GPU, Vector
from spinney.cluster.table import Mask
from spinney.gangs.tree import GangKey
from spinney.scheduler import answers
from spinney.scheduler.failing import Failures, InvalidAnswer
from spinney.scheduler.hooks import (
    DoesNotFit,
    Fit,
    Hooks,
    NodeOrderColumns,
    NodeOrderFn,
    Predicate,
    PredicateColumns,
    PredicateFn,
    Score,
)
from spinney.scheduler.jobs import PodGroupInfo
from spinney.scheduler.nodes import LastFit, NodeInfo, Nodes, NodeSet, Scores
from spinney.scheduler.tasks import PodInfo
from spinney.scheduler.timing import Timings

PREDICATE: Final = "predicate"
SCORE: Final = "node_order"
GPU_SCORE: Final = "gpu_order"


@dataclass(slots=True)
class Judged:
    """Verdicts and scores of all rows, ``[node]``, for one request class or one pod set; mutable, a cache."""

    fits: Mask
    score: Scores
    now: Mask
    valid: Mask | None
    position: int


class Candidates(NamedTuple):
    """Nodes a task may go to, in name order, whether it fits there now, and how well each suits it."""

    rows: Rows
    now: Mask
    score: Scores


class RuleSet(NamedTuple):
    """The rules that have a say about a task, by how long their answers hold."""

    fixed: tuple[list[Predicate], list[Score]]
    """Hold for the session: nothing but request class and node."""
    usage: tuple[list[Predicate], list[Score]]
    """Hold until something changes on the node."""
    job: tuple[list[Predicate], list[Score]]
    """Hold for the pod set until something changes on the node."""
    stateful: tuple[list[Predicate], list[Score]]
    signature: tuple[int, ...]

    @property
    def only_room_limits(self) -> bool:
        """Tell whether, once a node is a candidate, only its resources can end that."""
        return not (self.usage[0] or self.job[0] or self.stateful[0])

    @property
    def monotone(self) -> bool:
        """Tell whether placing a task on a node never lowers the node's score."""
        return all(rule.monotone for _, scores in self[:4] for rule in scores)

    @property
    def by_class(self) -> bool:
        """Tell whether verdicts and scores are the same for every task of a request class."""
        return not any(self.job + self.stateful)

    @property
    def local(self) -> bool:
        """Tell whether placing a task on a node changes nothing about other nodes."""
        predicates, scores = self.stateful
        return not predicates and all(rule.monotone for rule in scores)


class Judge:
    """Judges nodes for tasks by the rules plugins have registered. Mutable: it remembers verdicts."""

    def __init__(self, nodes: Nodes, hooks: Hooks, timings: Timings, failures: Failures) -> None:
        self._nodes = nodes
        self._hooks = hooks
        self._timings = timings
        self._failures = failures
        self._classes: dict[tuple[int, tuple[int, ...]], tuple[Judged, Judged]] = {}
        self._pod_sets: dict[tuple[GangKey, str, int, tuple[int, ...]], Judged] = {}
        self._rule_sets: dict[tuple[bool, ...], RuleSet] = {}
        conditions = [rule.applies_to for rule in hooks.predicates] + [rule.applies_to for rule in hooks.scores]
        self._conditions = [condition for condition in conditions if condition is not None]

    @property
    def failures(self) -> Mapping[str, str]:
        """Return what plugins got wrong while they judged nodes or devices, by plugin: what they dropped is missing."""
        return self._failures.told((PREDICATE, SCORE, GPU_SCORE))

    def rules(self, task: PodInfo) -> RuleSet:
        """Return the rules that have a say about ``task``."""
        applying = tuple([condition(task) for condition in self._conditions])
        known = self._rule_sets.get(applying)
        if known is None:
            known = self._rule_sets[applying] = self._sorted(task)
        return known

    def candidates(self, task: PodInfo, nodes: NodeSet) -> Candidates:
        """Return the nodes of ``nodes`` that may take ``task``, now or after what is terminating is gone."""
        rules = self.rules(task)
        job = task.job
        judged = self._class_verdicts(task, rules)
        rows = nodes.rows
        rows = rows[judged.fits[rows]]
        score = judged.score[rows]
        if rules.job[0] or rules.job[1]:
            own = self._pod_set_verdicts(task, job, rules, rows)
            fits = own.fits[rows]
            rows, score = rows[fits], (score + own.score[rows])[fits]
        if rules.stateful[0] or rules.stateful[1]:
            fits, extra = self._judge(rules.stateful, task, job, rows)
            rows, score = rows[fits], (score + extra)[fits]
        return Candidates(rows, judged.now[rows], score)

    def ask_again(self, task: PodInfo, rows: Rows) -> tuple[Mask, Scores]:
        """Return verdicts on ``rows`` as they are at this moment, and scores where a task may go; nothing is kept."""
        rules = self.rules(task)
        fixed, _ = self._classes[task.request.number, rules.signature]
        later, _ = resource_fit(self._nodes, task.request, rows)
        fits = fixed.fits[rows] & later
        score = fixed.score[rows]
        for predicates, scores in (rules.usage, rules.job, rules.stateful):
            if predicates or scores:
                found, extra = self._judge((predicates, scores), task, task.job, rows[fits])
                score[fits] += extra
                fits[fits] = found
        return fits, score

    def still_takes(self, task: PodInfo, rows: Rows) -> Mask:
        """Return which of some candidates, all of which have room, rules still let take ``task`` as they are now."""
        rules = self.rules(task)
        predicates = [rule for each in (rules.usage, rules.job, rules.stateful) for rule in each[0]]
        fits, _ = self._judge((predicates, []), task, task.job, rows)
        return fits

    def refused_by(self, task: PodInfo, nodes: NodeSet, *, besides: str = "") -> list[tuple[str, Mask]]:
        """Return, by plugin but for one, the nodes of ``nodes`` that a predicate refuses, each judged on its own."""
        found: list[tuple[str, Mask]] = []
        for rule in self._hooks.predicates:
            if rule.plugin != besides and rule.applies(task):
                fits, _ = self._judge(([rule], []), task, task.job, nodes.rows)
                found.append((rule.plugin, ~fits))
        return found

    def reason_of(self, plugin: str, task: PodInfo, node: NodeInfo) -> str:
        """Return what a plugin's per-node predicates say about ``node``, in brackets; empty if they give no reason."""
        for rule in self._hooks.predicates:
            if rule.plugin != plugin or rule.columns or not rule.applies(task):
                continue
            try:
                answer = cast("PredicateFn", rule.fn)(task, task.job, node)
            except Exception as error:  # noqa: BLE001 - what it raised is its reason
                answer = str(error)
            if isinstance(answer, str):
                return f" ({answer})"
        return ""

    def look_again(self) -> None:
        """Have every rule that reads what is on nodes asked again: one of them has come to see them differently."""
        for _, current in self._classes.values():
            current.position = -1
        for verdicts in self._pod_sets.values():
            verdicts.position = -1

    def suits(self, task: PodInfo) -> Mask:
        """Return the nodes, ``[node]``, that ``task`` may ever go to, whatever is on them."""
        rules = self.rules(task)
        self._class_verdicts(task, rules)
        return self._classes[task.request.number, rules.signature][0].fits

    # -- caches ------------------------------------------------------------------------------------------------------

    def _sorted(self, task: PodInfo) -> RuleSet:
        sets: tuple[tuple[list[Predicate], list[Score]], ...] = (([], []), ([], []), ([], []), ([], []))
        signature: list[int] = []
        for number, predicate in enumerate(self._hooks.predicates):
            if predicate.applies(task):
                signature.append(number)
                sets[_scope(predicate)][0].append(predicate)
        for number, score in enumerate(self._hooks.scores, start=len(self._hooks.predicates)):
            if score.applies(task):
                signature.append(number)
                sets[_scope(score)][1].append(score)
        return RuleSet(sets[0], sets[1], sets[2], sets[3], tuple(signature))

    def _class_verdicts(self, task: PodInfo, rules: RuleSet) -> Judged:
        key = (task.request.number, rules.signature)
        table = self._nodes.table
        known = self._classes.get(key)
        if known is None:
            everything = self._nodes.all.rows
            fixed = self._blank()
            fits, score = self._judge(rules.fixed, task, task.job, everything)
            fixed.fits[everything], fixed.score[everything] = fits, score
            known = self._classes[key] = (fixed, self._blank())
            self._refresh(known, rules, task, everything)
            return known[1]
        current = known[1]
        if current.position != table.usage.position:
            rows = table.usage.since(current.position)
            self._refresh(known, rules, task, self._nodes.all.rows if rows is None else rows)
        return current

    def _refresh(self, known: tuple[Judged, Judged], rules: RuleSet, task: PodInfo, rows: Rows) -> None:
        fixed, current = known
        later, now = resource_fit(self._nodes, task.request, rows)
        fits, score = self._judge(rules.usage, task, task.job, rows)
        current.fits[rows] = fixed.fits[rows] & later & fits
        current.now[rows] = now
        current.score[rows] = fixed.score[rows] + score
        current.position = self._nodes.table.usage.position

    def _pod_set_verdicts(self, task: PodInfo, job: PodGroupInfo, rules: RuleSet, rows: Rows) -> Judged:
        key = (job.key, task.pod_set.name, task.request.number, rules.signature)
        usage = self._nodes.table.usage
        known = self._pod_sets.get(key)
        if known is None:
            known = self._pod_sets[key] = self._blank()
            known.valid = np.zeros(self._nodes.table.capacity, dtype=np.bool_)
        assert known.valid is not None, "verdicts of pod sets say which rows they cover"
        if known.position != usage.position:
            dirty = usage.since(known.position)
            known.valid[slice(None) if dirty is None else dirty] = False
            known.position = usage.position
        missing = rows[~known.valid[rows]]
        if len(missing):
            known.fits[missing], known.score[missing] = self._judge(rules.job, task, job, missing)
            known.valid[missing] = True
        return known

    def _blank(self) -> Judged:
        capacity = self._nodes.table.capacity
        return Judged(
            fits=np.zeros(capacity, dtype=np.bool_),
            score=np.zeros(capacity, dtype=np.float64),
            now=np.zeros(capacity, dtype=np.bool_),
            valid=None,
            position=self._nodes.table.usage.position,
        )

    # -- asking plugins ----------------------------------------------------------------------------------------------

    def _judge(
        self, rules: tuple[list[Predicate], list[Score]], task: PodInfo, job: PodGroupInfo, rows: Rows
    ) -> tuple[Mask, Scores]:
        """Ask rules about ``rows``; return one verdict and one score per row."""
        fits = np.ones(len(rows), dtype=np.bool_)
        score = np.zeros(len(rows), dtype=np.float64)
        predicates, scores = rules
        if not predicates and not scores:
            return fits, score
        nodes = NodeSet(self._nodes, rows)
        for predicate in predicates:
            with self._timings.measure(predicate.plugin, PREDICATE):
                fits &= self._ask_predicate(predicate, task, job, nodes)
        for each in scores:
            with self._timings.measure(each.plugin, SCORE):
                found, had = self._ask_score(each, task, job, nodes)
            if had is not None:
                fits &= had
            score += found
        return fits, score

    def _ask_predicate(self, rule: Predicate, task: PodInfo, job: PodGroupInfo, nodes: NodeSet) -> Mask:
        if rule.columns:
            try:
                return answers.mask_of(cast("PredicateColumns", rule.fn)(task, job, nodes), nodes)
            except Exception as error:  # noqa: BLE001 - a predicate that fails refuses
                self._failed(rule, PREDICATE, error)
                return np.zeros(len(nodes), dtype=np.bool_)
        fn = cast("PredicateFn", rule.fn)
        verdicts: list[bool] = []
        for node in nodes:
            fits = False
            try:
                said = fn(task, job, node)
                fits = said is None or accepts(said)
            except DoesNotFit:
                pass
            except Exception as error:  # noqa: BLE001 - a predicate that fails refuses
                self._failed(rule, PREDICATE, error)
            verdicts.append(fits)
        return np.array(verdicts, dtype=np.bool_)

    def _ask_score(self, rule: Score, task: PodInfo, job: PodGroupInfo, nodes: NodeSet) -> tuple[Scores, Mask | None]:
        """Return scores, and which nodes have one where some have not: those are dropped."""
        if rule.columns:
            try:
                found = answers.scores_of(cast("NodeOrderColumns", rule.fn)(task, job, nodes), nodes)
            except Exception as error:  # noqa: BLE001 - a node without a score is dropped
                self._failed(rule, SCORE, error)
                return np.zeros(len(nodes)), np.zeros(len(nodes), dtype=np.bool_)
            return self._finite(rule, found, nodes, ())
        fn = cast("NodeOrderFn", rule.fn)
        said: list[Any] = []
        dropped: list[int] = []
        for position, node in enumerate(nodes):
            try:
                said.append(fn(task, node))
            except Exception as error:  # noqa: BLE001 - a node without a score is dropped
                self._failed(rule, SCORE, error)
                said.append(0.0)
                dropped.append(position)
        numbers = answers.all_numbers(said)
        if numbers is None:
            numbers = np.zeros(len(nodes))
            for position, each in enumerate(said):
                try:
                    numbers[position] = answers.number(each)
                except InvalidAnswer as error:
                    self._failed(rule, SCORE, error)
                    dropped.append(position)
        return self._finite(rule, numbers, nodes, dropped)

    def _finite(self, rule: Score, found: Scores, nodes: NodeSet, dropped: Sequence[int]) -> tuple[Scores, Mask | None]:
        """Return scores and, where not every node has one that is finite, which have."""
        had = np.isfinite(found)
        if had.all() and not dropped:
            return found, None
        try:
            answers.must_be_finite(found, nodes)
        except InvalidAnswer as error:
            self._failed(rule, SCORE, error)
        had[dropped] = False
        return np.where(had, found, 0.0), had

    def _failed(self, rule: Predicate | Score, hook: str, error: Exception) -> None:
        event = "plugin failed while judging nodes, which are refused"
        self._failures.add(event, rule.plugin, hook, rule.fn, error)


def _scope(rule: Predicate | Score) -> int:
    """Return the place in a :class:`RuleSet` that a rule's promises give it."""
    if rule.stateful:
        return 3
    if rule.per_job:
        return 2
    return 1 if rule.reads_usage else 0


def accepts(answer: Fit) -> bool:
    """Tell whether a predicate's answer means *fits*; raises :class:`InvalidAnswer` for one that means nothing."""
    if answer is None or answer is True:
        return True
    if answer is False or isinstance(answer, str):
        return False
    if isinstance(answer, np.bool_):  # type: ignore[unreachable] # what numpy compares gives one
        return bool(answer)
    raise InvalidAnswer(answers.shown(answer), "None or True where a pod fits, False or a reason where not")


def resource_fit(nodes: Nodes, request: RequestClass, rows: Rows) -> tuple[Mask, Mask]:
    """Return, per row, whether the request fits once what is terminating is gone, and whether it fits now.

    Neither is to be written to: whoever asks the same next, before anything is booked, is given the same.
    """
    known, moment = nodes.last_fit, (nodes.table.usage.position, nodes.table.tries)
    if known is not None and known.rows is rows and known.request is request and known.moment == moment:
        return known.later, known.now
    later, now = _resource_fit(nodes, request, rows)
    nodes.last_fit = LastFit(rows, request, moment, later, now)
    return later, now


def _resource_fit(nodes: Nodes, request: RequestClass, rows: Rows) -> tuple[Mask, Mask]:
    table = nodes.table
    later = table.alive[rows]
    now = later.copy()
    columns, amounts = request.columns, request.amounts[:, None]
    now &= (table.idle_at(columns, rows) >= amounts).all(axis=0)
    later &= (table.free_at(columns, rows) >= amounts).all(axis=0)
    if request.share is not None:
        later_devices, now_devices = sharable_devices(nodes, request, rows)
        later &= later_devices >= request.share.devices
        now &= now_devices >= request.share.devices
    return later, now & later


def sharable_devices(nodes: Nodes, request: RequestClass, rows: Rows) -> tuple[Vector, Vector]:
    """Return, per row, how many devices could take a share of the request: eventually, and now."""
    share = request.share
    assert share is not None, "only requests for a share of a device are asked about"
    table, shared = nodes.table, nodes.ledger.shared
    parts = share.parts_on_each(table.gpu_memory[rows])
    wanted = parts[:, None]
    now: Vector = np.maximum(table.idle[rows, GPU], 0)
    later: Vector = np.maximum(table.idle[rows, GPU] + table.releasing[rows, GPU], 0)
    now += (shared.free_now(rows) >= wanted).sum(axis=1)
    later += (shared.kept_later(rows) >= wanted).sum(axis=1)
    too_big = parts > DEVICE
    if too_big.any():
        now[too_big] = later[too_big] = 0
    return later, now
