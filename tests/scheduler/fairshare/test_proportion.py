"""The proportion plugin in a session: books that follow, order, and the rules of reclaim."""

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from spinney.api import core
from spinney.api.meta import Metadata
from spinney.api.struct import JSON
from spinney.extensions.arguments import InvalidArguments, read_arguments
from spinney.gangs.sources.kai import SOURCE
from spinney.gangs.tree import GangKey
from spinney.runtime import InlineExecutor, Runtime
from spinney.scheduler.config import PluginOption, SchedulerConfig
from spinney.scheduler.evaluation.questions import Questions
from spinney.scheduler.fairshare import GPU, ZERO, Amounts
from spinney.scheduler.framework.events import Scenario
from spinney.scheduler.framework.jobs import PodGroupInfo
from spinney.scheduler.framework.plugin import PluginRegistry
from spinney.scheduler.framework.session import Session
from spinney.scheduler.intake.inventory import Inventory
from spinney.scheduler.plugins.proportion import ProportionPlugin, UsageWeights
from spinney.sim.cases.format import Case
from spinney.sim.cases.objects import NOW, gang_of
from spinney.sim.cases.scheduling import inventory_of
from spinney.sim.engine import SteppedClock
from tests.sim.cases.builders import a_case, a_job, a_node, a_queue, a_task

CORE = Amounts(cpu=1000, memory=1_000_000_000)
"""What every task asks for beside GPUs."""


def opened(
    case: JSON,
    *,
    arguments: dict[str, str] | None = None,
    prepare: Callable[[Inventory], None] | None = None,
    **config: Any,
) -> tuple[Session, ProportionPlugin]:
    """Open a session on the cluster of ``case`` with nothing but proportion."""
    plugins: list[ProportionPlugin] = []

    def build(found: Any) -> ProportionPlugin:
        plugins.append(ProportionPlugin(found))
        return plugins[-1]

    inventory = inventory_of(msgspec.convert(case, Case))
    if prepare is not None:
        prepare(inventory)
    options = (PluginOption("proportion", arguments or {}),)
    runtime = Runtime(clock=SteppedClock(NOW), random=random.Random(0), executor=InlineExecutor())
    settings = SchedulerConfig.kai_compat(plugins=options, actions=(), **config)
    session = Session(inventory.snapshot(), settings, PluginRegistry({"proportion": build}), runtime, ask=Questions)
    session.open()
    return session, plugins[0]


def job_of(session: Session, name: str) -> PodGroupInfo:
    return session.job(GangKey(SOURCE, "default", name))


def running(name: str, *, gpus: int = 1, count: int = 1, **fields: Any) -> JSON:
    tasks = [a_task(f"{name}-{number}", state="Running", node="node0", gpus=gpus) for number in range(count)]
    return a_job(name, tasks=tasks, **fields)


def gpus(count: float, tasks: int = 1) -> Amounts:
    """Return what tasks with so many GPUs together are charged for."""
    return CORE.times(tasks) + Amounts(gpu=round(count * GPU))


def test_books_open_with_what_is_held_and_wanted() -> None:
    """At the start running tasks are charged and requested, pending ones requested, terminating ones neither."""
    going = a_job("going", tasks=[a_task("going-0", state="Releasing", node="node0")])
    case = a_case(nodes=[a_node(gpus=8)], jobs=[running("held", gpus=2), a_job("new"), going])
    _, plugin = opened(case)
    for queue in ("queue0", "default"):
        book = plugin.books[queue]
        assert (book.allocated, book.requested) == (gpus(2), gpus(3, tasks=2))


def test_what_cannot_be_preempted_is_charged_apart() -> None:
    """Jobs that cannot be preempted are charged as such."""
    case = a_case(nodes=[a_node(gpus=8)], jobs=[running("held", preemptible=False), running("other")])
    _, plugin = opened(case)
    assert plugin.books["queue0"].allocated_non_preemptible == gpus(1)


def test_inference_may_be_made_preemptible() -> None:
    """Where inference is configured as preemptible its jobs are charged so, and evicting one leaves nothing behind."""
    case = a_case(nodes=[a_node(gpus=8)], jobs=[running("held", priority=125, preemptible=False)])

    def name_class(inventory: Inventory) -> None:
        (job,) = msgspec.convert(case, Case).jobs
        inventory.put_gang(replace(gang_of(job, staleness_grace=0), priority_class="inference"))

    session, plugin = opened(case, prepare=name_class, inference_preemptible=True)
    assert (plugin.books["queue0"].allocated, plugin.books["queue0"].allocated_non_preemptible) == (gpus(1), ZERO)
    session.statement().evict(job_of(session, "held").tasks[0])
    assert (plugin.books["queue0"].allocated, plugin.books["queue0"].allocated_non_preemptible) == (ZERO, ZERO)


