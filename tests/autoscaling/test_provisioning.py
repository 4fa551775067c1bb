"""One ProvisioningRequest for each gang that lacks nodes; its answer is respected, and its capacity kept."""

import pytest

from spinney.api.core import POD, POD_TEMPLATE, Pod
from spinney.api.coscheduling import POD_GROUP as COSCHEDULING_GROUP
from spinney.api.provisioning import BEST_EFFORT_ATOMIC, CHECK_CAPACITY, PROVISIONING_REQUEST
from spinney.api.workload_v1beta1 import POD_GROUP
from spinney.autoscaling.templates import SCHEDULER
from spinney.kube.crds import install_crds
from spinney.kube.errors import ConnectionFailed
from spinney.kube.lease import LeaderElection
from spinney.kube.transport import Response
from spinney.scheduler.config import NodeProvisioning
from tests.autoscaling.asking import RETRY, answer, asking, given_requests, install, requests, waiting
from tests.conftest import Cluster
from tests.grouping.world import JOB, a_world
from tests.scheduler.process.test_leading_again import once
from tests.scheduler.process.world import NS, World, status


@pytest.mark.parametrize("class_name", [BEST_EFFORT_ATOMIC, CHECK_CAPACITY])
@given_requests
async def test_a_gang_asks_once_and_is_placed_when_its_nodes_are_there(world: World, class_name: str) -> None:
    """One request for all its pods, which say what they wait for; nothing is left of it when the gang is bound."""
    async with asking(world, class_name):
        await world.add_gang("g", 3, gpus=8)
        await world.settle(5)
        (request,) = await requests(world)
        assert request["spec"]["provisioningClassName"] == class_name
        (pod_set,) = request["spec"]["podSets"]
        assert pod_set["count"] == 3
        template = await world.client.get(POD_TEMPLATE, pod_set["podTemplateRef"]["name"], NS)
        assert template["template"]["spec"]["containers"][0]["resources"]["requests"] == {"nvidia.com/gpu": "8"}
        for pod in (await world.client.list(POD, NS, type=Pod)).items:
            marks = pod.metadata.annotations
            assert marks["autoscaling.x-k8s.io/consume-provisioning-request"] == request["metadata"]["name"]
        assert {reason for reason, _ in (await waiting(world)).values()} == {"WaitingForProvisioning"}

        for number in range(3):
            await world.add_node(f"n{number}")
        await answer(world, "Provisioned")
        await world.settle(5)
        assert await waiting(world) == {}
        assert await requests(world) == []
        assert not (await world.client.list(POD_TEMPLATE, NS)).items


@given_requests
async def test_pods_say_since_when_nobody_answers(world: World) -> None:
    """An autoscaler that is not there, or does not know the class, is told by how long it has not answered."""
    for _ in range(2):  # a scheduler that takes over says the same
        async with asking(world):
            if not await requests(world):
                await world.add_gang("g", 2, gpus=8)
            await world.settle(600)
            (request,) = await requests(world)
            since = request["metadata"]["creationTimestamp"]
            told = {message for _, message in (await waiting(world)).values()}
            assert [f"asked for at {since}, and the autoscaler has not answered yet" in each for each in told] == [True]


@given_requests
async def test_capacity_that_was_provisioned_is_kept(world: World) -> None:
    """A pod that comes later takes a free node while nothing is promised, and not once it is the gang's."""
    await world.add_node("n1")
    await world.add_node("n2")
    async with asking(world):
        await world.add_pod("old", gpus=8)
        await world.settle(2)
        await world.add_gang("g", 2, gpus=8)
        await world.settle(5)
        await world.add_pod("early", gpus=1)
        await world.settle(5)
        assert (await world.places())["early"]
        await world.client.delete(POD, "early", NS)
        await answer(world, "Provisioned")
        await world.settle(5)
        await world.add_pod("late", gpus=1)
        await world.settle(5)
        assert "for which it was provisioned" in (await waiting(world))["late"][1]
        await world.client.delete(POD, "old", NS)
        await world.settle(5)
        places = await world.places()
        assert places["g-0"]
        assert places["g-1"]
        assert not places["late"]


