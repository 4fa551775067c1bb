"""What plugins register: one ``add_...`` per extension point, which a session offers them under the same name."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, TypeVar, Unpack

from spinney.extensions.answers import shown
from spinney.extensions.soundness import check_function
from spinney.gangs.tree import Member
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
    JobKey,
    LossBoundFn,
    MemberCompare,
    NodeCapacityFn,
    NodeOrderColumns,
    NodeOrderFn,
    NodePreOrderFn,
    NodeRule,
    NodeTraits,
    Order,
    Predicate,
    PredicateColumns,
    PredicateFn,
    PrePredicateFn,
    QueueAmountsFn,
    QueueCompare,
    ScenarioGeneratorFactory,
    ScenarioValidatorFn,
    Score,
    SubsetNodesFn,
    TaskCompare,
    TaskKey,
    VictimFilterFn,
)
from spinney.scheduler.framework.failures import Failures
from spinney.scheduler.framework.tasks import PodInfo

F = TypeVar("F")
T = TypeVar("T")

APPLIES_TO: Final = "applies_to"
OWN_PATHS: Final = frozenset({"/healthz", "/livez", "/readyz", "/metrics", "/explanations", "/cycles"})
"""Paths of the endpoint that no plugin can serve."""
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
        self.reclaim_victim_filters: list[Hook[VictimFilterFn]] = []
        self.preempt_victim_filters: list[Hook[VictimFilterFn]] = []
        self.gives_way: list[Hook[VictimFilterFn]] = []
        self.reclaim_validators: list[Hook[ScenarioValidatorFn]] = []
        self.preempt_validators: list[Hook[ScenarioValidatorFn]] = []
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

    # -- order -------------------------------------------------------------------------------------------------------

    def add_job_order_fn(self, fn: JobCompare) -> None:
        """Order jobs of a queue: negative if the left goes first. The first non-zero answer decides."""
        self.job_order.append(self._order(compare=fn))

    def add_job_order_key(self, fn: JobKey) -> None:
        """Order jobs of a queue by a key that compares smaller for the one that goes first."""
        self.job_order.append(self._order(key=fn))

    def add_task_order_fn(self, fn: TaskCompare) -> None:
        """Order tasks of a job: negative if the left goes first. The first non-zero answer decides."""
        self.task_order.append(self._order(compare=fn))

    def add_task_order_key(self, fn: TaskKey, *, labels: Collection[str] | None = None) -> None:
        """Order tasks of a job by a key that compares smaller for the one that goes first.

        ``labels`` promises that the key is the same for all pods that have none of these labels: where no pod of a job
        has one, nobody is asked.
        """
        if isinstance(labels, str):  # would be read letter by letter
            raise TypeError(f"labels is {shown(labels)}, write a set of label keys such as {{{labels!r}}}")
        read = None if labels is None else frozenset(labels)
        self.task_order.append(self._order(key=fn, labels=read))

    def add_sub_group_order_fn(self, fn: MemberCompare) -> None:
        """Order the members of a group set of a job. The first non-zero answer decides; then the name."""
        self.sub_group_order.append(self._hook(fn))

    def add_queue_order_fn(self, fn: QueueCompare) -> None:
        """Order sibling queues. The first non-zero answer decides; then age."""
        self.queue_order.append(self._hook(fn))

    # -- filtering ---------------------------------------------------------------------------------------------------

    def add_pre_predicate_fn(
        self,
        fn: PrePredicateFn,
        *,
        stateful: bool = False,
        per_job: bool = True,
        applies_to: Callable[[PodInfo], bool] | None = None,
    ) -> None:
        """Refuse a task before any node is looked at; ``stateful`` has the function asked every time.

        ``per_job=False`` promises that the answer is the same for every task of a request class, whatever is placed;
        ``applies_to`` limits the function to some tasks.
        """
        _must_be_told({"stateful": stateful, "per_job": per_job})
        promised = {"stateful": stateful, "per_job": per_job or stateful, "applies_to": self._guarded(applies_to)}
        self.pre_predicates.append(self._hook(fn, **promised))

    def add_predicate_fn(self, fn: PredicateFn, **traits: Unpack[NodeTraits]) -> None:
        """Refuse a node for a task, node by node."""
        self.predicates.append(self._rule(fn, columns=False, traits=traits))

    def add_predicate_columns(self, fn: PredicateColumns, **traits: Unpack[ColumnTraits]) -> None:
        """Refuse nodes for a task, all at once: the answer is true where the task may run, aligned with the nodes."""
        self.predicates.append(self._rule(fn, columns=True, traits=traits))

    def add_victim_invariant_pre_predicate_fn(self, fn: InvariantFn) -> None:
        """Name what keeps a task from being placed, also if pods are evicted, or ``None``."""
        self.invariants.append(self._hook(fn))

    def add_subset_nodes_fn(self, fn: SubsetNodesFn, *, applies_to: Callable[[Member], bool] | None = None) -> None:
        """Divide nodes into the sets to try a (part of a) job on, in order.

        ``None`` means the plugin has no say about this job; an empty list that nothing fits. Several plugins nest: each
        divides every set of the one before. ``applies_to`` limits the function to some groups.
        """
        self.subset_nodes.append(self._hook(fn, applies_to=self._guarded(applies_to)))

    # -- scoring -----------------------------------------------------------------------------------------------------

    def add_node_pre_order_fn(self, fn: NodePreOrderFn) -> None:
        """Prepare for scoring a task on candidate nodes."""
        self.node_pre_order.append(self._hook(fn))

    def add_node_order_fn(self, fn: NodeOrderFn, **traits: Unpack[NodeTraits]) -> None:
        """Score a node for a task, node by node; scores of all plugins are added up."""
        self.scores.append(self._rule(fn, columns=False, traits=traits))

    def add_node_order_columns(self, fn: NodeOrderColumns, **traits: Unpack[ColumnTraits]) -> None:
        """Score nodes for a task, all at once, aligned with the nodes."""
        self.scores.append(self._rule(fn, columns=True, traits=traits))

    def add_gpu_order_fn(self, fn: GpuOrderFn) -> None:
        """Score a GPU of a node for a task that shares one; ``"-2"`` stands for a GPU nobody uses yet."""
        self.gpu_order.append(self._hook(fn))

    # -- jobs, queues and capacity -----------------------------------------------------------------------------------

    def add_pre_job_allocation_fn(self, fn: JobFn) -> None:
        """Be called before every attempt to place a job."""
        self.pre_job_allocation.append(self._hook(fn))

    def add_job_refused_fn(self, fn: JobFn) -> None:
        """Be called with every job that found no place on what is free, in the order in which jobs were tried."""
        self.job_refused.append(self._hook(fn))

    def add_job_distinction_fn(self, fn: DistinctionFn) -> None:
        """Tell apart jobs that are alike otherwise: what one was refused says nothing about one with another answer.

        For a plugin that treats alike jobs alike but for this (:attr:`.Plugin.treats_alike`).
        """
        self.job_distinctions.append(self._hook(fn))

    def add_is_non_preemptible_job_over_queue_quota_fn(self, fn: CapacityFn) -> None:
        """Judge whether non-preemptible tasks would exceed a quota. Only the first registered is asked."""
        self.non_preemptible_over_quota.append(self._hook(fn))

    def add_is_job_over_capacity_fn(self, fn: CapacityFn) -> None:
        """Judge whether a job's next tasks would exceed what its queue allows. Only the first registered is asked."""
        self.job_over_capacity.append(self._hook(fn))

    def add_is_task_allocation_on_node_over_capacity_fn(self, fn: NodeCapacityFn) -> None:
        """Judge the same for one task on one node. Only the first registered is asked."""
        self.task_on_node_over_capacity.append(self._hook(fn))

    def add_get_queue_allocated_resources_fn(self, fn: QueueAmountsFn) -> None:
        """Say what a queue holds. Only the first registered is asked."""
        self.queue_allocated.append(self._hook(fn))

    def add_get_queue_deserved_resources_fn(self, fn: QueueAmountsFn) -> None:
        """Say what a queue is guaranteed. Only the first registered is asked."""
        self.queue_deserved.append(self._hook(fn))

    def add_get_queue_fair_share_fn(self, fn: QueueAmountsFn) -> None:
        """Say what a queue's fair share is. Only the first registered is asked."""
        self.queue_fair_share.append(self._hook(fn))

    def add_event_handler(self, handler: EventHandler) -> None:
        """Be called with every virtual allocation and deallocation."""
        if not isinstance(handler, EventHandler):
            raise TypeError(f"{shown(handler)} was registered, expected an EventHandler(allocate=..., deallocate=...)")
        for name in EventHandler.__struct_fields__:
            self._check_if_given(getattr(handler, name))
        self.events.append(Hook(self._plugin, handler, alike=self._alike))

    # -- victims -----------------------------------------------------------------------------------------------------

    def add_can_reclaim_resources_fn(self, fn: CanReclaimFn) -> None:
        """Judge whether a job may take from other queues at all. Only the first registered is asked; none: no."""
        self.can_reclaim.append(self._hook(fn))

    def add_reclaim_victim_filter_fn(self, fn: VictimFilterFn) -> None:
        """Judge whether a job may be a victim of a reclaiming one. All must agree."""
        self.reclaim_victim_filters.append(self._hook(fn))

    def add_preempt_victim_filter_fn(self, fn: VictimFilterFn) -> None:
        """Judge whether a job may be a victim of a preempting one. All must agree."""
        self.preempt_victim_filters.append(self._hook(fn))

    def add_gives_way_fn(self, fn: VictimFilterFn, *, across_queues: bool = False) -> None:
        """Judge whether a job gives way to a preempting one of its own priority. One that says so is enough.

        The preempting job must come before it by the order of jobs: who comes first is given the room. With
        ``across_queues`` jobs of other queues are asked about, too: then its queue must come before theirs.
        """
        _must_be_told({"across_queues": across_queues})
        self.gives_way.append(self._hook(fn, across_queues=across_queues))

    def add_reclaim_scenario_validator_fn(self, fn: ScenarioValidatorFn) -> None:
        """Judge a whole reclaim scenario. All must agree."""
        self.reclaim_validators.append(self._hook(fn))

    def add_reclaimable_fn(self, fn: ScenarioValidatorFn) -> None:
        """Judge a whole reclaim scenario, by its shorter name."""
        self.add_reclaim_scenario_validator_fn(fn)

    def add_reclaim_bound_fn(self, fn: LossBoundFn) -> None:
        """Bound what scenarios for a job may take from other queues for good; the smallest bound holds.

        The bound must cover everything the plugin's scenario validator would let pass: scenarios above it are not
        even tried.
        """
        self.reclaim_bounds.append(self._hook(fn))

    def add_preempt_scenario_validator_fn(self, fn: ScenarioValidatorFn) -> None:
        """Judge a whole preempt scenario. All must agree."""
        self.preempt_validators.append(self._hook(fn))

    def add_on_job_solution_start_fn(self, fn: Callable[[], None]) -> None:
        """Be called before every search for victims."""
        self.on_job_solution_start.append(self._hook(fn))

    def add_scenario_generator(self, name: str, factory: ScenarioGeneratorFactory) -> None:
        """Provide scenarios to the search for victims; they are tried, in the order of registration, after its own."""
        self._check(factory, may_yield=True)
        self._must_be_free("a scenario generator called", name, self.scenario_generators)
        self.scenario_generators[name] = Hook(self._plugin, factory, alike=self._alike)

    # -- results -----------------------------------------------------------------------------------------------------

    def add_bind_request_mutate_fn(self, fn: BindMutateFn) -> None:
        """Add annotations to a bind; where plugins name the same one, the later wins."""
        self.bind_mutations.append(self._hook(fn))

    def add_http_handler(self, path: str, handler: HttpHandler) -> None:
        """Serve a path of the scheduler's endpoint for as long as this session is the newest."""
        if not isinstance(path, str) or not path.startswith("/") or path.endswith("/"):
            raise ValueError(f"path {shown(path)} would never be asked for; write one such as '/my-plugin'")
        if path in OWN_PATHS:
            raise ValueError(f"path {path!r} is the scheduler's own; choose another")
        self._must_be_free("a handler of", path, self.http_handlers)
        self.http_handlers[path] = self._hook(handler)

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
            *self.reclaim_victim_filters,
            *self.preempt_victim_filters,
            *self.gives_way,
            *self.reclaim_validators,
            *self.preempt_validators,
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

    def _hook(self, fn: F, **promised: Any) -> Hook[F]:
        """Return a function of the plugin that is being opened, with what it promises."""
        self._check(fn)
        return Hook(self._plugin, fn, alike=self._alike, **promised)

    def _order(self, **by: Any) -> Order[Any]:
        """Return an order of that plugin."""
        self._check(by.get("key", by.get("compare")))
        return Order(self._plugin, alike=self._alike, **by)

    def _rule(self, fn: F, *, columns: bool, traits: ColumnTraits | NodeTraits) -> NodeRule[F]:
        """Return a predicate or score of that plugin."""
        self._check(fn)
        _must_be_told(traits)
        traits = traits.copy()
        self._check_if_given(traits.get("few"))
        traits["applies_to"] = self._guarded(traits.get("applies_to"))
        traits["for_requests"] = self._guarded(traits.get("for_requests"))
        return NodeRule(plugin=self._plugin, fn=fn, columns=columns, alike=self._alike, **traits)

    def _must_be_free(self, what: str, name: str, registered: Mapping[str, Hook[Any]]) -> None:
        """Refuse what would take the place of another plugin's."""
        if name in registered:
            raise ValueError(f"{what} {name!r} is registered by plugin {registered[name].plugin}; choose another name")

    def _check_if_given(self, fn: object) -> None:
        if fn is not None:
            self._check(fn)

    def _check(self, fn: object, *, may_yield: bool = False) -> None:
        if self._closed:
            raise RuntimeError("a function was registered while jobs are placed; register in on_session_open")
        check_function(fn, may_yield=may_yield)

    def _guarded(self, condition: Callable[[T], bool] | None) -> Callable[[T], bool] | None:
        """Return a condition that says that its rule applies where it cannot tell."""
        self._check_if_given(condition)
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


def _must_be_told(promises: Mapping[str, object]) -> None:
    """Refuse a promise that is not said with a truth value."""
    for name in _TOLD:
        said = promises.get(name, False)
        if not isinstance(said, bool):
            raise TypeError(f"{name} is {shown(said)}, write True or False")
