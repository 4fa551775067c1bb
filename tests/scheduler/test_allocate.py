"""The allocate action: gangs whole or not at all, elastic growth, promises, sharing."""

from datetime import timedelta
from typing import ClassVar

import pytest

from spinney.api.labels import KAI_QUEUE
from spinney.cluster.statuses import PodStatus
from spinney.gangs.tree import GroupSet, PodSet
from spinney.scheduler.config import SchedulerConfig
from spinney.scheduler.fairshare import GPU, UNLIMITED, Amounts, QueueInfo
from spinney.scheduler.framework.plugin import Plugin
from spinney.scheduler.framework.session import Session
from tests.scheduler.building import (
    NAMESPACE,
    NOW,
    QUEUE,
    a_gang,
    a_node,
    a_pod,
    a_scheduler,
    an_inventory,
    placements,
    put_gang,
    put_job,
)


def statuses(session: Session) -> dict[str, str]:
    """Return the status of every task."""
    return {task.name: task.status.value for job in session.jobs for task in job.tasks}


def test_a_gang_is_placed_whole() -> None:
    """All pods of a gang that fits are bound, packed onto as few nodes as it takes."""
    inventory = an_inventory(a_node("n1", gpus=4), a_node("n2", gpus=4), a_node("n3", gpus=4))
    put_job(inventory, "job", 6)

    nodes = placements(a_scheduler(inventory))
    assert len(nodes) == 6
    assert set(nodes.values()) == {"n1", "n2"}


def test_a_gang_that_does_not_fit_takes_nothing() -> None:
    """Not a single pod is bound, later jobs are still tried, and the reason says how far it came."""
    inventory = an_inventory(a_node("n1", gpus=4))
    put_job(inventory, "large", 5)
    put_job(inventory, "small", 2)
    result = a_scheduler(inventory).run_cycle()

    assert {bind.pod.name for bind in result.binds} == {"small-0", "small-1"}
    (unschedulable,) = result.unschedulable
    assert unschedulable.gang.name == "large"
    assert "Resources were found for 4 pods while 5 are required" in unschedulable.errors[0].message


def test_an_elastic_job_starts_with_its_minimum_and_grows() -> None:
    """Pods beyond the minimum are placed as far as there is room."""
    inventory = an_inventory(a_node("n1", gpus=3))
    put_job(inventory, "job", 5, minimum=2)

    assert len(placements(a_scheduler(inventory))) == 3


def test_minimums_come_before_growth() -> None:
    """Nobody grows while a job behind can still get its minimum."""
    inventory = an_inventory(a_node("n1", gpus=4))
    put_job(inventory, "a", 4, minimum=2)
    put_job(inventory, "b", 4, minimum=2)

    assert sorted(name[0] for name in placements(a_scheduler(inventory))) == ["a", "a", "b", "b"]


def test_a_gang_waits_whole_for_what_is_terminating() -> None:
    """If one pod of a gang must wait for a terminating one, none is bound yet: all are promised their nodes."""
    inventory = an_inventory(a_node("n1", gpus=2))
    inventory.apply(a_pod("old", gpus=1, node="n1", terminating=True))
    put_job(inventory, "job", 2)
    result = a_scheduler(inventory).run_cycle()

    assert not result.binds
    assert sorted(each.pod.name for each in result.pipelines) == ["job-0", "job-1"]


def test_nothing_is_promised_beyond_what_is_terminating() -> None:
    """What one job was promised is not promised to another."""
    inventory = an_inventory(a_node("n1", gpus=1))
    inventory.apply(a_pod("old", gpus=1, node="n1", terminating=True))
    put_job(inventory, "a", 1)
    put_job(inventory, "b", 1)
    result = a_scheduler(inventory).run_cycle()

    assert [each.pod.name for each in result.pipelines] == ["a-0"]
    assert [each.gang.name for each in result.unschedulable] == ["b"]


def test_nothing_is_promised_on_a_pod_that_does_not_go() -> None:
    """A pod that has been terminating for too long holds what it holds, and nobody waits for it."""
    inventory = an_inventory(a_node("n1", gpus=1))
    inventory.apply(a_pod("stuck", gpus=1, node="n1", terminating=True, terminating_for=timedelta(minutes=5)))
    put_job(inventory, "job", 1)
    result = a_scheduler(inventory).run_cycle()

    assert not result.pipelines
    assert [each.gang.name for each in result.unschedulable] == ["job"]


