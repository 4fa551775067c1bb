"""Kubernetes' own gangs, in the three generations of their API, served by the coscheduler as default-scheduler."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from spinney.api import workload_v1alpha1, workload_v1alpha2, workload_v1beta1
from spinney.api.conditions import find_condition
from spinney.api.core import NAMESPACE, PodSchedulingGroup, PodWorkloadReference
from spinney.api.meta import ObjectMeta
from spinney.api.struct import JSON
from spinney.api.workload_v1alpha1 import GangPolicy
from spinney.api.workload_v1alpha2 import SchedulingPolicy
from spinney.kube.cache import Change
from spinney.kube.client import Client
from spinney.kube.crds import install_crds
from spinney.kube.keys import Key
from spinney.runtime import Runtime
from spinney.server import ApiServer, ServerOptions
from spinney.sim.embedded.transport import InProcessTransport
from spinney.testing.controlplane import ControlPlane
from tests.conftest import real_cluster

from .bench import Bench
from .bench import a_node as a_bench_node
from .bench import a_pod as a_bench_pod
from .world import PRIORITY_CLASS, World, a_node, a_pod, a_world, followed

RACK = "example.com/rack"
embedded = pytest.mark.parametrize("cluster_name", ["embedded"], indirect=True)


def a_native_pod(name: str, group: str, *, cpu: str = "1", **spec: Any) -> JSON:
    return a_pod(name, cpu=cpu, scheduler="default-scheduler", schedulingGroup={"podGroupName": group}, **spec)


def a_native_group(name: str, minimum: int | None, *, topology: str = "") -> JSON:
    policy: JSON = {"gang": {"minCount": minimum}} if minimum is not None else {"basic": {}}
    constraints = {"schedulingConstraints": {"topology": [{"key": topology}]}} if topology else {}
    return {"metadata": {"name": name}, "spec": {"schedulingPolicy": policy, **constraints}}


@asynccontextmanager
async def an_older_world(minor: str) -> AsyncIterator[World]:
    """A world on an embedded server that plays an older Kubernetes."""
    runtime = Runtime.virtual(seed=1)
    server = ApiServer(runtime, ServerOptions(kubernetes_version=minor))
    async with server.running():
        client = Client(InProcessTransport(server), runtime)
        await client.create(NAMESPACE, {"metadata": {"name": "test"}})
        await install_crds(client)
        async with followed(client, runtime, "test") as world, world.scheduling():
            yield world


async def condition(world: World, name: str) -> tuple[str, str]:
    """Return status and message of a 1.37 group's condition."""
    group = await world.client.get(workload_v1beta1.POD_GROUP, name, world.namespace, type=workload_v1beta1.PodGroup)
    found = find_condition(group.status.conditions, workload_v1beta1.INITIALLY_SCHEDULED)
    return (found.status, found.message) if found is not None else ("", "")


async def until_condition(world: World, name: str, status: str, said: str = "") -> str:
    """Wait until the condition of a group is so, for a reason that has this text, and return the reason.

    A group whose pods take long to be created first says that it is not complete.
    """
    async with asyncio.timeout(60):
        while True:
            found, message = await condition(world, name)
            if found == status and said in message:
                return message
            await asyncio.sleep(0.2)  # of a kind nobody here watches


async def test_a_native_gang_waits_for_room_and_is_then_scheduled_whole(world: World) -> None:
    """A 1.37 gang that does not fit says so in its condition; with room it is bound whole and says that, for good."""
    await world.nodes(a_node("n1", cpu="2"))
    await world.client.create(workload_v1beta1.POD_GROUP, a_native_group("gang", 3), world.namespace)
    await world.create(*(a_native_pod(f"gang-{number}", "gang") for number in range(3)))
    await until_condition(world, "gang", "False", "gets rejected")
    assert world.bound() == []

    await world.nodes(a_node("n2", cpu="2"))
    await world.until(lambda: len(world.bound("gang")) == 3)
    await until_condition(world, "gang", "True")


@embedded
async def test_pods_wait_for_their_group(world: World) -> None:
    """Pods that name a group which is not there wait for it; a basic group has no quorum."""
    await world.nodes(a_node("n1", cpu="1"))
    await world.create(*(a_native_pod(f"basic-{number}", "basic") for number in range(2)))
    await world.until(lambda: "pod group test/basic not found" in world.message("basic-0"))
    await world.client.create(workload_v1beta1.POD_GROUP, a_native_group("basic", None), world.namespace)
    await world.until(lambda: len(world.bound("basic")) == 1)