async def a_gang_with_capacity(world: World) -> None:
    """Have a gang of two wait for the second of two nodes, with its capacity provisioned, and show that it is kept."""
    await world.add_pod("old", gpus=8)
    await world.settle(2)
    await world.add_gang("g", 2, gpus=8)
    await world.settle(5)
    await answer(world, "Provisioned")
    await world.settle(5)
    await world.add_pod("late", gpus=1)
    await world.settle(5)
    assert not (await world.places())["late"]


@pytest.mark.parametrize("ended", ["Failed", "BookingExpired", "CapacityRevoked", "deleted"])
@given_requests
async def test_capacity_that_is_lost_is_not_kept(world: World, ended: str) -> None:
    """When the autoscaler takes its answer back, or the request is deleted, others may have the nodes."""
    await world.add_node("n1")
    await world.add_node("n2")
    async with asking(world):
        await a_gang_with_capacity(world)
        (request,) = await requests(world)
        if ended == "deleted":
            await world.client.delete(PROVISIONING_REQUEST, request["metadata"]["name"], NS)
        else:
            await answer(world, ended)
        await world.settle(5)
        assert (await world.places())["late"]
        assert ended in (await waiting(world))["g-0"][1]
        await world.settle(RETRY + 5)
        (anew,) = await requests(world)
        assert anew["metadata"]["uid"] != request["metadata"]["uid"]


@given_requests
async def test_capacity_is_not_kept_for_a_gang_that_is_gone(world: World) -> None:
    """With the pods of the gang its request goes, and what was kept for it."""
    await world.add_node("n1")
    await world.add_node("n2")
    async with asking(world):
        await a_gang_with_capacity(world)
        for pod in ("g-0", "g-1"):
            await world.client.delete(POD, pod, NS, grace_period_seconds=0)
        await world.settle(5)
        assert (await world.places())["late"]
        assert await requests(world) == []


@given_requests
async def test_capacity_is_kept_while_the_gang_cannot_be_tried(world: World) -> None:
    """A gang that lacks a pod for a moment keeps what was provisioned for it."""
    await world.add_node("n1")
    await world.add_node("n2")
    async with asking(world):
        await a_gang_with_capacity(world)
        (request,) = await requests(world)
        await world.client.delete(POD, "g-1", NS, grace_period_seconds=0)
        await world.settle(5)
        await world.add_pod("g-1", gang="g", gpus=8)
        await world.settle(5)
        assert [each["metadata"]["uid"] for each in await requests(world)] == [request["metadata"]["uid"]]
        await world.client.delete(POD, "late", NS, grace_period_seconds=0)
        await world.client.delete(POD, "old", NS, grace_period_seconds=0)
        await world.settle(5)
        places = await world.places()
        assert places["g-0"]
        assert places["g-1"]
        assert await requests(world) == []


@given_requests
async def test_a_request_that_failed_is_made_again_after_a_while_and_not_before(world: World) -> None:
    """Pods say that it failed and why; the next request is another one."""
    async with asking(world):
        await world.add_gang("g", 2, gpus=8)
        await world.settle(5)
        first = (await requests(world))[0]["metadata"]["uid"]
        await answer(world, "Failed", "out of stock")
        await world.settle(RETRY / 2)
        assert "Failed: out of stock" in (await waiting(world))["g-0"][1]
        (said,) = (await world.client.get(POD_GROUP, "g", NS))["status"]["conditions"]
        assert "Failed: out of stock" in said["message"]
        assert [each["metadata"]["uid"] for each in await requests(world)] == [first]
        await world.settle(RETRY)
        (second,) = await requests(world)
        assert second["metadata"]["uid"] != first


