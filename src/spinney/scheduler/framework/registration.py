"""What plugins register: one ``add_...`` per extension point, which a session offers them."""

from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, Unpack

from spinney.extensions.answers import shown
from spinney.gangs.tree import Member
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
    NodeTraits,
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
from spinney.scheduler.framework.hooks import Hooks, must_be_told
from spinney.scheduler.framework.tasks import PodInfo

OWN_PATHS: Final = frozenset({"/healthz", "/livez", "/readyz", "/metrics", "/explanations", "/cycles"})
"""Paths of the endpoint that no plugin can serve."""


class Registration:
    """What a session offers plugins to register with, for as long as it opens."""

    hooks: Hooks
    """What plugins have registered."""

    # -- order -------------------------------------------------------------------------------------------------------

    def add_job_order_fn(self, fn: JobCompare) -> None:
        """Order jobs of a queue: negative if the left goes first. The first non-zero answer decides."""
        self.hooks.job_order.append(self.hooks.order(compare=fn))

    def add_job_order_key(self, fn: JobKey) -> None:
        """Order jobs of a queue by a key that compares smaller for the one that goes first."""
        self.hooks.job_order.append(self.hooks.order(key=fn))

    def add_task_order_fn(self, fn: TaskCompare) -> None:
        """Order tasks of a job: negative if the left goes first. The first non-zero answer decides."""
        self.hooks.task_order.append(self.hooks.order(compare=fn))

    def add_task_order_key(self, fn: TaskKey, *, labels: Collection[str] | None = None) -> None:
        """Order tasks of a job by a key that compares smaller for the one that goes first.

        ``labels`` promises that the key is the same for all pods that have none of these labels: where no pod of a job
        has one, nobody is asked.
        """
        if isinstance(labels, str):  # would be read letter by letter
            raise TypeError(f"labels is {shown(labels)}, write a set of label keys such as {{{labels!r}}}")
        read = None if labels is None else frozenset(labels)
        self.hooks.task_order.append(self.hooks.order(key=fn, labels=read))

    def add_sub_group_order_fn(self, fn: MemberCompare) -> None:
        """Order the members of a group set of a job. The first non-zero answer decides; then the name."""
        self.hooks.sub_group_order.append(self.hooks.hook(fn))

    def add_queue_order_fn(self, fn: QueueCompare) -> None:
        """Order sibling queues. The first non-zero answer decides; then age."""
        self.hooks.queue_order.append(self.hooks.hook(fn))

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
        must_be_told({"stateful": stateful, "per_job": per_job})
        applies = self.hooks.guarded(applies_to)
        hook = self.hooks.hook(fn, stateful=stateful, per_job=per_job or stateful, applies_to=applies)
        self.hooks.pre_predicates.append(hook)

    def add_predicate_fn(self, fn: PredicateFn, **traits: Unpack[NodeTraits]) -> None:
        """Refuse a node for a task, node by node."""
        self.hooks.predicates.append(self.hooks.rule(fn, columns=False, traits=traits))

    def add_predicate_columns(self, fn: PredicateColumns, **traits: Unpack[ColumnTraits]) -> None:
        """Refuse nodes for a task, all at once: the answer is true where the task may run, aligned with the nodes."""
        self.hooks.predicates.append(self.hooks.rule(fn, columns=True, traits=traits))

    def add_victim_invariant_pre_predicate_fn(self, fn: InvariantFn) -> None:
        """Name what keeps a task from being placed, also if pods are evicted, or ``None``."""
        self.hooks.invariants.append(self.hooks.hook(fn))

    def add_subset_nodes_fn(self, fn: SubsetNodesFn, *, applies_to: Callable[[Member], bool] | None = None) -> None:
        """Divide nodes into the sets to try a (part of a) job on, in order.

        ``None`` means the plugin has no say about this job; an empty list that nothing fits. Several plugins nest: each
        divides every set of the one before. ``applies_to`` limits the function to some groups.
        """
        self.hooks.subset_nodes.append(self.hooks.hook(fn, applies_to=self.hooks.guarded(applies_to)))

    # -- scoring -----------------------------------------------------------------------------------------------------

    def add_node_pre_order_fn(self, fn: NodePreOrderFn) -> None:
        """Prepare for scoring a task on candidate nodes."""
        self.hooks.node_pre_order.append(self.hooks.hook(fn))

    def add_node_order_fn(self, fn: NodeOrderFn, **traits: Unpack[NodeTraits]) -> None:
        """Score a node for a task, node by node; scores of all plugins are added up."""
        self.hooks.scores.append(self.hooks.rule(fn, columns=False, traits=traits))

    def add_node_order_columns(self, fn: NodeOrderColumns, **traits: Unpack[ColumnTraits]) -> None:
        """Score nodes for a task, all at once, aligned with the nodes."""
        self.hooks.scores.append(self.hooks.rule(fn, columns=True, traits=traits))

    def add_gpu_order_fn(self, fn: GpuOrderFn) -> None:
        """Score a GPU of a node for a task that shares one; ``"-2"`` stands for a GPU nobody uses yet."""
        self.hooks.gpu_order.append(self.hooks.hook(fn))

    # -- jobs, queues and capacity -----------------------------------------------------------------------------------

    def add_pre_job_allocation_fn(self, fn: JobFn) -> None:
        """Be called before every attempt to place a job."""
        self.hooks.pre_job_allocation.append(self.hooks.hook(fn))

    def add_job_refused_fn(self, fn: JobFn) -> None:
        """Be called with every job that found no place on what is free, in the order in which jobs were tried."""
        self.hooks.job_refused.append(self.hooks.hook(fn))

    def add_job_distinction_fn(self, fn: DistinctionFn) -> None:
        """Tell apart jobs that are alike otherwise: what one was refused says nothing about one with another answer.

        For a plugin that treats alike jobs alike but for this (:attr:`.Plugin.treats_alike`).
        """
        self.hooks.job_distinctions.append(self.hooks.hook(fn))

    def add_is_non_preemptible_job_over_queue_quota_fn(self, fn: CapacityFn) -> None:
        """Judge whether non-preemptible tasks would exceed a quota. Only the first registered is asked."""
        self.hooks.non_preemptible_over_quota.append(self.hooks.hook(fn))

    def add_is_job_over_capacity_fn(self, fn: CapacityFn) -> None:
        """Judge whether a job's next tasks would exceed what its queue allows. Only the first registered is asked."""
        self.hooks.job_over_capacity.append(self.hooks.hook(fn))

    def add_is_task_allocation_on_node_over_capacity_fn(self, fn: NodeCapacityFn) -> None:
        """Judge the same for one task on one node. Only the first registered is asked."""
        self.hooks.task_on_node_over_capacity.append(self.hooks.hook(fn))

    def add_get_queue_allocated_resources_fn(self, fn: QueueAmountsFn) -> None:
        """Say what a queue holds. Only the first registered is asked."""
        self.hooks.queue_allocated.append(self.hooks.hook(fn))

    def add_get_queue_deserved_resources_fn(self, fn: QueueAmountsFn) -> None:
        """Say what a queue is guaranteed. Only the first registered is asked."""
        self.hooks.queue_deserved.append(self.hooks.hook(fn))

    def add_get_queue_fair_share_fn(self, fn: QueueAmountsFn) -> None:
        """Say what a queue's fair share is. Only the first registered is asked."""
        self.hooks.queue_fair_share.append(self.hooks.hook(fn))

    def add_event_handler(self, handler: EventHandler) -> None:
        """Be called with every virtual allocation and deallocation."""
        if not isinstance(handler, EventHandler):
            raise TypeError(f"{shown(handler)} was registered, expected an EventHandler(allocate=..., deallocate=...)")
        for name in EventHandler.__struct_fields__:
            self.hooks.check_if_given(getattr(handler, name))
        self.hooks.events.append(self.hooks.attributed(handler))

    # -- victims -----------------------------------------------------------------------------------------------------

    def add_can_reclaim_resources_fn(self, fn: CanReclaimFn) -> None:
        """Judge whether a job may take from other queues at all. Only the first registered is asked; none: no."""
        self.hooks.can_reclaim.append(self.hooks.hook(fn))

    def add_reclaim_victim_filter_fn(self, fn: VictimFilterFn) -> None:
        """Judge whether a job may be a victim of a reclaiming one. All must agree."""
        self.hooks.victim_filters["reclaim"].append(self.hooks.hook(fn))

    def add_preempt_victim_filter_fn(self, fn: VictimFilterFn) -> None:
        """Judge whether a job may be a victim of a preempting one. All must agree."""
        self.hooks.victim_filters["preempt"].append(self.hooks.hook(fn))

    def add_gives_way_fn(self, fn: VictimFilterFn, *, across_queues: bool = False) -> None:
        """Judge whether a job gives way to a preempting one of its own priority. One that says so is enough.

        The preempting job must come before it by the order of jobs: who comes first is given the room. With
        ``across_queues`` jobs of other queues are asked about, too: then its queue must come before theirs.
        """
        must_be_told({"across_queues": across_queues})
        self.hooks.gives_way.append(self.hooks.hook(fn, across_queues=across_queues))

    def add_reclaim_scenario_validator_fn(self, fn: ScenarioValidatorFn) -> None:
        """Judge a whole reclaim scenario. All must agree."""
        self.hooks.scenario_validators["reclaim"].append(self.hooks.hook(fn))

    def add_reclaimable_fn(self, fn: ScenarioValidatorFn) -> None:
        """Judge a whole reclaim scenario, by its shorter name."""
        self.add_reclaim_scenario_validator_fn(fn)

    def add_reclaim_bound_fn(self, fn: LossBoundFn) -> None:
        """Bound what scenarios for a job may take from other queues for good; the smallest bound holds.

        The bound must cover everything the plugin's scenario validator would let pass: scenarios above it are not
        even tried.
        """
        self.hooks.reclaim_bounds.append(self.hooks.hook(fn))

    def add_preempt_scenario_validator_fn(self, fn: ScenarioValidatorFn) -> None:
        """Judge a whole preempt scenario. All must agree."""
        self.hooks.scenario_validators["preempt"].append(self.hooks.hook(fn))

    def add_on_job_solution_start_fn(self, fn: Callable[[], None]) -> None:
        """Be called before every search for victims."""
        self.hooks.on_job_solution_start.append(self.hooks.hook(fn))

    def add_scenario_generator(self, name: str, factory: ScenarioGeneratorFactory) -> None:
        """Provide scenarios to the search for victims; they are tried, in the order of registration, after its own."""
        hook = self.hooks.hook(factory, may_yield=True)
        _must_be_free("a scenario generator called", name, self.hooks.scenario_generators)
        self.hooks.scenario_generators[name] = hook

    # -- results -----------------------------------------------------------------------------------------------------

    def add_bind_request_mutate_fn(self, fn: BindMutateFn) -> None:
        """Add annotations to a bind; where plugins name the same one, the later wins."""
        self.hooks.bind_mutations.append(self.hooks.hook(fn))

    def add_http_handler(self, path: str, handler: HttpHandler) -> None:
        """Serve a path of the scheduler's endpoint for as long as this session is the newest."""
        if not isinstance(path, str) or not path.startswith("/") or path.endswith("/"):
            raise ValueError(f"path {shown(path)} would never be asked for; write one such as '/my-plugin'")
        if path in OWN_PATHS:
            raise ValueError(f"path {path!r} is the scheduler's own; choose another")
        hook = self.hooks.hook(handler)
        _must_be_free("a handler of", path, self.hooks.http_handlers)
        self.hooks.http_handlers[path] = hook


def _must_be_free(what: str, name: str, registered: Mapping[str, Hook[Any]]) -> None:
    """Refuse what would take the place of another plugin's."""
    if name in registered:
        raise ValueError(f"{what} {name!r} is registered by plugin {registered[name].plugin}; choose another name")