@embedded
async def test_surplus_members_follow(world: World) -> None:
    """At least minCount members are bound together; one beyond it waits for room without holding anybody up."""
    await world.nodes(a_node("n1", cpu="3"))
    await world.client.create(workload_v1beta1.POD_GROUP, a_native_group("gang", 3), world.namespace)
    await world.create(*(a_native_pod(f"gang-{number}", "gang") for number in range(4)))
    await world.until(lambda: len(world.bound("gang")) == 3)
    await world.nodes(a_node("n2", cpu="1"))
    await world.until(lambda: len(world.bound("gang")) == 4)


@embedded
async def test_a_smaller_quorum_unblocks(world: World) -> None:
    """When minCount is lowered to what fits, the gang is scheduled; raising it again changes nothing."""
    await world.nodes(a_node("n1", cpu="2"))
    await world.client.create(workload_v1beta1.POD_GROUP, a_native_group("gang", 3), world.namespace)
    await world.create(*(a_native_pod(f"gang-{number}", "gang") for number in range(3)))
    await until_condition(world, "gang", "False")
    patch = {"spec": {"schedulingPolicy": {"gang": {"minCount": 2}}}}
    await world.client.patch(workload_v1beta1.POD_GROUP, "gang", patch, world.namespace)
    await world.until(lambda: len(world.bound("gang")) == 2, seconds=5)


@embedded
async def test_all_members_lie_in_one_domain(world: World) -> None:
    """A gang with a topology key goes to one domain: the tightest that holds it, not one it would be split over."""
    for rack, cpu in (("a", "2"), ("b", "6"), ("c", "3")):
        await world.nodes(a_node(f"n-{rack}", cpu=cpu, labels={RACK: rack}))
    await world.nodes(a_node("unlabelled", cpu="9"))
    group = a_native_group("gang", 3, topology=RACK)
    await world.client.create(workload_v1beta1.POD_GROUP, group, world.namespace)
    await world.create(*(a_native_pod(f"gang-{number}", "gang") for number in range(3)))
    await world.until(lambda: len(world.bound("gang")) == 3)
    assert {world.node_of(name) for name in world.bound("gang")} == {"n-c"}


@embedded
async def test_a_gang_that_fits_no_domain_waits(world: World) -> None:
    """A gang that fits the cluster but no single domain is not split; a domain that grows takes it."""
    for number in range(3):
        await world.nodes(a_node(f"n{number}", cpu="2", labels={RACK: str(number)}))
    group = a_native_group("gang", 3, topology=RACK)
    await world.client.create(workload_v1beta1.POD_GROUP, group, world.namespace)
    await world.create(*(a_native_pod(f"gang-{number}", "gang") for number in range(3)))
    await until_condition(world, "gang", "False")
    await world.settle(30)
    assert world.bound() == []
    await world.nodes(a_node("n3", cpu="2", labels={RACK: "1"}))
    await world.until(lambda: len(world.bound("gang")) == 3)
    assert {world.node_of(name) for name in world.bound("gang")} == {"n1", "n3"}


@embedded
async def test_kubernetes_1_36(cluster_name: str) -> None:
    """A v1alpha2 gang is bound whole and says PodGroupScheduled."""
    async with an_older_world("1.36") as world:
        await world.nodes(a_node("n1", cpu="2"))
        await world.client.create(workload_v1alpha2.POD_GROUP, a_native_group("gang", 2), "test")
        await world.create(*(a_native_pod(f"gang-{number}", "gang") for number in range(2)))
        await world.until(lambda: len(world.bound("gang")) == 2)
        await world.settle(1)
        group = await world.client.get(workload_v1alpha2.POD_GROUP, "gang", "test", type=workload_v1alpha2.PodGroup)
        found = find_condition(group.status.conditions, workload_v1alpha2.SCHEDULED)
        assert found is not None
        assert found.status == "True"


