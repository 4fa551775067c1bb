"""Everything a plugin can get wrong, and a cluster in which every action has something to do.

Each action has nodes of its own (a *pool*), with one gang called ``good-...`` and one called ``bad-...``: a faulty
plugin fails where it is asked about the bad ones, and answers as it should about the good ones.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import Enum
from random import Random
from typing import Any

import numpy as np

from spinney.gangs.tree import Gang, GroupSet, PodSet
from spinney.runtime import InlineExecutor, Runtime
from spinney.scheduler import Event, EventHandler, Plugin, Session
from spinney.scheduler.config import PluginOption, SchedulerConfig
from spinney.scheduler.cycle.scheduler import Scheduler
from spinney.scheduler.fairshare import GPU, Amounts, QueueInfo, Weights
from spinney.scheduler.framework.events import WITHIN_CAPACITY, BatchEvent, Scenario
from spinney.scheduler.framework.extension_points import QueueTurn
from spinney.scheduler.framework.jobs import PodGroupInfo
from spinney.scheduler.framework.plugin import PluginRegistry
from spinney.scheduler.framework.tasks import PodInfo
from spinney.scheduler.intake.inventory import Inventory
from spinney.scheduler.plugins import default_registry
from tests.scheduler.building import NOW, StandingClock, a_gang, a_node, a_pod, an_inventory, put_gang

POOL = "example.com/pool"
FAULTY = "faulty"
_KNOWN = default_registry()
_LONG_AGO = NOW - timedelta(hours=12)


class Fault(Enum):
    """What a function of a plugin gets wrong."""

    RAISES = "raises"
    LEAVES = "ends the program"
    PANICS = "raises what is no Exception"
    CANCELS = "raises a cancellation that nobody asked for"
    UNSPEAKABLE = "raises what cannot be printed"
    WRONG_TYPE = "answers with something of the wrong type"
    NAN = "answers with NaN"
    WRONG_LENGTH = "answers with the wrong number of values"
    CHANGES_ARGUMENT = "changes what it is given"
    SLOW = "takes very long"


class Panic(BaseException):
    """What libraries written in Rust raise."""


class Unspeakable(Exception):
    """Raises another of itself when it is printed."""

    def __str__(self) -> str:
        raise Unspeakable

    __repr__ = __str__


RAISING: dict[Fault, Callable[[], BaseException]] = {
    Fault.RAISES: lambda: RuntimeError("lost my configuration"),
    Fault.LEAVES: lambda: SystemExit(3),
    Fault.PANICS: lambda: Panic("index out of bounds"),
    Fault.CANCELS: asyncio.CancelledError,
    Fault.UNSPEAKABLE: Unspeakable,
}
"""Faults by which nothing is answered, and what is raised."""
NO_ANSWER = (*RAISING, Fault.WRONG_TYPE, Fault.NAN, Fault.WRONG_LENGTH)


class JumpingClock(StandingClock):
    """A clock on which slow functions take their time without anybody waiting."""

    def __init__(self) -> None:
        self.jumped = 0.0

    def monotonic(self) -> float:
        """Return the time with everything that was jumped."""
        return super().monotonic() + self.jumped


@dataclass(frozen=True)
class Hook:
    """An extension point: how to register at it, and what to answer where nothing is wrong."""

    name: str
    register: Callable[[Session, Callable[..., Any]], None]
    answer: Callable[..., Any] = lambda *_: None
    closed: bool = False
    """Whether a gang that the function could not be asked about is not placed."""
    answers: bool = True
    """Whether what it answers means anything."""
    about_all: bool = False
    """Whether the function is not asked about one gang, so that it fails for all."""


HOOKS = (
    Hook("job_order_fn", lambda session, fn: session.add_job_order_fn(fn), lambda *_: 0),
    Hook("job_order_key", lambda session, fn: session.add_job_order_key(fn), lambda *_: 0),
    Hook("task_order_fn", lambda session, fn: session.add_task_order_fn(fn), lambda *_: 0),
    Hook("task_order_key", lambda session, fn: session.add_task_order_key(fn), lambda *_: 0),
    Hook("sub_group_order_fn", lambda session, fn: session.add_sub_group_order_fn(fn), lambda *_: 0),
    Hook("queue_order_fn", lambda session, fn: session.add_queue_order_fn(fn), lambda *_: 0, about_all=True),
    Hook("pre_predicate_fn", lambda session, fn: session.add_pre_predicate_fn(fn), closed=True),
    Hook("predicate_fn", lambda session, fn: session.add_predicate_fn(fn), closed=True),
    Hook(
        "predicate_columns",
        lambda session, fn: session.add_predicate_columns(fn),
        lambda _task, _job, nodes: np.ones(len(nodes), dtype=np.bool_),
        closed=True,
    ),
    Hook("victim_invariant", lambda session, fn: session.add_victim_invariant_pre_predicate_fn(fn)),
    Hook("subset_nodes_fn", lambda session, fn: session.add_subset_nodes_fn(fn), closed=True),
    Hook("node_pre_order_fn", lambda session, fn: session.add_node_pre_order_fn(fn), answers=False),
    Hook("node_order_fn", lambda session, fn: session.add_node_order_fn(fn), lambda *_: 1.0, closed=True),
    Hook(
        "node_order_columns",
        lambda session, fn: session.add_node_order_columns(fn),
        lambda _task, _job, nodes: np.ones(len(nodes)),
        closed=True,
    ),
    Hook("gpu_order_fn", lambda session, fn: session.add_gpu_order_fn(fn), lambda *_: 1.0),
    Hook("applies_to", lambda s, fn: s.add_predicate_fn(lambda *_: None, applies_to=fn), lambda *_: False),
    Hook("pre_job_allocation_fn", lambda session, fn: session.add_pre_job_allocation_fn(fn), answers=False),
    Hook("job_refused_fn", lambda session, fn: session.add_job_refused_fn(fn), answers=False),
    Hook("job_distinction_fn", lambda session, fn: session.add_job_distinction_fn(fn), lambda *_: (1,)),
    Hook(
        "is_job_over_capacity_fn",
        lambda session, fn: session.add_is_job_over_capacity_fn(fn),
        lambda *_: WITHIN_CAPACITY,
        closed=True,
    ),
    Hook(
        "is_non_preemptible_job_over_queue_quota_fn",
        lambda session, fn: session.add_is_non_preemptible_job_over_queue_quota_fn(fn),
        lambda *_: WITHIN_CAPACITY,
    ),
    Hook(
        "is_task_allocation_on_node_over_capacity_fn",
        lambda session, fn: session.add_is_task_allocation_on_node_over_capacity_fn(fn),
        lambda *_: WITHIN_CAPACITY,
        closed=True,
    ),
    Hook("can_reclaim_resources_fn", lambda s, fn: s.add_can_reclaim_resources_fn(fn), lambda *_: True),
    Hook("reclaim_victim_filter_fn", lambda s, fn: s.add_reclaim_victim_filter_fn(fn), lambda *_: True),
    Hook("preempt_victim_filter_fn", lambda s, fn: s.add_preempt_victim_filter_fn(fn), lambda *_: True),
    Hook("reclaim_validator_fn", lambda s, fn: s.add_reclaim_scenario_validator_fn(fn), lambda *_: True),
    Hook("preempt_validator_fn", lambda s, fn: s.add_preempt_scenario_validator_fn(fn), lambda *_: True),
    Hook("reclaim_bound_fn", lambda session, fn: session.add_reclaim_bound_fn(fn)),
    Hook("on_job_solution_start_fn", lambda s, fn: s.add_on_job_solution_start_fn(fn), answers=False, about_all=True),
    Hook("scenario_generator", lambda s, fn: s.add_scenario_generator("odd", fn), lambda *_: []),
    Hook("get_queue_allocated", lambda s, fn: s.add_get_queue_allocated_resources_fn(fn), about_all=True),
    Hook("get_queue_deserved", lambda s, fn: s.add_get_queue_deserved_resources_fn(fn), about_all=True),
    Hook("get_queue_fair_share", lambda s, fn: s.add_get_queue_fair_share_fn(fn), about_all=True),
    Hook("event allocate", lambda s, fn: s.add_event_handler(EventHandler(allocate=fn)), answers=False),
    Hook("event deallocate", lambda s, fn: s.add_event_handler(EventHandler(deallocate=fn)), answers=False),
    Hook("event allocate_many", lambda s, fn: s.add_event_handler(EventHandler(allocate_many=fn)), answers=False),
    Hook("event deallocate_many", lambda s, fn: s.add_event_handler(EventHandler(deallocate_many=fn)), answers=False),
    Hook("bind_request_mutate_fn", lambda s, fn: s.add_bind_request_mutate_fn(fn), lambda *_: {}),
)


def faulty(fault: Fault, hook: Hook, clock: JumpingClock) -> Callable[..., Any]:
    """Return a function that has the fault where it is asked about a bad gang."""

    def function(*args: Any) -> Any:
        if not (hook.about_all or any(map(_is_about_a_bad_one, args))):
            return hook.answer(*args)
        if fault in RAISING:
            raise RAISING[fault]()
        match fault:
            case Fault.WRONG_TYPE:
                return object()
            case Fault.NAN:
                return float("nan")
            case Fault.WRONG_LENGTH:
                return np.ones(3)
            case Fault.CHANGES_ARGUMENT:
                for arg in args:
                    vandalize(arg)
            case Fault.SLOW:
                clock.jumped += 3600
        return hook.answer(*args)

    return function


def vandalize(arg: Any) -> None:
    """Change what can be changed about an argument, except about gangs that are not the plugin's business."""
    if isinstance(arg, PodInfo | PodGroupInfo) and not _is_about_a_bad_one(arg):
        return
    if isinstance(arg, list | dict):
        arg.clear()
    elif isinstance(arg, np.ndarray):
        arg[:] = 0
    for name in ("status", "row", "node_name", "queue", "priority", "name", "tasks", "rows", "victims", "pending"):
        try:
            setattr(arg, name, None)
        except (AttributeError, TypeError):
            continue


