"""Cycles run when something happened that matters, and at no other time."""

import asyncio

import pytest

from spinney.api.core import NODE, POD
from spinney.api.coscheduling import POD_GROUP as COSCHEDULING_GROUP
from spinney.api.kai import POD_GROUP as KAI_GROUP
from spinney.api.kai import QUEUE
from spinney.api.podgang import POD_GANG, PodGang
from spinney.api.resource_claims import DEVICE_CLASS, RESOURCE_CLAIM, RESOURCE_SLICE
from spinney.api.struct import JSON
from spinney.kube.client import PatchKind
from spinney.kube.crds import install_crds
from spinney.runtime import run_virtual
from spinney.scheduler.process.process import CyclePace
from spinney.scheduler.process.waking import Alarm
from tests.scheduler.process.world import NS, World, given_a_world


@given_a_world
async def test_a_cluster_at_rest_costs_no_cycles(world: World) -> None:
    """Hours without a relevant change run no cycle, though nodes send heartbeats, pods start and one pod waits."""
    await world.add_node("n1")
    await world.add_pod("fits")
    await world.add_pod("too-large", gpus=9)
    async with world.scheduler() as process:
        await world.settle(10)
        assert (await world.places())["fits"] == "n1"
        before = process.cycles

        for _ in range(60):
            await world.settle(60)
            beat = {"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-01-01T00:00:00Z"}
            await world.client.patch(
                NODE, "n1", {"status": {"conditions": [beat]}}, kind=PatchKind.STRATEGIC, subresource="status"
            )
        await world.client.patch(POD, "fits", {"status": {"phase": "Running"}}, NS, subresource="status")
        await world.settle(60)

        assert process.cycles == before


@given_a_world
async def test_pods_that_end_while_nobody_waits_cost_a_cycle_a_second(world: World) -> None:
    """Forty pods that go within four seconds are not worth forty cycles; the room is there for the next pod."""
    for number in range(5):
        await world.add_node(f"n{number}")
    for number in range(40):
        await world.add_pod(f"p{number}")
    async with world.scheduler() as process:
        await world.settle(10)
        before = process.cycles
        for number in range(40):
            await world.client.delete(POD, f"p{number}", NS, grace_period_seconds=0)
            await world.settle(0.1)
        await world.settle(10)
        assert 1 <= process.cycles - before <= 6
        await world.add_pod("large", gpus=8)
        await world.settle(10)
        assert (await world.places())["large"]


@given_a_world
async def test_a_pod_that_waits_gets_the_room_of_one_that_ends_at_once(world: World) -> None:
    """What can wait while nobody does cannot while somebody does, also if both happened in one moment."""
    await world.add_node("n1")
    await world.add_pod("first", gpus=8)
    async with world.scheduler(pace=CyclePace(ends=3600.0)):
        await world.settle(10)
        await world.add_pod("second", gpus=8)
        await world.client.delete(POD, "first", NS, grace_period_seconds=0)
        await world.settle(10)
        assert (await world.places())["second"] == "n1"
        await world.add_pod("third", gpus=8)
        await world.settle(10)
        assert (await world.places())["third"] == ""
        await world.client.delete(POD, "second", NS, grace_period_seconds=0)
        await world.settle(10)
        assert (await world.places())["third"] == "n1"


@given_a_world
async def test_pods_of_a_gang_that_is_short_of_pods_cost_a_cycle_a_second(world: World) -> None:
    """Forty pods that come within four seconds are not worth forty cycles; the last of them starts the gang at once."""
    for number in range(5):
        await world.add_node(f"n{number}")
    await world.add_group("a", 40)
    async with world.scheduler() as process:
        await world.settle(10)
        before = process.cycles
        for number in range(39):
            await world.add_pod(f"a-{number}", gang="a")
            await world.settle(0.1)
        await world.settle(10)
        assert 1 <= process.cycles - before <= 10  # what is said of the group is written, which may wake another
        await world.add_pod("a-39", gang="a")
        await world.settle(0.1)
        assert all((await world.places()).values())


