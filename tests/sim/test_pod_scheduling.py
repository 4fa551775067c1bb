"""Pods of kube-scheduler and of coscheduling are simulated by the coscheduler itself: preemption and composites too."""

from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest

from spinney.api.core import POD, Pod
from spinney.api.coscheduling import POD_GROUP
from spinney.api.labels import CHECKPOINT_GRACE, MIN_RUNTIME
from spinney.api.scheduling import PRIORITY_CLASS
from spinney.api.struct import JSON
from spinney.api.time import timestamp
from spinney.cluster.pods import PodKey
from spinney.kube.client import Client
from spinney.kube.errors import AlreadyExists
from spinney.runtime import Runtime, run_virtual
from spinney.sim.embedded.shapes import gpu_cluster
from spinney.sim.embedded.stack import EmbeddedCluster, StackOptions
from spinney.sim.snapshots.expanding import ExpansionContext, expand
from spinney.sim.snapshots.snapshot import take
from spinney.sim.whatif.outcomes import Outcome
from spinney.sim.whatif.simulation import Simulation

from .test_whatif import a_native_group, a_pod, members, simulate


def a_composite(minimum: int) -> JSON:
    """Return a composite that needs so many of its groups."""
    spec = {
        "schedulingPolicy": {"gang": {"minGroupCount": minimum}},
        "workloadRef": {"workloadName": "work", "templateName": "parts"},
    }
    kind = {"apiVersion": "scheduling.k8s.io/v1alpha3", "kind": "CompositePodGroup"}
    return {**kind, "metadata": {"name": "whole"}, "spec": spec}


def a_part(name: str, minimum: int, *, cpu: str) -> list[JSON]:
    """Return a group of a composite with its pods."""
    group = a_native_group(minimum)
    group["metadata"]["name"] = name
    group["spec"]["parentCompositePodGroupName"] = "whole"
    named = {"podGroupName": name}
    return [group, *(a_pod(f"{name}-{number}", cpu=cpu, schedulingGroup=named) for number in range(minimum))]


def test_a_pod_takes_the_place_of_one_of_lower_priority() -> None:
    """Preemption is simulated: the victim goes, says for whom, and the other runs in its place."""
    outcome = simulate(
        "1x0", a_pod("low", cpu="60", priority=1, nodeName="node-000"), a_pod("high", cpu="60", priority=9)
    )

    assert outcome.placed == {PodKey("default", "high"): "node-000"}
    assert [(each.pod.name, each.message) for each in outcome.evictions] == [
        ("low", "preempted by pod default/high of higher priority")
    ]


@pytest.mark.parametrize("scheduler", ["default-scheduler", "spinney-scheduler"])
def test_victims_that_would_be_asked_first_are_named_with_their_time(scheduler: str) -> None:
    """A simulation takes victims away at once, and says how long they would have to checkpoint."""
    low = a_pod("low", cpu="60", priority=1, nodeName="node-000", schedulerName=scheduler)
    low["metadata"]["annotations"] = {CHECKPOINT_GRACE: "5m"}
    outcome = simulate("1x0", low, a_pod("high", cpu="60", priority=90, schedulerName=scheduler))

    assert outcome.placed == {PodKey("default", "high"): "node-000"}
    assert outcome.graces == {PodKey("default", "low"): timedelta(minutes=5)}


def test_a_gang_within_the_runtime_it_asks_for_is_left_alone() -> None:
    """The coscheduler's simulation knows how long pods have run: it takes nobody who has not run long enough."""
    now = datetime.now(UTC)
    for minutes, placed in ((10, False), (30, True)):
        low = a_pod("low", cpu="60", priority=1, nodeName="node-000")
        low["metadata"]["annotations"] = {MIN_RUNTIME: "20m"}
        since = timestamp(now - timedelta(minutes=minutes))
        bound = {"type": "PodScheduled", "status": "True", "lastTransitionTime": since}
        low["status"] = {"phase": "Running", "conditions": [bound]}
        outcome = simulate("1x0", low, a_pod("high", cpu="60", priority=90))
        assert (PodKey("default", "high") in outcome.placed) == placed


def test_a_group_takes_the_places_it_needs() -> None:
    """A group of higher priority makes room for all of its pods, or for none."""
    low = [a_pod(f"low-{node}", cpu="60", priority=1, nodeName=f"node-00{node}") for node in range(2)]
    group = a_native_group(2)
    high = [{**each, "spec": {**each["spec"], "priority": 9}} for each in members(2, cpu="60")]
    outcome = simulate("2x0", *low, group, *high)
    assert {each.pod.name for each in outcome.evictions} == {"low-0", "low-1"}
    assert sorted(outcome.placed.values()) == ["node-000", "node-001"]

    larger = a_native_group(3)
    high = [{**each, "spec": {**each["spec"], "priority": 9}} for each in members(3, cpu="60")]
    outcome = simulate("2x0", *low, larger, *high)
    assert not outcome.evictions
    assert not outcome.placed