def _is_about_a_bad_one(arg: Any) -> bool:
    match arg:
        case PodGroupInfo():
            return arg.key.name.startswith("bad")
        case PodInfo():
            return arg.key.name.startswith("bad")
        case Event() | BatchEvent():
            return _is_about_a_bad_one(arg.job)
        case Scenario():
            return _is_about_a_bad_one(arg.preemptor)
        case QueueTurn():
            return arg.next_job is not None and _is_about_a_bad_one(arg.next_job)
        case _:
            return False


def a_world() -> Inventory:
    """Return the cluster."""
    inventory = an_inventory(
        *(a_node(pool, gpus=gpus, labels={POOL: pool}) for pool, gpus in (("allocate", 8), ("share", 2), ("stale", 8))),
        *(a_node(f"{pool}", gpus=2, labels={POOL: pool}) for pool in ("reclaim", "preempt")),
        *(
            a_node(f"{kind}-consolidation-{number}", gpus=2, labels={POOL: f"{kind}-consolidation"})
            for kind in ("good", "bad")
            for number in range(2)
        ),
    )
    for age, (name, quota) in enumerate((("plain", 100), ("rich", 0), ("poor", 100), ("ranked", 100))):
        inventory.put_queue(
            QueueInfo(name=name, quota=Amounts(-1, -1, quota * GPU), weight=Weights(1, 1, 1), created=float(age))
        )
    both = GroupSet("", (PodSet("left", 2), PodSet("right", 1)))
    for kind in ("good", "bad"):
        gang = a_gang(f"{kind}-allocate", root=both, queue="plain", preemptible=False)
        sets = enumerate(("left", "left", "right"))
        pods = [_pod(gang, number, "allocate", gpus=1, pod_set=name) for number, name in sets]
        put_gang(inventory, gang, pods)
        gang = a_gang(f"{kind}-share", queue="plain", preemptible=False)
        put_gang(inventory, gang, [_pod(gang, 0, "share", annotations={"gpu-fraction": "0.5"})])
        for action, queue in (("reclaim", "poor"), ("preempt", "ranked")):
            gang = a_gang(f"{kind}-{action}", queue=queue, priority=80, preemptible=False)
            put_gang(inventory, gang, [_pod(gang, 0, action, gpus=1)])
        gang = a_gang(f"{kind}-consolidation", queue="plain")
        put_gang(inventory, gang, [_pod(gang, 0, f"{kind}-consolidation", gpus=2)])
        gang = replace(a_gang(f"{kind}-stale", minimum=2, queue="plain"), stale_since=_LONG_AGO)
        put_gang(inventory, gang, [_pod(gang, 0, "stale", gpus=1, node="stale")])
        for number in range(2):
            node = f"{kind}-consolidation-{number}"
            gang = a_gang(f"runs-{node}", queue="plain")
            put_gang(inventory, gang, [_pod(gang, 0, f"{kind}-consolidation", gpus=1, node=node)])
    for action, queue in (("reclaim", "rich"), ("preempt", "ranked")):
        for number in range(2):
            gang = a_gang(f"runs-{action}-{number}", queue=queue, priority=10)
            put_gang(inventory, gang, [_pod(gang, 0, action, gpus=1, node=action)])
    return inventory


def _pod(gang: Gang, number: int, pool: str, **more: Any) -> Any:
    return a_pod(f"{gang.key.name}-{number}", gang=gang.key.name, node_selector={POOL: pool}, **more)


def a_faulty_scheduler(fault: Fault, hook: Hook) -> Scheduler:
    """Return a scheduler of the cluster whose first plugin has a fault."""
    clock = JumpingClock()

    class Faulty(Plugin):
        name = FAULTY

        def on_session_open(self, session: Session) -> None:
            hook.register(session, faulty(fault, hook, clock))

    registry = PluginRegistry({option.name: _KNOWN.builder(option.name) for option in SchedulerConfig().plugins})
    registry.register(FAULTY, Faulty)
    config = SchedulerConfig(plugins=(PluginOption(FAULTY), *SchedulerConfig().plugins))
    runtime = Runtime(clock=clock, random=Random(0), executor=InlineExecutor())
    return Scheduler(config, a_world(), runtime=runtime, registry=registry)
