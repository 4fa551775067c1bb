"""What a plugin writes to stays its own: other gangs are placed, nothing is bound that does not fit."""

import pickle
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest
from structlog.testing import capture_logs

from spinney.api.struct import to_json
from spinney.cluster.dra.book import ClaimBook
from spinney.scheduler import Event, EventHandler, NodeInfo, Plugin, PodGroupInfo, PodInfo, Session
from spinney.scheduler.intake.inventory import Inventory
from spinney.scheduler.process.commit import Changes, assume_gang, by_gang
from tests.scheduler.building import a_gang, a_node, a_pod, a_scheduler, an_inventory, put_gang, put_job


def a_cluster() -> Inventory:
    """Return a full node, and a gang with room on another, where a small one runs; one more has none."""
    inventory = an_inventory(a_node("free", gpus=1), a_node("full", gpus=1))
    put_gang(inventory, a_gang("small"), [a_pod("small-0", gang="small", node="free")])
    put_gang(inventory, a_gang("running", preemptible=False), [a_pod("running-0", gang="running", gpus=1, node="full")])
    for name in ("bad", "good"):
        put_job(inventory, name, 1)
    return inventory


class Relabels(Plugin):
    """Writes to the labels of pods and nodes it is asked about."""

    name = "relabels"

    def on_session_open(self, session: Session) -> None:
        """Register the predicate."""
        session.add_predicate_fn(self._write)

    def _write(self, task: PodInfo, job: PodGroupInfo, node: NodeInfo) -> None:
        if job.name == "bad":
            node.labels["pool"] = task.labels["seen"] = "yes"  # type: ignore[index]


def test_labels_cannot_be_written_to() -> None:
    """Trying to is an error of the plugin; the gang it was asked about waits, and the labels are as they were."""
    inventory = a_cluster()
    with capture_logs():
        result = a_scheduler(inventory, Relabels).run_cycle()

    assert [bind.gang.name for bind in result.binds] == ["good"]
    assert "plugin relabels" in next(each.message for each in result.unschedulable if each.gang.name == "bad")
    assert all(not dict(record.labels) for record in inventory.cluster.pods())


@pytest.mark.parametrize(
    "write",
    [
        lambda task, _: task.pod.metadata.labels.update(seen="yes"),
        lambda task, _: task.pod.metadata.annotations.clear(),
        lambda task, _: task.pod.spec.node_selector.update(pool="a"),
        lambda task, _: task.pod.spec.containers[0].resources.requests.update(cpu="0"),
        lambda task, _: task.request.requests.fill(0),
        lambda task, _: task.request.amounts.fill(0),
        lambda task, _: task.request.asked.clear(),
        lambda task, _: task.request.constraints.node_selector.update(pool="a"),
        lambda _, node: node.node.projection.status.allocatable.update(cpu="0"),
        lambda _, node: next(iter(node.pods)).labels.update(seen="yes"),
        lambda _, node: next(iter(node.pods)).annotations.clear(),
        lambda _, node: next(iter(node.pods)).pod.metadata.labels.update(seen="yes"),
        lambda _, node: setattr(next(iter(node.pods)), "uid", ""),
        lambda _, node: next(iter(node.pods)).request.requests.fill(0),
        lambda _, node: node.shared_gpus.clear(),
    ],
)
def test_the_objects_of_pods_and_nodes_cannot_be_written_to(write: Callable[[Any, Any], None]) -> None:
    """Neither can their mappings, at any depth, nor what the pods on a node ask for: they are the cluster's own."""

    class Writes(Plugin):
        name = "writes"

        def on_session_open(self, session: Session) -> None:
            session.add_predicate_fn(lambda task, job, node: write(task, node) if job.name == "bad" else None)

    inventory = a_cluster()
    before = {record.key: to_json(record.pod) for record in inventory.cluster.pods()}
    with capture_logs():
        result = a_scheduler(inventory, Writes).run_cycle()

    assert [bind.gang.name for bind in result.binds] == ["good"]
    assert "plugin writes" in next(each.message for each in result.unschedulable if each.gang.name == "bad")
    assert {record.key: to_json(record.pod) for record in inventory.cluster.pods()} == before


def test_the_object_of_a_pod_can_be_encoded_and_copied() -> None:
    """A plugin may log it, or send it on; a copy is the plugin's own, and can be written to."""
    seen: list[Any] = []

    class Copies(Plugin):
        name = "copies"

        def on_session_open(self, session: Session) -> None:
            session.add_predicate_fn(self.take)

        def take(self, task: PodInfo, job: PodGroupInfo, node: NodeInfo) -> None:
            mine = deepcopy(task.pod)
            mine.metadata.labels["seen"] = "yes"  # type: ignore[index]
            seen.append((to_json(task.pod)["metadata"]["name"], pickle.loads(pickle.dumps(task.pod)) == task.pod))

    inventory = a_cluster()
    result = a_scheduler(inventory, Copies).run_cycle()

    assert [bind.gang.name for bind in result.binds] == ["bad"]
    assert ("bad-0", True) in seen
    assert all(not dict(record.labels) for record in inventory.cluster.pods())


class Belittles(Plugin):
    """Has a pod ask for nothing."""

    name = "belittles"

    def on_session_open(self, session: Session) -> None:
        """Register the function."""
        session.add_pre_job_allocation_fn(self._write)

    def _write(self, job: PodGroupInfo) -> None:
        if job.name == "bad":
            for task in job.tasks:
                task.request = replace(task.request, number=-1, requests=task.request.requests * 0)


def test_the_pods_on_a_node_are_shown_as_they_are() -> None:
    """A plugin sees who is there, those that the cycle has placed included, and can tell them apart."""
    seen: dict[str, tuple[str, ...]] = {}

    class Looks(Plugin):
        name = "looks"

        def on_session_open(self, session: Session) -> None:
            session.add_event_handler(EventHandler(allocate=lambda event: self.look(session, event)))

        def look(self, session: Session, event: Event) -> None:
            pods = session.node(event.task.node_name).pods
            assert set(pods) == set(session.node(event.task.node_name).pods)
            assert all(pod.pod.metadata.name == pod.name and pod.labels == pod.pod.metadata.labels for pod in pods)
            seen[event.task.node_name] = tuple(sorted(pod.name for pod in pods))

    a_scheduler(a_cluster(), Looks).run_cycle()

    assert seen == {"free": ("bad-0", "small-0")}


def test_what_is_written_on_a_task_overbooks_no_node() -> None:
    """What was decided is checked against the cluster, which no plugin can write to, before it is bound."""
    inventory = a_cluster()
    binds = by_gang(a_scheduler(inventory, Belittles).run_cycle().binds)
    cluster = inventory.cluster

    problems = {
        gang.name: assume_gang(cluster, ClaimBook(), together, changed=Changes((), pods=False))
        for gang, together in binds.items()
    }

    assert problems == {"bad": "the node has no room any more", "good": None}
    assert (cluster.table.idle[cluster.table.alive] >= 0).all()