@given_a_world
async def test_a_gang_that_is_short_of_pods_does_not_keep_others_waiting(world: World) -> None:
    """A single pod that comes while a gang is being made is placed at once."""
    await world.add_node("n1")
    await world.add_group("a", 3)
    async with world.scheduler(pace=CyclePace(short=3600.0)):
        await world.settle(10)
        await world.add_pod("a-0", gang="a")
        await world.settle(0.1)
        await world.add_pod("single")
        await world.settle(0.1)
        assert (await world.places()) == {"a-0": "", "single": "n1"}


@given_a_world
async def test_a_gang_that_is_short_of_many_pods_is_counted_the_less_often_the_more_it_has(world: World) -> None:
    """Each pod that is there costs every count, so a hundred seconds with ten pods more see but a few counts."""
    await world.add_node("n1")
    await world.add_group("a", 20)
    async with world.scheduler(pace=CyclePace(short=1.0, short_per_pod=5.0)) as process:
        await world.settle(10)
        before = process.cycles
        for number in range(10):
            await world.add_pod(f"a-{number}", gang="a")
            await world.settle(10)
        assert 1 <= process.cycles - before <= 10  # what is said of the group is written, which may wake another


def test_the_least_patient_decides_when_all_are_counted() -> None:
    """A large gang that can wait does not make a small one wait for it."""

    async def waited() -> float:
        began = asyncio.get_running_loop().time()
        alarm = Alarm()
        alarm.set_patiently(5.0)
        alarm.set_patiently(1.0)
        alarm.set_patiently(9.0)
        await alarm.wait()
        return asyncio.get_running_loop().time() - began

    assert run_virtual(waited()) == pytest.approx(1.0)


@given_a_world
async def test_the_last_gate_of_a_gang_starts_it_at_once(world: World) -> None:
    """Pods that lose their gates one by one wait for the last of them, and for nothing else."""
    await world.add_node("n1")
    await world.add_group("a", 3)
    for number in range(3):
        await world.add_pod(f"a-{number}", gang="a", schedulingGates=[{"name": "later"}])
    async with world.scheduler(pace=CyclePace(short=3600.0)):
        await world.settle(10)
        for number in range(3):
            assert set((await world.places()).values()) == {""}
            await world.client.patch(POD, f"a-{number}", {"spec": {"schedulingGates": None}}, NS)
            await world.settle(0.1)
        assert set((await world.places()).values()) == {"n1"}


@given_a_world
async def test_what_a_gang_is_short_of_is_counted_anew_when_pods_come_and_go(world: World) -> None:
    """The reason of a gang that waits for pods says how many there are, a second after that changed at the latest."""
    await install_crds(world.client)
    await world.add_node("n1")
    groups = [{"name": "w", "podReferences": [], "minReplicas": 4}]
    await world.client.create(POD_GANG, {"metadata": {"name": "a", "namespace": NS}, "spec": {"podgroups": groups}})

    async def come(number: int) -> None:
        labels = {"grove.io/podgang": "a", "grove.io/podclique": "w"}
        container = {"name": "main", "image": "pause"}
        spec = {"schedulerName": "spinney-scheduler", "terminationGracePeriodSeconds": 0, "containers": [container]}
        metadata = {"name": f"a-{number}", "namespace": NS, "labels": labels}
        await world.client.create(POD, {"metadata": metadata, "spec": spec})

    async def said() -> str:
        gang = await world.client.get(POD_GANG, "a", NS, type=PodGang)
        return " ".join(condition.message for condition in gang.status.conditions)

    async with world.scheduler():
        for number in range(3):
            await come(number)
            await world.settle(2)
            assert f"w has {number + 1} of 4 pods" in await said()
        await world.client.delete(POD, "a-2", NS, grace_period_seconds=0)
        await world.settle(2)
        assert "w has 2 of 4 pods" in await said()


