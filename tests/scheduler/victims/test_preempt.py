"""Preempt: within a queue, the more important job takes from the less important."""

from dataclasses import replace
from datetime import timedelta

import pytest

from spinney.api import coscheduling, kai
from spinney.api.core import PodSchedulingGroup
from spinney.api.labels import COSCHEDULING_GROUP
from spinney.api.meta import ObjectMeta
from spinney.api.scheduling import PriorityClass
from spinney.api.workload_v1alpha1 import GangPolicy
from spinney.api.workload_v1alpha2 import SchedulingPolicy
from spinney.api.workload_v1beta1 import DisruptAll, DisruptionMode, PodGroup, PodGroupSpec
from spinney.gangs.tree import GroupSet, PodSet, TopologyConstraintInfo
from spinney.scheduler import Plugin, Session
from spinney.scheduler.config import SchedulerConfig
from spinney.scheduler.fairshare import GPU, Amounts, QueueInfo, Weights
from tests.scheduler.building import (
    NAMESPACE,
    RACK,
    a_gang,
    a_node,
    a_pod,
    a_runtime,
    a_scheduler,
    an_inventory,
    put_gang,
)
from tests.scheduler.victims.worlds import Job, World, build, evicted, promised, run, run_on

ONE_QUEUE = (("a", 100),)


def test_the_least_important_job_goes_first() -> None:
    """Of two jobs of lower priority the lower, and of equals the younger, is taken."""
    old = Job("old", places=("n0",), priority=50)
    young = Job("young", places=("n0",), priority=50)
    middle = Job("middle", places=("n0",), priority=60)
    world = World((3,), ONE_QUEUE, (middle, old, young, Job("urgent", priority=70)))

    session = run(world, "preempt")

    assert evicted(session) == {"young-0": ""}
    assert promised(session) == {"urgent-0": "n0"}


def test_equal_priority_is_left_alone() -> None:
    """A job does not take from its equals."""
    world = World((1,), ONE_QUEUE, (Job("running", places=("n0",)), Job("waiting")))
    assert evicted(run(world, "preempt")) == {}


def test_other_queues_are_left_alone() -> None:
    """Priority counts within one queue only."""
    world = World((1,), (("a", 1), ("b", 1)), (Job("running", queue="b", places=("n0",)), Job("urgent", priority=90)))
    assert evicted(run(world, "preempt")) == {}


def test_pods_beyond_the_minimum_go_before_gangs() -> None:
    """An elastic job is peeled to its minimum before another gang is broken."""
    elastic = Job("elastic", places=("n0", "n0", "n0"), minimum=1, priority=60)
    gang = Job("gang", places=("n0", "n0"), priority=60)
    world = World((5,), ONE_QUEUE, (gang, elastic, Job("urgent", gpus=2, priority=70)))

    assert evicted(run(world, "preempt")) == {"elastic-1": "", "elastic-2": ""}


def test_a_gang_is_given_up_as_a_whole() -> None:
    """Taking one pod of a rigid gang takes all, and those that find another place are moved."""
    gang = Job("gang", places=("n0", "n1"))
    world = World((1, 1), ONE_QUEUE, (gang, Job("urgent", priority=70)))

    session = run(world, "preempt")

    assert evicted(session) == {"gang-0": "", "gang-1": ""}
    assert promised(session) == {"urgent-0": "n0"}


IN_PARTS = [(False, 4, 3, 4), (False, 3, 1, 1), (False, 3, 2, 4), (False, 1, 3, 3)]


@pytest.mark.parametrize(
    ("family", "whole", "minimum", "asked", "victims"),
    [("native", True, 1, 1, 4), *((family, *each) for family in ("native", "coscheduling") for each in IN_PARTS)],
)
def test_a_group_of_any_family_goes_down_to_its_minimum_or_goes_whole(
    family: str, whole: bool, minimum: int, asked: int, victims: int
) -> None:
    """Nothing is left of a group that could do nothing but hold its GPUs; one that says so is never taken in part."""
    inventory = an_inventory(a_node("n0", gpus=4))
    metadata = ObjectMeta(name="group", namespace=NAMESPACE, uid="group")
    if family == "native":
        mode = DisruptionMode(all=DisruptAll()) if whole else None
        policy = SchedulingPolicy(gang=GangPolicy(min_count=minimum))
        inventory.apply(PodGroup(metadata=metadata, spec=PodGroupSpec(scheduling_policy=policy, disruption_mode=mode)))
        membership = PodSchedulingGroup(pod_group_name="group")
        pods = [a_pod(f"p{n}", gpus=1, node="n0", scheduling_group=membership) for n in range(4)]
    else:
        inventory.apply(coscheduling.PodGroup(metadata=metadata, spec=coscheduling.PodGroupSpec(min_member=minimum)))
        pods = [a_pod(f"p{n}", gpus=1, node="n0", labels={COSCHEDULING_GROUP: "group"}) for n in range(4)]
    for pod in pods:
        inventory.apply(pod)
    put_gang(inventory, a_gang("urgent", priority=90), [a_pod("urgent-0", gang="urgent", gpus=asked)])

    assert len(evicted(run_on(inventory, "preempt"))) == victims