@given_requests
async def test_a_pod_that_is_left_over_asks_for_itself(world: World) -> None:
    """One pod of a failed request makes none of its own; it no longer names one, or no node would be added for it."""
    await world.add_node("n1")
    async with asking(world):
        await world.add_group("g", 1)
        await world.add_pod("old", gpus=8)
        await world.settle(2)
        for name in ("g-0", "g-1"):
            await world.add_pod(name, gang="g", gpus=8)
        await world.settle(5)
        assert len(await requests(world)) == 1
        await world.client.delete(POD, "old", NS)
        await world.settle(5)
        await answer(world, "Failed", "out of stock")
        await world.settle(2 * RETRY)
        (left,) = (await waiting(world)).items()
        assert left[1][0] == "Unschedulable"
        marks = (await world.client.get(POD, left[0], NS))["metadata"].get("annotations") or {}
        assert not [key for key in marks if "autoscaling.x-k8s.io" in key]
        assert await requests(world) == []


@given_requests
async def test_a_scheduler_that_starts_later_finds_the_answer(world: World) -> None:
    """What was asked for by the process before is not asked for again, and its answer counts."""
    await world.add_node("n1")
    await world.add_node("n2")
    await world.add_pod("old", gpus=8, nodeName="n1")
    async with asking(world):
        await world.add_gang("g", 2, gpus=8)
        await world.settle(5)
        first = (await requests(world))[0]["metadata"]["uid"]
    await answer(world, "Provisioned")
    async with asking(world):
        await world.settle(5)
        assert [each["metadata"]["uid"] for each in await requests(world)] == [first]
        await world.add_pod("late", gpus=1)
        await world.settle(5)
        assert "for which it was provisioned" in (await waiting(world))["late"][1]


@given_requests
async def test_a_scheduler_that_starts_later_takes_back_what_nobody_waits_for(world: World) -> None:
    """Of gangs that were bound, or went, while no scheduler ran, no request is left; nor of another class."""
    async with asking(world, CHECK_CAPACITY):
        for gang in ("bound", "gone", "waits"):
            await world.add_gang(gang, 2, gpus=8)
        await world.settle(5)
        assert len(await requests(world)) == 3
    await world.add_node("n1")
    for number in range(2):
        await world.client.delete(POD, f"gone-{number}", NS, grace_period_seconds=0)
        pod = await world.client.get(POD, f"bound-{number}", NS)
        target = {"apiVersion": "v1", "kind": "Node", "name": "n1"}
        binding = {"metadata": {"name": pod["metadata"]["name"]}, "target": target}
        await world.client.create(POD, binding, NS, name=pod["metadata"]["name"], subresource="binding")
    async with asking(world, BEST_EFFORT_ATOMIC):
        await world.settle(5)
        (request,) = await requests(world)
        assert request["spec"]["provisioningClassName"] == BEST_EFFORT_ATOMIC
        assert "waits" in request["metadata"]["name"]
        assert len((await world.client.list(POD_TEMPLATE, NS)).items) == 1


@given_requests
async def test_schedulers_of_other_names_leave_each_others_requests_alone(world: World) -> None:
    """Two schedulers in one cluster, each with gangs of its own: the request of the one outlives the other's looks."""
    async with asking(world), asking(world, scheduler="other"):
        await world.add_gang("ours", 2, gpus=8)
        await world.settle(5)
        (first,) = await requests(world)
        for number in range(2):
            await world.add_pod(f"single-{number}", gpus=8, schedulerName="other")
        await world.settle(30)
        assert [each["metadata"]["uid"] for each in await requests(world)] == [first["metadata"]["uid"]]


@given_requests
async def test_a_request_without_a_scheduler_belongs_to_that_of_its_pods(world: World) -> None:
    """Requests of versions that did not say it are deleted by the scheduler of the gang, and by no other."""
    async with asking(world):
        await world.add_gang("ours", 2, gpus=8)
        await world.settle(5)
    (request,) = await requests(world)
    unlabelled = {"metadata": {"labels": {SCHEDULER: None}}}
    await world.client.patch(PROVISIONING_REQUEST, request["metadata"]["name"], unlabelled, NS)
    async with asking(world, scheduler="other"):
        await world.add_pod("single", gpus=8, schedulerName="other")
        await world.settle(30)
        assert len(await requests(world)) == 1
    async with asking(world):
        await world.settle(5)
        assert [each["metadata"]["uid"] for each in await requests(world)] == [request["metadata"]["uid"]]
        for number in range(2):
            await world.add_node(f"n{number}")
        await world.settle(5)
        assert await requests(world) == []