@embedded
async def test_kubernetes_1_35(bench: Bench) -> None:
    """Each replica key of a v1alpha1 Workload's group is a gang of its own; pods wait for the Workload."""
    bench.put(a_bench_node("n1", cpu=3))
    for key in ("a", "b"):
        reference = PodWorkloadReference(name="work", pod_group="workers", pod_group_replica_key=key)
        bench.put(*(a_bench_pod(f"{key}-{number}", workload_ref=reference) for number in range(2)))
    await bench.run(seconds=5)
    assert bench.binds == {}

    policy = workload_v1alpha1.PodGroupPolicy(gang=workload_v1alpha1.GangPolicy(min_count=2))
    group = workload_v1alpha1.PodGroup(name="workers", policy=policy)
    workload = workload_v1alpha1.Workload(
        metadata=ObjectMeta(name="work", namespace="ns"), spec=workload_v1alpha1.WorkloadSpec(pod_groups=(group,))
    )
    bench.intake.take_in(Change(Key("ns", "work"), None, workload, "1"))
    await bench.run(seconds=5)
    assert sorted(bench.binds) == ["a-0", "a-1"]
    bench.put(a_bench_node("n2", cpu=1))
    await bench.run(seconds=15)
    assert sorted(bench.binds) == ["a-0", "a-1", "b-0", "b-1"]


@embedded
async def test_kubernetes_1_35_on_a_server(cluster_name: str) -> None:
    """On a server of 1.35 pods that name a Workload wait for it, and each replica key is bound whole or not at all."""
    async with an_older_world("1.35") as world:
        await world.nodes(a_node("n1", cpu="3"))
        for key in ("a", "b"):
            reference = {"name": "work", "podGroup": "workers", "podGroupReplicaKey": key}
            pods = (
                a_pod(f"{key}-{number}", scheduler="default-scheduler", workloadRef=reference) for number in range(2)
            )
            await world.create(*pods)
        await world.settle(10)
        assert world.bound() == []
        policy = {"gang": {"minCount": 2}}
        workload = {"metadata": {"name": "work"}, "spec": {"podGroups": [{"name": "workers", "policy": policy}]}}
        await world.client.create(workload_v1alpha1.WORKLOAD, workload, "test")
        await world.until(lambda: len(world.bound()) == 2)
        await world.settle(30)
        assert len({name.split("-")[0] for name in world.bound()}) == 1
        await world.nodes(a_node("n2", cpu="1"))
        await world.until(lambda: len(world.bound()) == 4)


@asynccontextmanager
async def a_world_on(plane: ControlPlane) -> AsyncIterator[World]:
    """A world with its scheduler in a fresh namespace of a real control plane."""
    clusters = real_cluster(plane)
    try:
        async with a_world(await anext(clusters)) as world, world.scheduling():
            yield world
    finally:
        await anext(clusters, None)


@pytest.mark.real
async def test_a_real_1_36(controlplane_136: ControlPlane) -> None:
    """On a real server of 1.36 a gang waits for its last member, is bound whole, and its condition says so."""
    async with a_world_on(controlplane_136) as world:
        await world.nodes(a_node("n1", cpu="2"))
        await world.client.create(workload_v1alpha2.POD_GROUP, a_native_group("gang", 2), world.namespace)
        await world.create(a_native_pod("gang-0", "gang"))
        await world.settle()
        assert world.bound() == []
        await world.create(a_native_pod("gang-1", "gang"))
        await world.until(lambda: len(world.bound("gang")) == 2)
        async for event in world.client.watch(
            workload_v1alpha2.POD_GROUP, world.namespace, type=workload_v1alpha2.PodGroup
        ):
            found = find_condition(event.object.status.conditions, workload_v1alpha2.SCHEDULED)
            if found is not None and found.status == "True":
                break


@pytest.mark.real
async def test_a_real_1_35(controlplane_135: ControlPlane) -> None:
    """On a real server of 1.35 the members of a Workload's group are bound together, once there are enough."""
    async with a_world_on(controlplane_135) as world:
        await world.nodes(a_node("n1", cpu="2"))
        policy = {"gang": {"minCount": 2}}
        workload = {"metadata": {"name": "work"}, "spec": {"podGroups": [{"name": "workers", "policy": policy}]}}
        await world.client.create(workload_v1alpha1.WORKLOAD, workload, world.namespace)
        reference = {"name": "work", "podGroup": "workers"}
        await world.create(a_pod("work-0", scheduler="default-scheduler", workloadRef=reference))
        await world.settle()
        assert world.bound() == []
        await world.create(a_pod("work-1", scheduler="default-scheduler", workloadRef=reference))
        await world.until(lambda: len(world.bound("work")) == 2)