def test_priority_goes_first_then_age() -> None:
    """With room for one, the job of higher priority gets it; among equals the older one."""
    inventory = an_inventory(a_node("n1", gpus=1))
    for name, priority, minutes in (("young", 50, 0), ("old", 50, 9), ("urgent", 75, 0)):
        gang = a_gang(name, priority=priority, created=NOW - timedelta(minutes=minutes))
        put_gang(inventory, gang, [a_pod(name, gang=name, gpus=1)])
    assert set(placements(a_scheduler(inventory))) == {"urgent"}

    inventory.remove_gang(a_gang("urgent").key)
    assert set(placements(a_scheduler(inventory))) == {"old"}


def test_a_gang_of_groups_needs_every_group() -> None:
    """Leader and workers are placed together or not at all."""
    root = GroupSet("", (PodSet("leader", 1), PodSet("worker", 2)))
    pods = [a_pod("l", gang="job", pod_set="leader", gpus=1)]
    pods += [a_pod(f"w{number}", gang="job", pod_set="worker", gpus=1) for number in range(2)]
    for gpus, expected in ((2, 0), (3, 3)):
        inventory = an_inventory(a_node("n1", gpus=gpus))
        put_gang(inventory, a_gang("job", root=root), pods)
        assert len(placements(a_scheduler(inventory))) == expected


def test_a_job_that_lacks_pods_is_not_tried() -> None:
    """A gang whose pods have not all been created waits, and says how many are missing."""
    inventory = an_inventory(a_node("n1"))
    put_gang(inventory, a_gang("job", minimum=3), [a_pod("only", gang="job", gpus=1)])
    result = a_scheduler(inventory).run_cycle()

    assert not result.binds
    assert "default has 1 of 3 pods" in result.unschedulable[0].message


def test_a_pod_that_terminates_is_told_as_one_that_is_missing() -> None:
    """A gang whose pod is on its way out has too few, and says so: it waits for the pod that follows."""
    inventory = an_inventory(a_node("n1"))
    leaves = a_pod("leaves", gang="job", gpus=1, node="n1", terminating=True)
    put_gang(inventory, a_gang("job", minimum=3), [leaves, *(a_pod(f"p{n}", gang="job", gpus=1) for n in range(2))])
    (refused,) = a_scheduler(inventory).run_cycle().unschedulable

    assert "default has 2 of 3 pods" in refused.message


def test_a_queue_that_does_not_exist_is_named() -> None:
    """A job of an unknown queue waits with that reason; so does one in a queue that has children."""
    inventory = an_inventory(a_node("n1"))
    inventory.put_queue(QueueInfo(name="parent"))
    inventory.put_queue(QueueInfo(name="child", parent="parent"))
    for queue in ("ghost", "parent"):
        put_gang(inventory, a_gang(queue, queue=queue), [a_pod(queue, gang=queue)])
    result = a_scheduler(inventory).run_cycle()
    messages = {each.gang.name: each.errors[0] for each in result.unschedulable}

    assert messages["ghost"].reason == "QueueDoesNotExist"
    assert "has child queues" in messages["parent"].message


def test_a_queue_keeps_its_limit() -> None:
    """What a queue may hold at most is never exceeded, though there is room."""
    inventory = an_inventory(a_node("n1", gpus=8))
    inventory.put_queue(QueueInfo(name=QUEUE, limit=Amounts(UNLIMITED, UNLIMITED, 2 * GPU)))
    put_job(inventory, "a", 2)
    put_job(inventory, "b", 1)
    result = a_scheduler(inventory).run_cycle()

    assert len(result.binds) == 2
    assert result.unschedulable[0].errors[0].reason == "OverLimit"


def test_two_halves_share_a_device() -> None:
    """Fractions are packed onto one GPU and leave the others whole."""
    inventory = an_inventory(a_node("n1", gpus=2), a_node("n2", gpus=2))
    half = {"gpu-fraction": "0.5"}
    pods = [a_pod(f"p{number}", gang="job", annotations=half) for number in range(2)]
    put_gang(inventory, a_gang("job", minimum=2), pods)
    result = a_scheduler(inventory).run_cycle()

    assert {bind.node for bind in result.binds} == {"n1"}
    assert len({bind.gpu_groups for bind in result.binds}) == 1


def test_a_share_of_several_devices_takes_distinct_ones() -> None:
    """Asking for half of two devices opens, or joins, two of them."""
    inventory = an_inventory(a_node("n1", gpus=2))
    several = {"gpu-fraction": "0.5", "gpu-fraction-num-devices": "2"}
    for name in ("a", "b"):
        put_gang(inventory, a_gang(name), [a_pod(name, gang=name, annotations=several)])
    result = a_scheduler(inventory).run_cycle()
    first, second = (set(bind.gpu_groups) for bind in result.binds)

    assert len(first) == 2
    assert first == second