@given_requests
async def test_a_gang_that_grows_asks_anew(world: World) -> None:
    """A request cannot be changed, so one for all the pods takes its place."""
    async with asking(world):
        await world.add_gang("g", 2, gpus=8)
        await world.settle(5)
        await world.add_pod("g-2", gang="g", gpus=8)
        await world.settle(5)
        (request,) = await requests(world)
        assert [each["count"] for each in request["spec"]["podSets"]] == [3]


@given_requests
async def test_a_request_that_its_finalizer_keeps_is_made_anew_once_it_is_gone(world: World) -> None:
    """The old one says nothing of the pods that came since; the gang waits for one that is there, not for its trace."""
    async with asking(world):
        await world.add_gang("g", 2, gpus=8)
        await world.settle(5)
        (old,) = await requests(world)
        name = old["metadata"]["name"]
        await world.client.patch(PROVISIONING_REQUEST, name, {"metadata": {"finalizers": ["example.com/held"]}}, NS)
        await world.add_pod("g-2", gang="g", gpus=8)
        await world.settle(RETRY)
        (kept,) = await requests(world)
        assert kept["metadata"]["uid"] == old["metadata"]["uid"]
        assert all("its finalizers keep it" in message for _, message in (await waiting(world)).values())
        await world.client.patch(PROVISIONING_REQUEST, name, {"metadata": {"finalizers": None}}, NS)
        await world.settle(5)
        (request,) = await requests(world)
        assert [each["count"] for each in request["spec"]["podSets"]] == [3]


@given_requests
async def test_groups_of_two_kinds_that_share_a_name_ask_each_for_itself(world: World) -> None:
    """Each has a request for its own pods, and keeps it when the other goes."""
    await install_crds(world.client)
    async with asking(world):
        await world.add_gang("g", 3, gpus=8)
        group = {"metadata": {"name": "g", "namespace": NS}, "spec": {"minMember": 2}}
        await world.client.create(COSCHEDULING_GROUP, group)
        limits = {"limits": {"nvidia.com/gpu": "8"}}
        spec = {
            "schedulerName": "spinney-scheduler",
            "containers": [{"name": "c", "image": "i", "resources": limits}],
        }
        for number in range(2):
            labels = {"scheduling.x-k8s.io/pod-group": "g"}
            pod = {"metadata": {"name": f"other-{number}", "namespace": NS, "labels": labels}, "spec": spec}
            await world.client.create(POD, pod)
        await world.settle(5)
        asked = [each["spec"]["podSets"][0]["count"] for each in await requests(world)]
        assert sorted(asked) == [2, 3]
        for number in range(3):
            await world.client.delete(POD, f"g-{number}", NS)
        await world.settle(5)
        (left,) = await requests(world)
        assert left["spec"]["podSets"][0]["count"] == 2


@given_requests
async def test_no_request_where_no_node_helps_or_one_pod_asks(world: World) -> None:
    """A gang that lacks pods asks for nothing; a single pod asks as pods do."""
    async with asking(world):
        await world.add_group("short", 3)
        await world.add_pod("short-0", gang="short", gpus=8)
        await world.add_pod("short-1", gang="short", gpus=8)
        await world.add_pod("alone", gpus=8)
        await world.settle(5)
        assert await requests(world) == []
        assert {name: reason for name, (reason, _) in (await waiting(world)).items()} == {
            "alone": "Unschedulable",
            "short-0": "WaitingForPods",
            "short-1": "WaitingForPods",
        }


