"""How plugins register: the ``add_...`` methods of a session, one per extension point."""

from collections.abc import Callable, Collection
from datetime import datetime
from typing import Final, TypeVar, Unpack

from spinney.scheduler.framework import answers
from spinney.scheduler.framework.events import EventHandler
from spinney.scheduler.framework.failing import Failures
from spinney.scheduler.framework.hooks import (
    BindMutateFn,
    CanReclaimFn,
    CapacityFn,
    ColumnPromises,
    GpuOrderFn,
    Hook,
    Hooks,
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
    NodePromises,
    NodeRule,
    Order,
    PredicateColumns,
    PredicateFn,
    PrePredicateFn,
    QueueAmountsFn,
    QueueCompare,
    ScenarioGeneratorFactory,
    ScenarioValidatorFn,
    SubsetNodesFn,
    TaskCompare,
    TaskKey,
    VictimFilterFn,
)
from spinney.scheduler.framework.tasks import PodInfo

F = TypeVar("F")


APPLIES_TO: Final = "applies_to"


class Registration:
    """The registering half of a session. What is registered is attributed to the plugin that is being opened."""

    def __init__(self) -> None:
        self.hooks = Hooks()
        self.failures = Failures()
        """What plugins got wrong in this session."""
        self.opening = "session"
        """The plugin whose ``on_session_open`` is running."""
        self.opening_alike = False
        """Whether that plugin promises to treat alike what is alike."""
        self.next_moment: datetime | None = None
        """When time alone may change a decision, as far as anybody has said."""

    def wake_at(self, moment: datetime) -> None:
        """Say that at ``moment`` a decision may change though nothing happens in the cluster.

        A scheduler at rest runs no sessions; it opens one at the earliest moment that the last session was told.
        """
        if self.next_moment is None or moment < self.next_moment:
            self.next_moment = moment

    # -- order -------------------------------------------------------------------------------------------------------

    def add_job_order_fn(self, fn: JobCompare) -> None:
        """Order jobs of a queue: negative if the left goes first. The first non-zero answer decides."""
        self.hooks.job_order.append(Order(self.opening, compare=fn, alike=self.opening_alike))

    def add_job_order_key(self, fn: JobKey) -> None:
        """Order jobs of a queue by a key that compares smaller for the one that goes first."""
        self.hooks.job_order.append(Order(self.opening, key=fn, alike=self.opening_alike))

    def add_task_order_fn(self, fn: TaskCompare) -> None:
        """Order tasks of a job: negative if the left goes first. The first non-zero answer decides."""
        self.hooks.task_order.append(Order(self.opening, compare=fn, alike=self.opening_alike))

    def add_task_order_key(self, fn: TaskKey, *, labels: Collection[str] | None = None) -> None:
        """Order tasks of a job by a key that compares smaller for the one that goes first.

        ``labels`` promises that the key is the same for all pods that have none of these labels: where no pod of a job
        has one, nobody is asked.
        """
        read = None if labels is None else frozenset(labels)
        self.hooks.task_order.append(Order(self.opening, key=fn, labels=read, alike=self.opening_alike))

    def add_sub_group_order_fn(self, fn: MemberCompare) -> None:
        """Order the members of a group set of a job. The first non-zero answer decides; then the name."""
        self.hooks.sub_group_order.append(self._hook(fn))

    def add_queue_order_fn(self, fn: QueueCompare) -> None:
        """Order sibling queues. The first non-zero answer decides; then age."""
        self.hooks.queue_order.append(self._hook(fn))

    # -- filtering ---------------------------------------------------------------------------------------------------

    def add_pre_predicate_fn(self, fn: PrePredicateFn, *, stateful: bool = False) -> None:
        """Refuse a task before any node is looked at; ``stateful`` has the function asked every time."""
        self.hooks.pre_predicates.append(Hook(self.opening, fn, alike=self.opening_alike, stateful=stateful))

    def add_predicate_fn(self, fn: PredicateFn, **promises: Unpack[NodePromises]) -> None:
        """Refuse a node for a task, node by node."""
        self.hooks.predicates.append(self._rule(fn, columns=False, promises=promises))

    def add_predicate_columns(self, fn: PredicateColumns, **promises: Unpack[ColumnPromises]) -> None:
        """Refuse nodes for a task, all at once: the answer is true where the task may run, aligned with the nodes."""
        self.hooks.predicates.append(self._rule(fn, columns=True, promises=promises))

    def add_victim_invariant_pre_predicate_fn(self, fn: InvariantFn) -> None:
        """Name what keeps a task from being placed whoever is evicted, or ``None``."""
        self.hooks.invariants.append(self._hook(fn))

    def add_subset_nodes_fn(self, fn: SubsetNodesFn) -> None:
        """Divide nodes into the sets to try a (part of a) job on, in order.

        ``None`` means the plugin has no say about this job; an empty list that nothing fits. Several plugins nest: each
        divides every set of the one before.
        """
        self.hooks.subset_nodes.append(self._hook(fn))

    # -- scoring -----------------------------------------------------------------------------------------------------

    def add_node_pre_order_fn(self, fn: NodePreOrderFn) -> None:
        """Prepare for scoring a task on candidate nodes."""
        self.hooks.node_pre_order.append(self._hook(fn))

    def add_node_order_fn(self, fn: NodeOrderFn, **promises: Unpack[NodePromises]) -> None:
        """Score a node for a task, node by node; scores of all plugins are added up."""
        self.hooks.scores.append(self._rule(fn, columns=False, promises=promises))

    def add_node_order_columns(self, fn: NodeOrderColumns, **promises: Unpack[ColumnPromises]) -> None:
        """Score nodes for a task, all at once, aligned with the nodes."""
        self.hooks.scores.append(self._rule(fn, columns=True, promises=promises))

    def add_gpu_order_fn(self, fn: GpuOrderFn) -> None:
        """Score a GPU of a node for a task that shares one; ``"-2"`` stands for a GPU nobody uses yet."""
        self.hooks.gpu_order.append(self._hook(fn))

    # -- jobs, queues and capacity -----------------------------------------------------------------------------------

    def add_pre_job_allocation_fn(self, fn: JobFn) -> None:
        """Hear of every attempt to place a job before it begins."""
        self.hooks.pre_job_allocation.append(self._hook(fn))

    def add_is_non_preemptible_job_over_queue_quota_fn(self, fn: CapacityFn) -> None:
        """Judge whether non-preemptible tasks would exceed a quota. Only the first registered is asked."""
        self.hooks.non_preemptible_over_quota.append(self._hook(fn))

    def add_is_job_over_capacity_fn(self, fn: CapacityFn) -> None:
        """Judge whether a job's next tasks would exceed what its queue allows. Only the first registered is asked."""
        self.hooks.job_over_capacity.append(self._hook(fn))

    def add_is_task_allocation_on_node_over_capacity_fn(self, fn: NodeCapacityFn) -> None:
        """Judge the same for one task on one node. Only the first registered is asked."""
        self.hooks.task_on_node_over_capacity.append(self._hook(fn))

    def add_get_queue_allocated_resources_fn(self, fn: QueueAmountsFn) -> None:
        """Say what a queue holds. Only the first registered is asked."""
        self.hooks.queue_allocated.append(self._hook(fn))

    def add_get_queue_deserved_resources_fn(self, fn: QueueAmountsFn) -> None:
        """Say what a queue is guaranteed. Only the first registered is asked."""
        self.hooks.queue_deserved.append(self._hook(fn))

    def add_get_queue_fair_share_fn(self, fn: QueueAmountsFn) -> None:
        """Say what a queue's fair share is. Only the first registered is asked."""
        self.hooks.queue_fair_share.append(self._hook(fn))

    def add_event_handler(self, handler: EventHandler) -> None:
        """Hear of every virtual allocation and deallocation."""
        self.hooks.events.append(self._hook(handler))

    # -- victims -----------------------------------------------------------------------------------------------------

    def add_can_reclaim_resources_fn(self, fn: CanReclaimFn) -> None:
        """Judge whether a job may take from other queues at all. Only the first registered is asked; none: no."""
        self.hooks.can_reclaim.append(self._hook(fn))

    def add_reclaim_victim_filter_fn(self, fn: VictimFilterFn) -> None:
        """Judge whether a job may be a victim of a reclaiming one. All must agree."""
        self.hooks.reclaim_victim_filters.append(self._hook(fn))

    def add_preempt_victim_filter_fn(self, fn: VictimFilterFn) -> None:
        """Judge whether a job may be a victim of a preempting one. All must agree."""
        self.hooks.preempt_victim_filters.append(self._hook(fn))

    def add_reclaim_scenario_validator_fn(self, fn: ScenarioValidatorFn) -> None:
        """Judge a whole reclaim scenario. All must agree."""
        self.hooks.reclaim_validators.append(self._hook(fn))

    def add_reclaimable_fn(self, fn: ScenarioValidatorFn) -> None:
        """Judge a whole reclaim scenario, by its shorter name."""
        self.add_reclaim_scenario_validator_fn(fn)

    def add_reclaim_bound_fn(self, fn: LossBoundFn) -> None:
        """Bound what scenarios for a job may take from other queues for good; the smallest bound holds.

        The bound must cover everything the plugin's scenario validator would let pass: scenarios above it are not
        even tried.
        """
        self.hooks.reclaim_bounds.append(self._hook(fn))

    def add_preempt_scenario_validator_fn(self, fn: ScenarioValidatorFn) -> None:
        """Judge a whole preempt scenario. All must agree."""
        self.hooks.preempt_validators.append(self._hook(fn))

    def add_on_job_solution_start_fn(self, fn: Callable[[], None]) -> None:
        """Hear of every search for victims before it begins."""
        self.hooks.on_job_solution_start.append(self._hook(fn))

    def add_scenario_generator(self, name: str, factory: ScenarioGeneratorFactory) -> None:
        """Provide scenarios to the search for victims; they are tried, in the order of registration, after its own."""
        self.hooks.scenario_generators[name] = self._hook(factory)

    # -- results -----------------------------------------------------------------------------------------------------

    def add_bind_request_mutate_fn(self, fn: BindMutateFn) -> None:
        """Add annotations to a bind; where plugins name the same one, the later wins."""
        self.hooks.bind_mutations.append(self._hook(fn))

    def add_http_handler(self, path: str, handler: HttpHandler) -> None:
        """Serve a path of the scheduler's endpoint for as long as this session is the newest."""
        self.hooks.http_handlers[path] = self._hook(handler)

    # -- attribution -------------------------------------------------------------------------------------------------

    def _hook(self, fn: F) -> Hook[F]:
        return Hook(self.opening, fn, alike=self.opening_alike)

    def _rule(self, fn: F, *, columns: bool, promises: ColumnPromises | NodePromises) -> NodeRule[F]:
        condition = promises.get("applies_to")
        if condition is not None:
            promises = promises.copy()
            promises["applies_to"] = self._guarded(self.opening, condition)
        return NodeRule(plugin=self.opening, fn=fn, columns=columns, alike=self.opening_alike, **promises)

    def _guarded(self, plugin: str, condition: Callable[[PodInfo], bool]) -> Callable[[PodInfo], bool]:
        """Return a condition that says that its rule applies where it cannot tell."""

        def applies(task: PodInfo) -> bool:
            try:
                return answers.truth(condition(task))
            except Exception as error:  # noqa: BLE001 - the rule then has its say
                self.failures.add("plugin condition failed, so its rule applies", plugin, APPLIES_TO, condition, error)
                return True

        return applies