@given_a_world
async def test_the_echo_of_our_own_binds_starts_no_cycle(world: World) -> None:
    """A hundred pods that come together are placed by a cycle or two, not by one for each bind that is confirmed."""
    for number in range(20):
        await world.add_node(f"n{number}")
    for number in range(100):
        await world.add_pod(f"p{number}")
    async with world.scheduler() as process:
        await world.settle(30)
        assert all((await world.places()).values())
        assert process.cycles <= 2


def test_cycles_leave_as_much_time_as_they_take() -> None:
    """Pods that come all the time wait as little as the cycles cost, and after a long cycle no longer than a moment."""
    pace = CyclePace(gather=0.005, gather_longest=0.02)
    assert [pace.gathering(last) for last in (0.0, 0.008, 3.0)] == [0.005, 0.008, 0.02]


@given_a_world
async def test_a_gang_that_is_moved_to_another_queue_starts(world: World) -> None:
    """A label names the queue of a PodGang: when it names one that exists, the gang is tried again at once."""
    await install_crds(world.client)
    await world.add_node("n1")
    share = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
    resources = {"gpu": share, "cpu": share, "memory": share}
    await world.client.create(QUEUE, {"metadata": {"name": "team"}, "spec": {"resources": resources}})
    groups = [{"name": "w", "podReferences": [], "minReplicas": 1}]
    await world.client.create(POD_GANG, {"metadata": {"name": "a", "namespace": NS}, "spec": {"podgroups": groups}})
    pod = {
        "metadata": {"name": "a-0", "namespace": NS, "labels": {"grove.io/podgang": "a", "grove.io/podclique": "w"}},
        "spec": {"schedulerName": "spinney-scheduler", "containers": [{"name": "main", "image": "pause"}]},
    }
    await world.client.create(POD, pod)
    async with world.scheduler():
        await world.settle(60)
        assert (await world.places())["a-0"] == ""
        await world.client.patch(POD_GANG, "a", {"metadata": {"labels": {"kai.scheduler/queue": "team"}}}, NS)
        await world.settle(60)
        assert (await world.places())["a-0"] == "n1"


@given_a_world
async def test_a_change_that_matters_wakes_the_scheduler(world: World) -> None:
    """A pod that waits is placed as soon as a node comes that has room for it."""
    await world.add_pod("waits")
    async with world.scheduler():
        await world.settle(600)
        assert (await world.places())["waits"] == ""
        await world.add_node("n1")
        await world.settle(1)
        assert (await world.places())["waits"] == "n1"


@given_a_world
async def test_a_pod_starts_once_the_claim_made_for_it_is_named(world: World) -> None:
    """A claim from a template is created first, and named in the pod's status a moment later: no event follows that."""
    await world.add_node("n1")
    driver = "gpu.example.com"
    await world.client.create(DEVICE_CLASS, {"metadata": {"name": driver}})
    pool = {"name": "n1", "generation": 1, "resourceSliceCount": 1}
    published = {"driver": driver, "nodeName": "n1", "pool": pool, "devices": [{"name": "gpu-0"}]}
    await world.client.create(RESOURCE_SLICE, {"metadata": {"name": "n1"}, "spec": published})
    wanted = [{"name": "gpu", "resourceClaimTemplateName": "made-elsewhere"}]
    pod = await world.add_pod("p1", gpus=0, resourceClaims=wanted)
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p1", "uid": pod.metadata.uid, "controller": True}
    async with world.scheduler():
        requests = [{"name": "gpu", "exactly": {"deviceClassName": driver, "allocationMode": "ExactCount", "count": 1}}]
        metadata = {"name": "p1-gpu", "namespace": NS, "ownerReferences": [owner]}
        await world.client.create(RESOURCE_CLAIM, {"metadata": metadata, "spec": {"devices": {"requests": requests}}})
        await world.settle(60)
        assert (await world.places())["p1"] == ""
        named: JSON = {"status": {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "p1-gpu"}]}}
        await world.client.patch(POD, "p1", named, NS, subresource="status")
        await world.settle(10)
        assert (await world.places())["p1"] == "n1"