@embedded
@pytest.mark.parametrize(("whole", "minimum", "victims"), [(True, 1, 2), (True, 2, 2), (False, 1, 1), (False, 2, 2)])
async def test_a_group_goes_down_to_its_minimum_or_goes_whole(
    bench: Bench, whole: bool, minimum: int, victims: int
) -> None:
    """Preemption takes all pods of a group that says so or would fall below its minimum, and of others one."""
    mode = workload_v1beta1.DisruptionMode(
        all=workload_v1beta1.DisruptAll() if whole else None,
        single=None if whole else workload_v1beta1.DisruptSingle(),
    )
    group = workload_v1beta1.PodGroup(
        metadata=ObjectMeta(name="gang", namespace="ns"),
        spec=workload_v1beta1.PodGroupSpec(
            scheduling_policy=SchedulingPolicy(gang=GangPolicy(min_count=minimum)), disruption_mode=mode
        ),
    )
    bench.intake.take_in(Change(Key("ns", "gang"), None, group, "1"))
    bench.put(a_bench_node("n1", cpu=1), a_bench_node("n2", cpu=1), a_bench_node("n3", cpu=1))
    membership = PodSchedulingGroup(pod_group_name="gang")
    bench.put(*(a_bench_pod(f"gang-{n}", node=f"n{n}", scheduling_group=membership) for n in (1, 2)))
    bench.put(a_bench_pod("other", node="n3", priority=5), a_bench_pod("high", priority=9))
    await bench.run()
    taken = sorted(victim for victim, _ in bench.preempted)
    assert taken == ["gang-1", "gang-2"][:victims]


@embedded
@pytest.mark.parametrize(("policy", "taken"), [(None, ["low"]), ("Never", [])])
async def test_a_group_may_say_that_it_never_preempts(bench: Bench, policy: str | None, taken: list[str]) -> None:
    """The group's own preemptionPolicy counts, though its pods do not say it."""
    group = workload_v1beta1.PodGroup(
        metadata=ObjectMeta(name="gang", namespace="ns"),
        spec=workload_v1beta1.PodGroupSpec(
            scheduling_policy=SchedulingPolicy(gang=GangPolicy(min_count=1)), priority=9, preemption_policy=policy
        ),
    )
    bench.intake.take_in(Change(Key("ns", "gang"), None, group, "1"))
    bench.put(a_bench_node("n1", cpu=1), a_bench_pod("low", node="n1"))
    membership = PodSchedulingGroup(pod_group_name="gang")
    bench.put(a_bench_pod("high", priority=9, scheduling_group=membership))
    await bench.run()
    assert [victim for victim, _ in bench.preempted] == taken


@embedded
async def test_the_priority_class_of_a_group_may_say_that_it_never_preempts(world: World) -> None:
    """The coscheduler reads priority classes: a group that names such a one takes nobody's place."""
    await world.nodes(a_node("n1", cpu="1"))
    await world.priority("high", 1000)
    polite = {"metadata": {"name": "polite"}, "value": 1000, "preemptionPolicy": "Never"}
    await world.client.create(PRIORITY_CLASS, polite)
    await world.create(a_pod("low"))
    await world.until(lambda: world.bound() == ["low"])
    group = a_native_group("gang", 1)
    group["spec"]["priorityClassName"] = "polite"
    await world.client.create(workload_v1beta1.POD_GROUP, group, world.namespace)
    await world.create(a_native_pod("gang-0", "gang", priorityClassName="high"))
    await world.until(lambda: "preemptionPolicy=Never" in world.message("gang-0"))
    assert world.bound() == ["low"]


@embedded
async def test_priorities_of_pods_and_group_must_agree(bench: Bench) -> None:
    """A pod whose priority is not its native group's is refused, with both named."""
    policy = SchedulingPolicy(gang=GangPolicy(min_count=1))
    group = workload_v1beta1.PodGroup(
        metadata=ObjectMeta(name="gang", namespace="ns"),
        spec=workload_v1beta1.PodGroupSpec(scheduling_policy=policy, priority=7),
    )
    bench.put(a_bench_node("n1"))
    bench.intake.take_in(Change(Key("ns", "gang"), None, group, "1"))
    membership = PodSchedulingGroup(pod_group_name="gang")
    bench.put(a_bench_pod("wrong", scheduling_group=membership, priority=3))
    bench.put(a_bench_pod("right", scheduling_group=membership, priority=7))
    await bench.run()
    assert list(bench.binds) == ["right"]
    assert "priority is 3 and its pod group's 7" in bench.refused["wrong"].status.message