def test_memory_requests_depend_on_the_device() -> None:
    """A pod that asks for GPU memory only goes where a device has that much, and the size is known."""
    sizes = {"a-unknown": {}, "b-small": {"nvidia.com/gpu.memory": "8000"}, "c": {"nvidia.com/gpu.memory": "40000"}}
    inventory = an_inventory(*(a_node(name, gpus=1, labels=labels) for name, labels in sizes.items()))
    put_gang(inventory, a_gang("job"), [a_pod("p", gang="job", annotations={"gpu-memory": "20000"})])

    assert placements(a_scheduler(inventory)) == {"p": "c"}


def test_mig_instances_go_where_they_are() -> None:
    """A MIG request needs a node that offers the profile."""
    node = a_node("b-mig", gpus=0, labels={"nvidia.com/mig.strategy": "mixed"})
    offered = {**node.status.allocatable, "nvidia.com/mig-1g.5gb": "2"}
    inventory = an_inventory(a_node("a"))
    inventory.apply(type(node)(metadata=node.metadata, status=type(node.status)(allocatable=offered)))
    pod = a_pod("p", gang="job")
    container = pod.spec.containers[0]
    asking = type(container)(name="main", resources=type(container.resources)(requests={"nvidia.com/mig-1g.5gb": "1"}))
    put_gang(inventory, a_gang("job"), [a_pod("p", gang="job", init_containers=(asking,))])

    assert placements(a_scheduler(inventory)) == {"p": "b-mig"}


def test_the_nominated_node_wins() -> None:
    """A pod that was promised a node by preemption goes there, though another is fuller."""
    inventory = an_inventory(a_node("a-small", gpus=1), a_node("b-large", gpus=8))
    pod = a_pod("p", gang="job", gpus=1)
    nominated = type(pod)(
        metadata=pod.metadata, spec=pod.spec, status=type(pod.status)(phase="Pending", nominated_node_name="b-large")
    )
    put_gang(inventory, a_gang("job"), [nominated])

    assert placements(a_scheduler(inventory)) == {"p": "b-large"}


def test_pods_of_other_schedulers_only_take_room() -> None:
    """A pod that names another scheduler is not placed, and what it holds is not given away."""
    inventory = an_inventory(a_node("n1", gpus=1))
    foreign = a_pod("foreign", gpus=1, node="n1")
    spec = type(foreign.spec)(scheduler_name="default-scheduler", node_name="n1", containers=foreign.spec.containers)
    inventory.apply(type(foreign)(metadata=foreign.metadata, spec=spec, status=foreign.status))
    put_job(inventory, "job", 1)

    assert placements(a_scheduler(inventory)) == {}


class Attempts(Plugin):
    """Notes which jobs are tried."""

    name = "attempts"
    treats_alike = True
    tried: ClassVar[list[str]] = []

    def on_session_open(self, session: Session) -> None:
        session.add_pre_job_allocation_fn(lambda job: self.tried.append(job.name))


def test_identical_refused_jobs_share_one_verdict() -> None:
    """The second job of the same shape is refused without being tried, with the same reason."""
    inventory = an_inventory(a_node("n1", gpus=1))
    put_job(inventory, "a", 2)
    put_job(inventory, "b", 2)
    scheduler = a_scheduler(inventory, Attempts, config=SchedulerConfig(actions=("allocate",)))
    session = scheduler.open_session()
    scheduler.run_actions(session)

    assert Attempts.tried == ["a"]
    assert [[error.reason for error in errors] for errors in session.fit_errors.values()] == [
        ["PodSchedulingErrors"]
    ] * 2
    assert len(session.fit_errors) == 2


def test_bare_pods_are_jobs_of_one() -> None:
    """A pod without any group is scheduled by itself, in the queue its label names."""
    inventory = an_inventory(a_node("n1"))
    inventory.apply(a_pod("solo", gpus=1, labels={KAI_QUEUE: "research"}))

    assert placements(a_scheduler(inventory)) == {"solo": "n1"}


def test_decided_pods_are_binding_in_the_session() -> None:
    """After the action, statuses and node views show what was decided."""
    inventory = an_inventory(a_node("n1", gpus=2))
    put_job(inventory, "job", 1)
    scheduler = a_scheduler(inventory)
    session = scheduler.open_session()
    scheduler.run_actions(session)

    assert statuses(session) == {"job-0": PodStatus.BINDING.value}
    assert session.node("n1").idle_gpus == 1
    assert session.node("n1").gpu_utilization() == pytest.approx(0.5)
    assert [record.name for record in session.node("n1").pods] == ["job-0"]
    assert session.started == [a_gang("job").key]
    assert session.binds[0].pod.namespace == NAMESPACE