@given_a_world
async def test_a_pod_starts_once_its_annotation_names_a_group_that_exists(world: World) -> None:
    """What was misspelt is corrected on the pod that waits; no other event follows that."""
    await install_crds(world.client)
    await world.add_node("n1")
    await world.client.create(KAI_GROUP, {"metadata": {"name": "train", "namespace": NS}, "spec": {"minMember": 1}})
    pod = a_pod_of_cpus("p1", 1)
    pod["metadata"]["annotations"] = {"pod-group-name": "trian"}
    await world.client.create(POD, pod)
    async with world.scheduler():
        await world.settle(60)
        assert (await world.places())["p1"] == ""
        await world.client.patch(POD, "p1", {"metadata": {"annotations": {"pod-group-name": "train"}}}, NS)
        await world.settle(10)
        assert (await world.places())["p1"] == "n1"


@given_a_world
async def test_a_pod_that_shrinks_where_it_runs_gives_its_room_at_once(world: World) -> None:
    """A pod that waits for CPUs gets those that a running pod is resized by; its status alone wakes nobody."""
    await world.add_node("n1")
    await world.client.create(POD, a_pod_of_cpus("runs", 40))
    async with world.scheduler() as process:
        await world.settle(10)
        await world.client.create(POD, a_pod_of_cpus("waits", 40))
        await world.settle(60)
        assert await world.places() == {"runs": "n1", "waits": ""}
        before = process.cycles
        await reports(world, "runs", 40)
        await world.settle(60)
        assert process.cycles == before, "it says only what was known"

        resized = {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "8"}}}]}}
        await world.client.patch(POD, "runs", resized, NS, kind=PatchKind.STRATEGIC, subresource="resize")
        await world.settle(10)
        assert (await world.places())["waits"] == "", "its kubelet has not given the room back yet"
        await reports(world, "runs", 8)
        await world.settle(10)
        assert (await world.places())["waits"] == "n1"


def a_pod_of_cpus(name: str, cpus: int) -> JSON:
    container = {"name": "main", "image": "pause", "resources": {"requests": {"cpu": str(cpus)}}}
    spec = {"schedulerName": "spinney-scheduler", "containers": [container]}
    return {"metadata": {"name": name, "namespace": NS}, "spec": spec}


async def reports(world: World, name: str, cpus: int) -> None:
    """Have a kubelet say that a pod runs, and what its container has."""
    amounts = {"cpu": str(cpus)}
    container = {"name": "main", "allocatedResources": amounts, "resources": {"requests": amounts}}
    said = {"status": {"phase": "Running", "containerStatuses": [container]}}
    await world.client.patch(POD, name, said, NS, subresource="status")


@given_a_world
async def test_a_kind_that_is_installed_later_is_followed(world: World) -> None:
    """Groups of a CRD that appears after the start are picked up within a minute or so."""
    await world.add_node("n1")
    async with world.scheduler():
        await world.settle(10)
        await install_crds(world.client)
        group = {"metadata": {"name": "late", "namespace": NS}, "spec": {"minMember": 2}}
        await world.client.create(COSCHEDULING_GROUP, group)
        for number in range(2):
            pod = await world.add_pod(f"late-{number}", schedulingGates=[{"name": "example.com/label-first"}])
            patch = {"metadata": {"labels": {"scheduling.x-k8s.io/pod-group": "late"}}}
            await world.client.patch(POD, pod.metadata.name, patch, NS)
            await world.client.patch(POD, pod.metadata.name, {"spec": {"schedulingGates": []}}, NS)
        await world.settle(5)
        assert set((await world.places()).values()) == {""}, "the group is not known yet"
        await world.settle(90)
        assert set((await world.places()).values()) == {"n1"}