@pytest.mark.parametrize("failure", [status(503, "ServiceUnavailable"), ConnectionFailed("the connection broke")])
@given_requests
async def test_a_request_that_met_a_fault_is_made_again_soon(world: World, failure: Response | Exception) -> None:
    """What says nothing of the request keeps nobody from nodes for as long as a refusal by the autoscaler."""
    away = True

    def fault(method: str, path: str) -> Response | Exception | None:
        return failure if away and method == "POST" and path.startswith("/apis/autoscaling") else None

    world.transport.fault = fault
    async with asking(world):
        await world.add_gang("g", 2, gpus=8)
        await world.settle(5)
        assert all("it could not be made" in message for _, message in (await waiting(world)).values())
        away = False
        await world.settle(20)
        assert len(await requests(world)) == 1


@given_requests
async def test_who_leads_again_asks_for_what_is_not_asked_for(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """What another did with the request meanwhile counts, and not what this scheduler remembers of it."""
    election = LeaderElection(world.client, "scheduler", NS, identity="one", runtime=world.runtime)
    async with asking(world, election=election) as process:
        await world.add_gang("g", 2, gpus=8)
        await world.settle(5)
        (first,) = await requests(world)
        monkeypatch.setattr(process, "_cycle", once(process._cycle))
        await world.add_pod("news")
        await world.settle(2)
        assert not election.leading
        await world.client.delete(PROVISIONING_REQUEST, first["metadata"]["name"], NS)
        await world.settle(60)
        (second,) = await requests(world)
        assert second["metadata"]["uid"] != first["metadata"]["uid"]


@pytest.mark.parametrize("cluster_name", [pytest.param("real", marks=pytest.mark.real)], indirect=True)
async def test_a_real_api_server_takes_the_request_and_its_templates(cluster: Cluster) -> None:
    """A Job that needs more nodes than there are asks for them; request and PodTemplates are valid objects."""
    await install(cluster.client)
    settings = NodeProvisioning(class_name=CHECK_CAPACITY, parameters={"ValidUntilSeconds": "600"})
    async with a_world(cluster, scheduler={"provisioning_requests": settings}) as world:
        container = {"name": "c", "image": "i", "resources": {"limits": {"nvidia.com/gpu": "8"}}}
        pod = {"schedulerName": "spinney-scheduler", "restartPolicy": "Never", "containers": [container]}
        spec = {"parallelism": 6, "completions": 6, "template": {"spec": pod}}
        await world.owner(JOB, "huge", spec, annotations={"kai.scheduler/batch-min-member": "6"})

        def told() -> list[str]:
            pods = (world.pods.get(key) for key in world.pods)
            found = [pod.condition("PodScheduled") for pod in pods if pod is not None]
            return [each.reason for each in found if each is not None]

        await world.until(lambda: told() == ["WaitingForProvisioning"] * 6, 110)
        async for event in cluster.client.watch(PROVISIONING_REQUEST, cluster.namespace):
            request = event.object
            break
        (pod_set,) = request["spec"]["podSets"]
        assert pod_set["count"] == 6
        assert request["spec"]["parameters"] == {"ValidUntilSeconds": "600"}
        await cluster.client.get(POD_TEMPLATE, pod_set["podTemplateRef"]["name"], cluster.namespace)


@given_requests
async def test_a_request_that_could_not_be_deleted_is_deleted_later(world: World) -> None:
    """While it is there an autoscaler keeps nodes for nobody, so a quiet cluster is not waited for."""
    await world.add_node("n1", gpus=1)
    async with asking(world):
        await world.add_gang("train", 2, gpus=4)
        await world.settle(10)
        assert len(await requests(world)) == 1
        world.transport.fault = lambda method, path: status(403, "Forbidden") if method == "DELETE" else None
        for number in range(2):
            await world.client.delete(POD, f"train-{number}", NS)
        await world.settle(60)
        tried = [path for method, path in world.transport.writes if method == "DELETE"]
        assert 2 <= len(tried) <= 6, "a refusal is not asked for without a pause"
        world.transport.fault = lambda method, path: None
        await world.settle(30)
        assert await requests(world) == []