def test_a_member_that_is_not_needed_goes_before_the_rest() -> None:
    """Of three groups of which two are needed, one is given up and the job goes on."""
    members = tuple(PodSet(name, 1) for name in ("x", "y", "z"))
    inventory = an_inventory(a_node("n0", gpus=3))
    put_gang(
        inventory,
        a_gang("groups", root=GroupSet("", members, min_groups=2)),
        [a_pod(f"groups-{name}", gang="groups", pod_set=name, gpus=1, node="n0") for name in ("x", "y", "z")],
    )
    put_gang(inventory, a_gang("urgent", priority=70), [a_pod("urgent-0", gang="urgent", gpus=1)])

    session = run_on(inventory, "preempt")

    assert len(evicted(session)) == 1
    (victim,) = [job for job in session.jobs if job.name == "groups"]
    assert victim.gang_satisfied


def test_only_victims_where_room_is_needed_are_taken() -> None:
    """A less important job on a node that stays too small is passed over."""
    world = World(
        (4, 2),
        ONE_QUEUE,
        (
            Job("fixed", gpus=1, places=("n1",), preemptible=False),
            Job("first", gpus=2, places=("n0",)),
            Job("second", gpus=2, places=("n0",)),
            Job("youngest", gpus=1, places=("n1",)),
            Job("urgent", gpus=4, priority=70),
        ),
    )
    assert evicted(run(world, "preempt")) == {"first-0": "", "second-0": ""}


@pytest.mark.parametrize(("narrow", "taken"), [(True, {"wide-2", "pair-1"}), (False, {"wide-1", "wide-2", "pair-1"})])
def test_only_the_pods_needed_on_a_node_go(narrow: bool, taken: set[str]) -> None:
    """A job on the node where room is made keeps its pods elsewhere, except where KAI is imitated."""
    jobs = (
        Job("rigid", places=("n1", "n1", "n2"), priority=60),
        Job("wide", places=("n2", "n1", "n0"), minimum=1, priority=50),
        Job("fixed", gpus=2, places=("n2", "n0"), preemptible=False),
        Job("pair", places=("n1", "n0"), minimum=1, priority=60),
        Job("urgent", gpus=2, priority=70),
    )
    session = run(World((4, 4, 4), ONE_QUEUE, jobs), "preempt", narrow_victims=narrow)
    assert set(evicted(session)) == taken


def test_the_message_names_the_beneficiary() -> None:
    """A victim is told for whom it goes."""
    world = World((1,), ONE_QUEUE, (Job("running", places=("n0",)), Job("urgent", priority=70)))
    (eviction,) = run(world, "preempt").evictions
    assert eviction.message == "preempted by job team/urgent of priority 70 in queue a"
    assert str(eviction.beneficiary) == "team/urgent"


@pytest.mark.parametrize(("honoured", "disturbed"), [(True, False), (False, True)])
def test_a_pod_that_never_preempts_waits(honoured: bool, disturbed: bool) -> None:
    """``preemptionPolicy: Never`` is honoured, except where KAI is imitated."""
    inventory = an_inventory(a_node("n0", gpus=1))
    put_gang(inventory, a_gang("running"), [a_pod("running-0", gang="running", gpus=1, node="n0")])
    polite = a_pod("polite-0", gang="polite", gpus=1, preemption_policy="Never")
    put_gang(inventory, a_gang("polite", priority=70), [polite])

    session = run_on(inventory, "preempt", honour_preemption_policy=honoured)

    assert bool(session.evictions) is disturbed