def test_statements_move_the_books_and_undo_restores_them() -> None:
    """A placement charges the queue and its ancestors, an eviction discharges them, and a discard leaves no trace."""
    case = a_case(nodes=[a_node(gpus=8)], queues=[a_queue(quota=4)], jobs=[running("held"), a_job("new")])
    session, plugin = opened(case)
    before = [(page.allocated, page.requested) for page in plugin.books.pages]
    statement = session.statement()
    statement.allocate(job_of(session, "new").tasks[0], session.node("node0"))
    assert plugin.books["default"].allocated == gpus(2, tasks=2)
    statement.evict(job_of(session, "held").tasks[0])
    assert plugin.books["queue0"].allocated == gpus(1)
    statement.discard()
    assert [(page.allocated, page.requested) for page in plugin.books.pages] == before


def test_the_pods_of_others_are_not_to_be_divided() -> None:
    """What pods of another scheduler hold is taken off the total."""

    def add_foreign(inventory: Inventory) -> None:
        resources = core.ResourceRequirements(requests={"nvidia.com/gpu": 3})
        inventory.apply(
            core.Pod(
                metadata=Metadata(name="foreign", namespace="default", uid="foreign"),
                spec=core.PodSpec(
                    node_name="node0",
                    scheduler_name="default-scheduler",
                    containers=(core.Container(name="main", resources=resources),),
                ),
                status=core.PodStatus(phase="Running"),
            )
        )

    _, plugin = opened(a_case(nodes=[a_node(gpus=8)]), prepare=add_foreign)
    assert plugin.books.total.gpu == 5 * GPU


def test_a_refusal_carries_its_figures() -> None:
    """A job over its queue's limit is refused with the rule, the queue and the figures."""
    session, _ = opened(a_case(nodes=[a_node(gpus=8)], queues=[a_queue(limit=1)], jobs=[running("held"), a_job("new")]))
    job = job_of(session, "new")
    verdict = session.ask.is_job_over_capacity(job, job.tasks)
    assert (verdict.ok, verdict.reason) == (False, "OverLimit")
    assert verdict.message == "queue queue0: nvidia.com/gpu limit is 1, in use 1, requested 1"


def test_queue_figures_can_be_asked_for() -> None:
    """Other plugins can ask what a queue holds, is guaranteed and has as fair share."""
    session, _ = opened(a_case(nodes=[a_node(gpus=8)], queues=[a_queue(quota=2)], jobs=[running("held"), a_job("new")]))
    allocated, deserved, share = (
        session.ask.queue_allocated("queue0"),
        session.ask.queue_deserved("queue0"),
        session.ask.queue_fair_share("queue0"),
    )
    assert allocated == gpus(1)
    assert deserved is not None
    assert share is not None
    assert (deserved.gpu, share.gpu) == (2 * GPU, 2 * GPU)


def two_queues(**fields: Any) -> JSON:
    return a_case(
        nodes=[a_node(gpus=4)],
        queues=[a_queue("queue0", quota=2), a_queue("queue1", quota=2, rank=1)],
        jobs=[running("greedy", count=4, **fields), a_job("poor", queue="queue1")],
    )


def test_a_queue_below_its_share_may_reclaim() -> None:
    """A job of a queue below its fair share may take from one above, and not the other way round."""
    session, _ = opened(two_queues())
    poor, greedy = job_of(session, "poor"), job_of(session, "greedy")
    assert session.ask.can_reclaim_resources(poor)
    assert session.ask.is_victim("reclaim", poor, greedy)
    assert not session.ask.is_victim("reclaim", greedy, poor)


@pytest.mark.parametrize(("minimum", "taken", "just"), [(1, 2, True), (1, 3, False), (4, 4, True)])
def test_an_elastic_job_gives_pod_by_pod_and_a_gang_as_a_whole(minimum: int, taken: int, just: bool) -> None:
    """Pods beyond the minimum are judged one by one; the gang itself is one piece."""
    session, _ = opened(two_queues(minimum=minimum))
    session.ask.job_solution_start()
    poor, greedy = job_of(session, "poor"), job_of(session, "greedy")
    victims = greedy.tasks[:taken]
    statement = session.statement()
    for task in victims:
        statement.evict(task)
    scenario = Scenario(preemptor=poor, pending=poor.tasks, victims={greedy: victims})
    assert (session.ask.scenario_refusal("reclaim", scenario) is None) is just


@pytest.mark.parametrize("arguments", [{"kValue": "often"}, {"kValue": "-1"}, {"reclaimerSaturationMultiplier": "0.5"}])
def test_bad_arguments_are_named(arguments: dict[str, str]) -> None:
    """An argument that makes no sense is refused, naming it and what is expected."""
    (key,) = arguments
    with pytest.raises(InvalidArguments, match=f"argument {key}: found .*, expected a number of at least"):
        read_arguments(UsageWeights, arguments)
