"""Whether a task can be placed at all, before any node is looked at.

Functions that promise to answer by request class are asked once for each. Those of plugins that treat alike what is
alike are asked once per job and request class. Then come the others, in the order of plugins, about every task; what is
known about them (:mod:`spinney.scheduler.knowledge`) spares questions.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

from spinney.gangs.tree import GangKey
from spinney.runtime.faults import printable, raised, text_of
from spinney.scheduler.evaluation.node_answers import accepts
from spinney.scheduler.framework.extension_points import DoesNotFit, Hook, PrePredicateFn
from spinney.scheduler.framework.failures import Failures
from spinney.scheduler.framework.hooks import Hooks
from spinney.scheduler.framework.jobs import PodGroupInfo
from spinney.scheduler.framework.nodes import Nodes
from spinney.scheduler.framework.tasks import PodInfo
from spinney.scheduler.framework.timing import Timings
from spinney.scheduler.knowledge.learning import Learned
from spinney.scheduler.knowledge.reaching import reach_of

PRE_PREDICATE: Final = "pre_predicate"


class _Asked(NamedTuple):
    hook: Hook[PrePredicateFn]
    ask: Callable[[PodInfo, PodGroupInfo, object], str | None]
    learned: Learned[str | None] | None = None


class PrePredicates:
    """Asks the pre-predicates of a session. Mutable: it remembers answers."""

    def __init__(
        self, nodes: Nodes, hooks: Hooks, timings: Timings, failures: Failures, moment: Callable[[], int]
    ) -> None:
        self._timings = timings
        self._failures = failures
        self._by_class: list[_Asked] = []
        self._promised: list[_Asked] = []
        self._others: list[_Asked] = []
        self._class_answers: dict[int, str | None] = {}
        self._answers: dict[tuple[GangKey, int], str | None] = {}
        self._last: tuple[PodInfo, str | None] | None = None
        for hook in hooks.pre_predicates:
            ask = _asking(hook)
            if not hook.per_job:
                self._by_class.append(_Asked(hook, ask))
            elif hook.alike and not hook.stateful:
                self._promised.append(_Asked(hook, ask))
            elif hook.stateful or (reach := reach_of(hook.fn)) is None:
                self._others.append(_Asked(hook, ask))
            else:
                until = moment if hook.plugin in hooks.listeners else None
                learned = Learned(ask, reach, nodes, kind=object, failed=str, moment=until)
                self._others.append(_Asked(hook, ask, learned))

    @property
    def tell_apart(self) -> bool:
        """Tell whether pods of a pod set that make the same request may get different answers."""
        return bool(self._others)

    @property
    def are_steady(self) -> bool:
        """Tell whether no answer so far depended on anything that a placement may change."""
        known = [each.learned for each in self._others]
        return all(each is not None and not each.listens and not each.trace.moves for each in known)

    def depend_on_job(self, task: PodInfo) -> bool:
        """Tell whether more than what a task requests may have it refused."""
        if self._others:
            return True
        return any([hook.applies(task) for hook, _, _ in self._promised])  # noqa: C419 - a generator takes longer

    def refusal(self, task: PodInfo) -> str | None:
        """Return why ``task`` cannot be placed whatever the node, or ``None``."""
        refused = self.refusal_of_class(task)
        if refused is None and any(hook.applies(task) for hook, _, _ in self._promised):
            key = (task.job.key, task.request.number)
            if key not in self._answers:
                self._answers[key] = self._ask(self._promised, task)
            refused = self._answers[key]
        if self._others:
            if refused is None:
                refused = self._ask(self._others, task)
            self._last = (task, refused)
        return refused

    def said(self, task: PodInfo) -> str | None:
        """Return what was answered about ``task`` last; functions that may answer otherwise are not asked again."""
        if self._last is not None and self._last[0] is task:
            return self._last[1]
        return None if self._others else self.refusal(task)

    def refusal_of_class(self, task: PodInfo) -> str | None:
        """Return why no task that requests the same can be placed, as far as those say who promise to go by that."""
        number = task.request.number
        if number in self._class_answers:
            return self._class_answers[number]
        failures = self._failures.total
        refused = self._ask(self._by_class, task)
        if self._failures.total == failures:
            self._class_answers[number] = refused
        return refused

    def _ask(self, asked: list[_Asked], task: PodInfo) -> str | None:
        for hook, ask, learned in asked:
            if not hook.applies(task):
                continue
            try:
                with self._timings.measure(hook.plugin, PRE_PREDICATE):
                    refused = learned.about_pod(task) if learned is not None else ask(task, task.job, None)
            except raised() as error:  # a pre-predicate that fails refuses
                event = "plugin pre-predicate failed, so the pod is refused"
                said = self._failures.add(event, hook.plugin, PRE_PREDICATE, hook.fn, error)
                return f"plugin {hook.plugin} failed: {said}"
            if refused is not None:
                return refused
        return None


def _asking(hook: Hook[PrePredicateFn]) -> Callable[[PodInfo, PodGroupInfo, object], str | None]:
    def ask(task: PodInfo, job: PodGroupInfo, node: object) -> str | None:
        try:
            answer = hook.fn(task, job)
        except DoesNotFit as refusal:
            answer = text_of(refusal)
        if accepts(answer):
            return None
        return printable(answer) if isinstance(answer, str) and answer else f"refused by plugin {hook.plugin}"

    return ask