def test_a_job_within_its_delay_waits() -> None:
    """A job disturbs nobody before its preemption delay has passed, and says so."""
    now = a_runtime().clock.now()
    inventory = build(World((1,), ONE_QUEUE, (Job("running", places=("n0",)),)))
    gang = replace(a_gang("young", priority=70, queue="a", created=now), preemption_delay=timedelta(hours=1))
    put_gang(inventory, gang, [a_pod("young-0", gang="young", gpus=1)])

    session = run_on(inventory, "preempt")

    assert not session.evictions
    assert [error.reason for errors in session.fit_errors.values() for error in errors] == ["PreemptionDelay"]


def test_a_job_bound_in_the_same_cycle_is_spared() -> None:
    """What allocate has just given is not taken back by preempt, though the pods behind it matter more."""
    small = Job("small", gpus=1, priority=50)
    world = World(
        (1, 1),
        ONE_QUEUE,
        (Job("holder", places=("n0",), priority=80), small, Job("pair", priority=70, places=("", ""))),
    )
    session = run(world, "allocate", "preempt")
    assert [bind.pod.name for bind in session.binds] == ["small-0"]
    assert not session.evictions


def test_a_failed_search_is_reported() -> None:
    """A job that nobody could help says how many pods could be taken, and why that was not enough."""
    world = World(
        (2,),
        ONE_QUEUE,
        (
            Job("fixed", places=("n0",), preemptible=False),
            Job("low", places=("n0",)),
            Job("urgent", gpus=2, priority=70),
        ),
    )
    session = run(world, "preempt")
    ((report,),) = session.victim_reports.values()
    assert (report.action, report.candidates) == ("preempt", 1)
    assert [(each.reason, each.scenarios) for each in report.rejected] == [
        ("there is no room even without all possible victims", 1)
    ]


def test_harder_jobs_of_a_kind_that_failed_are_not_searched_for() -> None:
    """A job that asks for more of the same than one that failed shares its report; one that asks for less is tried."""
    fixed = Job("fixed", places=("n0",), preemptible=False)
    low = Job("low", places=("n0",))
    pair = Job("pair", places=("", ""), priority=70)
    triple = Job("triple", places=("", "", ""), priority=70)
    single = Job("single", places=("",), priority=70)

    session = run(World((2,), ONE_QUEUE, (fixed, low, pair, triple, single)), "preempt")

    reports = {key.name: report for key, (report,) in session.victim_reports.items()}
    assert set(reports) == {"pair", "triple"}
    assert reports["pair"] is reports["triple"]
    assert promised(session) == {"single-0": "n0"}


def test_a_scaled_gang_that_nobody_makes_room_for_holds_up_none_of_another_base() -> None:
    """Where its base is decides whom a scaled gang may take from, so each base is searched for."""
    inventory = an_inventory(*(a_node(f"n{rack}", gpus=2, labels={RACK: str(rack)}) for rack in range(2)))
    constraint = TopologyConstraintInfo("", required=RACK)
    for rack, preemptible in enumerate((False, True)):
        base = a_gang(f"base{rack}", topology=constraint, priority=70, preemptible=False)
        put_gang(inventory, base, [a_pod(f"base{rack}-0", gang=base.name, gpus=1, node=f"n{rack}")])
        filler = a_gang(f"filler{rack}", preemptible=preemptible)
        put_gang(inventory, filler, [a_pod(f"filler{rack}-0", gang=filler.name, gpus=1, node=f"n{rack}")])
        scaled = replace(a_gang(f"scaled{rack}", topology=constraint, priority=70), anchor=base.key)
        put_gang(inventory, scaled, [a_pod(f"scaled{rack}-0", gang=scaled.name, gpus=1)])

    session = run_on(inventory, "allocate", "preempt")

    assert evicted(session) == {"filler1-0": ""}
    assert promised(session) == {"scaled1-0": "n1"}


def test_a_scaled_gang_is_moved_beside_its_base_though_one_of_another_base_is_lost() -> None:
    """Victims that ask for the same under different bases find a place or none each for itself."""
    sizes = {"n0": ("left", 2), "n1": ("left", 1), "n2": ("right", 2), "n3": ("right", 2)}
    nodes = [a_node(name, gpus=gpus, labels={RACK: rack}) for name, (rack, gpus) in sizes.items()]
    inventory = an_inventory(*nodes)
    constraint = TopologyConstraintInfo("", required=RACK)
    for number, (node, base_node) in enumerate((("n0", "n1"), ("n2", "n3"))):
        base = a_gang(f"base{number}", topology=constraint, priority=70, preemptible=False)
        put_gang(inventory, base, [a_pod(f"base{number}-0", gang=base.name, gpus=1, node=base_node)])
        scaled = replace(a_gang(f"scaled{number}", topology=constraint), anchor=base.key)
        put_gang(inventory, scaled, [a_pod(f"scaled{number}-0", gang=scaled.name, gpus=1, node=node)])
    pods = [a_pod(f"urgent-{number}", gang="urgent", gpus=2) for number in range(2)]
    put_gang(inventory, a_gang("urgent", minimum=2, priority=70), pods)

    assert evicted(run_on(inventory, "preempt")) == {"scaled0-0": "", "scaled1-0": "n3"}


