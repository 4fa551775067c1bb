"""What the plugins of a session have registered, and what they promise about it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Any, Final, TypeVar

from spinney.extensions.answers import shown
from spinney.extensions.soundness import check_function
from spinney.runtime.faults import raised
from spinney.scheduler.framework import validation
from spinney.scheduler.framework.events import EventHandler
from spinney.scheduler.framework.extension_points import (
    BindMutateFn,
    CanReclaimFn,
    CapacityFn,
    ColumnTraits,
    DistinctionFn,
    GpuOrderFn,
    Hook,
    HttpHandler,
    InvariantFn,
    JobCompare,
    JobFn,
    LossBoundFn,
    MemberCompare,
    NodeCapacityFn,
    NodePreOrderFn,
    NodeRule,
    NodeTraits,
    Order,
    Predicate,
    PrePredicateFn,
    QueueAmountsFn,
    QueueCompare,
    ScenarioGeneratorFactory,
    ScenarioValidatorFn,
    Score,
    SubsetNodesFn,
    Taking,
    TaskCompare,
    VictimFilterFn,
)
from spinney.scheduler.framework.failures import Failures

F = TypeVar("F")
T = TypeVar("T")

APPLIES_TO: Final = "applies_to"
_TOLD: Final = ("per_pod", "per_job", "reads_usage", "stateful", "only_pod_rules", "monotone", "across_queues")
"""Promises that are made or not."""


class Hooks:
    """What the plugins of one session have registered, in the order of plugins. Mutable while a session opens.

    What is registered is attributed to the plugin that is being opened.
    """

    def __init__(self, failures: Failures) -> None:
        self._failures = failures
        self._plugin = "session"
        self._alike = False
        self._closed = False
        self.job_order: list[Order[JobCompare]] = []
        self.task_order: list[Order[TaskCompare]] = []
        self.sub_group_order: list[Hook[MemberCompare]] = []
        self.queue_order: list[Hook[QueueCompare]] = []
        self.pre_predicates: list[Hook[PrePredicateFn]] = []
        self.predicates: list[Predicate] = []
        self.invariants: list[Hook[InvariantFn]] = []
        self.subset_nodes: list[Hook[SubsetNodesFn]] = []
        self.node_pre_order: list[Hook[NodePreOrderFn]] = []
        self.scores: list[Score] = []
        self.gpu_order: list[Hook[GpuOrderFn]] = []
        self.pre_job_allocation: list[Hook[JobFn]] = []
        self.job_refused: list[Hook[JobFn]] = []
        self.job_distinctions: list[Hook[DistinctionFn]] = []
        self.can_reclaim: list[Hook[CanReclaimFn]] = []
        self.victim_filters: dict[Taking, list[Hook[VictimFilterFn]]] = {"reclaim": [], "preempt": []}
        self.gives_way: list[Hook[VictimFilterFn]] = []
        self.scenario_validators: dict[Taking, list[Hook[ScenarioValidatorFn]]] = {"reclaim": [], "preempt": []}
        self.reclaim_bounds: list[Hook[LossBoundFn]] = []
        self.on_job_solution_start: list[Hook[Callable[[], None]]] = []
        self.non_preemptible_over_quota: list[Hook[CapacityFn]] = []
        self.job_over_capacity: list[Hook[CapacityFn]] = []
        self.task_on_node_over_capacity: list[Hook[NodeCapacityFn]] = []
        self.queue_allocated: list[Hook[QueueAmountsFn]] = []
        self.queue_deserved: list[Hook[QueueAmountsFn]] = []
        self.queue_fair_share: list[Hook[QueueAmountsFn]] = []
        self.events: list[Hook[EventHandler]] = []
        self.bind_mutations: list[Hook[BindMutateFn]] = []
        self.scenario_generators: dict[str, Hook[ScenarioGeneratorFactory]] = {}
        self.http_handlers: dict[str, Hook[HttpHandler]] = {}

    @contextmanager
    def attributed_to(self, plugin: str, *, alike: bool = False) -> Iterator[None]:
        """Attribute what is registered in the block to a plugin; ``alike`` is its :attr:`.Plugin.treats_alike`."""
        before = self._plugin, self._alike
        self._plugin, self._alike = plugin, alike
        try:
            yield
        finally:
            self._plugin, self._alike = before

    def close(self) -> None:
        """Take in nothing more: what is registered after the first decisions would hold for some of them only."""
        self._closed = True

    # -- what is promised of all together ------------------------------------------------------------------------------

    @property
    def never_asked(self) -> Iterator[tuple[str, str, str]]:
        """Yield plugins that come second where only one is asked: what they registered, and who is asked instead."""
        for registration, hooks in (
            ("add_is_job_over_capacity_fn", self.job_over_capacity),
            ("add_is_non_preemptible_job_over_queue_quota_fn", self.non_preemptible_over_quota),
            ("add_is_task_allocation_on_node_over_capacity_fn", self.task_on_node_over_capacity),
            ("add_can_reclaim_resources_fn", self.can_reclaim),
            ("add_get_queue_allocated_resources_fn", self.queue_allocated),
            ("add_get_queue_deserved_resources_fn", self.queue_deserved),
            ("add_get_queue_fair_share_fn", self.queue_fair_share),
        ):
            asked: Sequence[Hook[Any]] = hooks
            yield from ((each.plugin, registration, asked[0].plugin) for each in asked[1:])

    @property
    def listeners(self) -> frozenset[str]:
        """Return the plugins that are told of placements and evictions: what they answer may change with each."""
        return frozenset(hook.plugin for hook in self.events)

    @property
    def place_alike(self) -> bool:
        """Tell whether all that decides where jobs go promises to treat alike jobs alike."""
        asked: list[Hook[Any]] = [
            *self.pre_predicates,
            *self.subset_nodes,
            *self.sub_group_order,
            *self.node_pre_order,
            *self.gpu_order,
            *self.pre_job_allocation,
            *self.job_over_capacity[:1],
            *self.task_on_node_over_capacity[:1],
        ]
        rules: list[Predicate | Score] = [*self.predicates, *self.scores]
        return all(hook.alike for hook in asked) and all(rule.alike for rule in rules)

    @property
    def find_victims_alike(self) -> bool:
        """Tell whether all that decides who is disturbed for a job promises so as well."""
        asked: list[Hook[Any]] = [
            *self.queue_order,
            *self.invariants,
            *self.can_reclaim[:1],
            *self.non_preemptible_over_quota[:1],
            *chain.from_iterable(self.victim_filters.values()),
            *self.gives_way,
            *chain.from_iterable(self.scenario_validators.values()),
            *self.reclaim_bounds,
            *self.on_job_solution_start,
            *self.scenario_generators.values(),
        ]
        return self.place_alike and all(hook.alike for hook in asked) and all(order.alike for order in self.job_order)

    @property
    def hears_of_each(self) -> bool:
        """Tell whether a plugin must be told of a placement before the next is decided."""
        return any(hook.fn.told_of_each for hook in self.events)

    # -- attribution -------------------------------------------------------------------------------------------------

    def hook(self, fn: F, *, may_yield: bool = False, **promised: Any) -> Hook[F]:
        """Return a function of the plugin that is being opened, with what it promises."""
        self._check(fn, may_yield=may_yield)
        return self.attributed(fn, **promised)

    def attributed(self, found: F, **promised: Any) -> Hook[F]:
        """Return what that plugin registers, whatever it is."""
        return Hook(self._plugin, found, alike=self._alike, **promised)

    def order(self, **by: Any) -> Order[Any]:
        """Return an order of that plugin."""
        self._check(by.get("key", by.get("compare")))
        return Order(self._plugin, alike=self._alike, **by)

    def rule(self, fn: F, *, columns: bool, traits: ColumnTraits | NodeTraits) -> NodeRule[F]:
        """Return a predicate or score of that plugin."""
        self._check(fn)
        must_be_told(traits)
        traits = traits.copy()
        self.check_if_given(traits.get("few"))
        traits["applies_to"] = self.guarded(traits.get("applies_to"))
        traits["for_requests"] = self.guarded(traits.get("for_requests"))
        return NodeRule(plugin=self._plugin, fn=fn, columns=columns, alike=self._alike, **traits)

    def check_if_given(self, fn: object) -> None:
        """Refuse what is no function, if it is anything."""
        if fn is not None:
            self._check(fn)

    def _check(self, fn: object, *, may_yield: bool = False) -> None:
        if self._closed:
            raise RuntimeError("a function was registered while jobs are placed; register in on_session_open")
        check_function(fn, may_yield=may_yield)

    def guarded(self, condition: Callable[[T], bool] | None) -> Callable[[T], bool] | None:
        """Return a condition that says that its rule applies where it cannot tell."""
        self.check_if_given(condition)
        if condition is None:
            return None
        plugin = self._plugin

        def applies(asked_about: T) -> bool:
            try:
                answer = condition(asked_about)
                return answer if answer is True or answer is False else validation.truth(answer)
            except raised() as error:  # the rule then has its say
                self._failures.add("plugin condition failed, so its rule applies", plugin, APPLIES_TO, condition, error)
                return True

        return applies


def must_be_told(promises: Mapping[str, object]) -> None:
    """Refuse a promise that is not said with a truth value."""
    for name in _TOLD:
        said = promises.get(name, False)
        if not isinstance(said, bool):
            raise TypeError(f"{name} is {shown(said)}, write True or False")