@pytest.mark.parametrize(("needed", "placed"), [(2, set()), (1, {"small-0"})])
def test_a_composite_is_placed_as_far_as_it_must_be(needed: int, placed: set[str]) -> None:
    """A composite of which both groups are needed waits whole; one that needs one places the one that fits."""
    objects = [a_composite(needed), *a_part("small", 1, cpu="60"), *a_part("large", 2, cpu="90")]
    outcome = simulate("1x0", *objects)

    assert {pod.name for pod in outcome.placed} == placed
    assert {each.gang.source for each in outcome.waiting} == {"composite"}


# -- the cluster does what was foretold --------------------------------------------------------------------------------


def a_gang_of_coscheduling(name: str, size: int, *, cpu: str, priority: int = 0) -> list[JSON]:
    """Return a PodGroup of scheduler-plugins with its pods."""
    group = {
        "apiVersion": POD_GROUP.api_version,
        "kind": "PodGroup",
        "metadata": {"name": name},
        "spec": {"minMember": size},
    }
    label = {"scheduling.x-k8s.io/pod-group": name}
    pods = [a_pod(f"{name}-{number}", cpu=cpu, labels=label, priority=priority) for number in range(size)]
    return [group, *pods]


async def foretold(client: Client, objects: list[JSON]) -> tuple[Outcome, dict[str, str]]:
    """Simulate objects on the cluster as it is; return what happens, and where each of the pods goes."""
    before = await take(client)
    added = expand(objects, ExpansionContext.of(before, client.runtime.clock.now()))
    outcome = Simulation(before.with_objects(added), runtime=client.runtime).run()
    return outcome, {pod.name: node for pod, node in outcome.placed.items()}


async def done(client: Client, objects: list[JSON]) -> dict[str, str]:
    """Create objects for real; return where each of their pods is a minute later."""
    for each in objects:
        placed = {**each, "metadata": {**each["metadata"], "namespace": "default"}}
        if each["kind"] == "Pod":
            await client.create(POD, {**placed, "spec": await as_admitted(client, each["spec"])})
        else:
            await client.create(POD_GROUP, placed)
    await client.runtime.clock.sleep(60)
    names = {each["metadata"]["name"] for each in objects}
    found = (await client.list(POD, "default", type=Pod)).items
    return {pod.metadata.name: pod.spec.node_name for pod in found if pod.metadata.name in names and pod.spec.node_name}


async def as_admitted(client: Client, spec: JSON) -> JSON:
    """Return the spec of a pod as a user must write it, with a class for its priority."""
    containers = [{**each, "image": "app"} for each in spec["containers"]]
    priority = spec.get("priority", 0)
    with suppress(AlreadyExists):
        await client.create(PRIORITY_CLASS, {"metadata": {"name": f"p{priority}"}, "value": priority})
    return {"containers": containers, "priorityClassName": f"p{priority}"}


def test_the_coscheduler_does_what_was_foretold() -> None:
    """Single pods, a group that fits, one that does not and one that preempts go as the simulation said."""
    stories = [
        [a_pod("a", cpu="20"), a_pod("b", cpu="20")],
        a_gang_of_coscheduling("fits", 2, cpu="30"),
        a_gang_of_coscheduling("waits", 3, cpu="90"),
        [a_pod("urgent", cpu="90", priority=100)],
        a_gang_of_coscheduling("pushes", 2, cpu="80", priority=200),
    ]

    async def compare() -> list[tuple[Outcome, dict[str, str], dict[str, str]]]:
        runtime = Runtime.virtual(seed=3)
        cluster = EmbeddedCluster(runtime, StackOptions.whole(gpu_cluster(3, 0)))
        async with cluster.running():
            return [(*await foretold(cluster.client, each), await done(cluster.client, each)) for each in stories]

    compared = run_virtual(compare())
    assert [set(said) for _, said, _ in compared] == [
        {"a", "b"},
        {"fits-0", "fits-1"},
        set(),
        {"urgent"},
        {"pushes-0", "pushes-1"},
    ]
    assert [came for _, _, came in compared] == [said for _, said, _ in compared]
    assert compared[-1][0].evictions