@pytest.mark.parametrize("honoured", [True, False])
def test_a_group_that_never_preempts_waits(honoured: bool) -> None:
    """A native group's own ``preemptionPolicy: Never`` is honoured, though its pods do not say it."""
    inventory = an_inventory(a_node("n0", gpus=1))
    put_gang(inventory, a_gang("running", priority=10), [a_pod("running-0", gang="running", gpus=1, node="n0")])
    spec = PodGroupSpec(
        scheduling_policy=SchedulingPolicy(gang=GangPolicy(min_count=1)), priority=70, preemption_policy="Never"
    )
    inventory.apply(PodGroup(metadata=ObjectMeta(name="polite", namespace=NAMESPACE), spec=spec))
    inventory.apply(a_pod("polite-0", gpus=1, scheduling_group=PodSchedulingGroup(pod_group_name="polite")))

    session = run_on(inventory, "preempt", honour_preemption_policy=honoured)

    assert bool(session.evictions) is not honoured


@pytest.mark.parametrize("action", ["preempt", "reclaim", "consolidation"])
def test_a_priority_class_that_never_preempts_holds_for_every_action(action: str) -> None:
    """A group of such a class disturbs nobody: no victim is taken, and nobody is moved for it."""
    assert bool(disturbed_by(action, policy=None))
    assert not disturbed_by(action, policy="Never")


def disturbed_by(action: str, *, policy: str | None) -> list[str]:
    """Return who is disturbed for a gang of a priority class with this policy, where each action could disturb."""
    inventory = an_inventory(a_node("n0", gpus=2), a_node("n1", gpus=2))
    for age, (queue, quota) in enumerate((("a", 2), ("b", 2))):
        inventory.put_queue(
            QueueInfo(name=queue, quota=Amounts(-1, -1, quota * GPU), weight=Weights(1, 1, 1), created=float(age))
        )
    inventory.apply(PriorityClass(metadata=ObjectMeta(name="polite"), value=70, preemption_policy=policy))
    owner = {"preempt": "b", "reclaim": "a", "consolidation": "b"}[action]
    running = 2 if action == "consolidation" else 4
    for number in range(running):
        name = f"r{number}"
        node = f"n{number % 2}"
        put_gang(inventory, a_gang(name, queue=owner, priority=10), [a_pod(f"{name}-0", gang=name, gpus=1, node=node)])
    group = kai.PodGroup(
        metadata=ObjectMeta(name="polite", namespace=NAMESPACE),
        spec=kai.PodGroupSpec(min_member=1, queue="b", priority_class_name="polite"),
    )
    inventory.apply(group)
    inventory.apply(a_pod("polite-0", gang="polite", gpus=2))
    return [eviction.pod.name for eviction in run_on(inventory, action).evictions]


class OwnNodes(Plugin):
    """Keeps pods of the namespace `b` off the node n2."""

    name = "own-nodes"
    treats_alike = True

    def on_session_open(self, session: Session) -> None:
        session.add_predicate_fn(lambda task, job, node: (job.namespace, node.name) != ("b", "n2"))


def test_a_victim_is_moved_where_one_of_another_namespace_may_not_go() -> None:
    """What a victim was refused is refused to others of its namespace only: plugins may go by that."""
    inventory = an_inventory(a_node("n0", gpus=2), a_node("n1", gpus=2), a_node("n2", gpus=1))
    for namespace, node in (("a", "n0"), ("b", "n1")):
        inventory.apply(a_pod("victim", namespace=namespace, gpus=1, node=node))
    urgent = a_gang("urgent", minimum=2, priority=90)
    put_gang(inventory, urgent, [a_pod(f"u{n}", gang="urgent", gpus=2) for n in range(2)])
    config = SchedulerConfig(actions=("preempt",))

    result = a_scheduler(inventory, OwnNodes, config=config).run_cycle()

    assert {each.pod.namespace: each.moves_to for each in result.evictions} == {"a": "n2", "b": ""}
