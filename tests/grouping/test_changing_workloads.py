"""What becomes of a gang when its workload is changed by its user: it follows, and no pod is left behind."""

from dataclasses import replace

import pytest

from spinney.api.conditions import find_condition
from spinney.api.core import POD
from spinney.api.kai import POD_GROUP as KAI_GROUP
from spinney.api.labels import CHECKPOINT_GRACE
from spinney.api.podgang import POD_GANG, PodGang
from spinney.api.resource import Resource
from spinney.api.scheduling import PRIORITY_CLASS
from spinney.api.struct import JSON
from spinney.kube.client import Client
from spinney.kube.errors import ConnectionRefused
from tests.conftest import Cluster
from tests.grouping.test_controller import A_DEPLOYMENT, A_JOB, DEPLOYMENT, RAY, install
from tests.grouping.world import JOB, World, a_world
from tests.scheduler.process.world import FaultyTransport

pytestmark = pytest.mark.parametrize("cluster_name", ["embedded"])

MIN_MEMBER = "kai.scheduler/min-member"
BATCH_MIN_MEMBER = "kai.scheduler/batch-min-member"
FLEET = Resource("jobs.example.com", "v1", "Fleet", "fleets", namespaced=False)
PLAN = Resource("jobs.example.com", "v1", "Plan", "plans")
FLOW = Resource("jobs.example.com", "v1", "PyFlow", "pyflows")
OWN = """
kind: GrouperConfiguration
rules:
- {kind: jobs.example.com/Fleet, floor: spec.least}
- kind: jobs.example.com/PyFlow
  counts: {kind: jobs.example.com/Plan, name: [spec.plan]}
  floor: spec.least
"""


def gang(world: World) -> PodGang:
    (found,) = (world.gangs.get(key) for key in world.gangs)
    assert found is not None
    return found


async def test_pods_that_need_no_gang_any_more_are_placed_one_by_one(cluster: Cluster) -> None:
    """Who takes the minimum off a Deployment that waits wants what fits to start."""
    async with a_world(cluster) as world:
        owner = await world.owner(DEPLOYMENT, "web", {**A_DEPLOYMENT, "replicas": 5}, annotations={MIN_MEMBER: "5"})
        for number in range(5):
            await world.pod(f"web-{number}", owner)
        await world.until(lambda: world.floors() == {"default": 5})
        await world.settle()
        assert world.placed() == []
        patch = {"metadata": {"annotations": {MIN_MEMBER: None}}}
        await world.client.patch(DEPLOYMENT, "web", patch, world.namespace)
        await world.until(lambda: len(world.placed()) == 4)


async def test_a_workload_that_is_mended_is_looked_at_at_once(cluster: Cluster) -> None:
    """Pods whose rule was refused for long do not wait for the next try."""
    async with a_world(cluster) as world:
        owner = await world.owner(JOB, "odd", {**A_JOB, "parallelism": 2}, annotations={BATCH_MIN_MEMBER: "two"})
        for number in range(2):
            await world.pod(f"odd-{number}", owner)
        await world.settle(600)
        patch = {"metadata": {"annotations": {BATCH_MIN_MEMBER: "2"}}}
        await world.client.patch(JOB, "odd", patch, world.namespace)
        await world.settle()
        assert len(world.placed()) == 2


async def test_a_priority_class_that_comes_later_is_taken(cluster: Cluster) -> None:
    """The order in which a Job and its class are applied makes no difference, and the problem is gone."""
    async with a_world(cluster) as world:
        owner = await world.owner(JOB, "late", A_JOB, labels={"priorityClassName": "urgent"})
        await world.pod("late-0", owner)
        await world.settle()
        assert gang(world).spec.priority_class_name == "train"
        await world.client.create(PRIORITY_CLASS, {"metadata": {"name": "urgent"}, "value": 1000})
        await world.settle()
        assert gang(world).spec.priority_class_name == "urgent"
        assert "GroupingProblem" not in {each.type for each in gang(world).status.conditions}


async def test_what_a_workload_no_longer_says_its_gang_does_not_say_either(cluster: Cluster) -> None:
    """A Job that was not preemptible becomes so; what somebody else put on the gang stays."""
    async with a_world(cluster) as world:
        said = {"kai.scheduler/preemptibility": "non-preemptible"}
        owner = await world.owner(JOB, "calm", A_JOB, labels=said, annotations={CHECKPOINT_GRACE: "5m"})
        await world.pod("calm-0", owner)
        await world.until(lambda: len(world.placed()) == 1)
        name = gang(world).metadata.name
        own = {"metadata": {"labels": {"team": "a"}, "annotations": {"spinney.dev/min-runtime": "20m"}}}
        await world.client.patch(POD_GANG, name, own, world.namespace)
        unsaid = {"metadata": {"labels": dict.fromkeys(said), "annotations": {CHECKPOINT_GRACE: None}}}
        await world.client.patch(JOB, "calm", unsaid, world.namespace)
        await world.settle()
        metadata = gang(world).metadata
        assert not said.keys() & metadata.labels.keys()
        assert CHECKPOINT_GRACE not in metadata.annotations
        assert (metadata.labels["team"], metadata.annotations["spinney.dev/min-runtime"]) == ("a", "20m")


async def test_pods_of_a_job_that_are_replaced_are_needed_as_before(cluster: Cluster) -> None:
    """Ten completions, four at a time: after three successes four are still needed, not one."""
    async with a_world(cluster) as world:
        spec = {**A_JOB, "parallelism": 4, "completions": 10}
        owner = await world.owner(JOB, "work", spec, annotations={BATCH_MIN_MEMBER: "4"})
        for number in range(4):
            await world.pod(f"work-{number}", owner, gpus=1)
        await world.until(lambda: len(world.placed()) == 4)
        for number in range(3):
            done = {"status": {"phase": "Succeeded"}}
            await world.client.patch(POD, f"work-{number}", done, world.namespace, subresource="status")
            await world.pod(f"work-{number + 4}", owner, gpus=1)
        await world.client.patch(JOB, "work", {"status": {"succeeded": 3}}, world.namespace, subresource="status")
        await world.until(lambda: len(world.placed()) == 7)
        await world.settle()
        assert world.floors() == {"default": 4}


async def test_the_group_of_another_scheduler_follows_the_queue(cluster: Cluster) -> None:
    """A Job that waits is moved to another queue by its label, with KAI's PodGroup as well."""
    async with a_world(cluster, every_backend=True) as world:
        owner = await world.owner(JOB, "moved", A_JOB, labels={"kai.scheduler/queue": "first"})
        await world.pod("moved-0", owner, gpus=9, scheduler="kai-scheduler")
        await world.settle()
        patch = {"metadata": {"labels": {"kai.scheduler/queue": "second"}}}
        await world.client.patch(JOB, "moved", patch, world.namespace)
        await world.settle()
        (group,) = (await world.client.list(KAI_GROUP, world.namespace)).items
        assert group["spec"]["queue"] == "second"


async def test_a_gang_that_has_begun_stays_in_its_queue(cluster: Cluster) -> None:
    """What it holds is charged there; who asks for another queue by the label is told so."""
    async with a_world(cluster) as world:
        owner = await world.owner(JOB, "runs", A_JOB, labels={"kai.scheduler/queue": "first"})
        await world.pod("runs-0", owner)
        await world.until(lambda: world.placed() == ["runs-0"])
        patch = {"metadata": {"labels": {"kai.scheduler/queue": "second"}}}
        await world.client.patch(JOB, "runs", patch, world.namespace)
        await world.settle()
        found = gang(world)
        assert found.metadata.labels["kai.scheduler/queue"] == "first"
        problem = find_condition(found.status.conditions, "GroupingProblem")
        assert problem is not None
        assert problem.message == ("queue second is asked for, but the gang has begun in queue first and stays there")


async def test_a_workload_that_waited_in_a_queue_keeps_its_place(cluster: Cluster) -> None:
    """The gang of a Job that was suspended is as old as the Job, and goes before one that came before its pods did."""
    async with a_world(cluster) as world:
        await world.pod("filler", gpus=8)
        for number in range(3):
            await world.pod(f"filler-{number}", gpus=8)
        await world.until(lambda: len(world.placed()) == 4)
        waited = await world.owner(JOB, "waited", A_JOB, labels={"spinney.dev/admission": "queue"})
        await world.settle(30)
        await world.pod("later-0", await world.owner(JOB, "later", A_JOB))
        await world.settle(30)
        await world.pod("waited-0", waited)
        await world.settle(30)
        await world.client.delete(POD, "filler", world.namespace, grace_period_seconds=0)
        await world.settle(30)
        assert world.placed("waited") == ["waited-0"]
        assert world.placed("later") == []


async def test_pods_on_their_own_follow_the_queue_of_their_deployment(cluster: Cluster) -> None:
    """A pod that waits goes to the queue that its Deployment names now; a queue that the pod names itself stays."""

    async def queues() -> list[str]:
        pods = [await world.client.get(POD, name, world.namespace) for name in ("waits", "says")]
        return [pod["metadata"]["labels"]["kai.scheduler/queue"] for pod in pods]

    async with a_world(cluster) as world:
        owner = await world.owner(DEPLOYMENT, "web", A_DEPLOYMENT, labels={"kai.scheduler/queue": "first"})
        await world.pod("waits", owner, gpus=99)
        await world.pod("says", owner, gpus=99, labels={"kai.scheduler/queue": "own"})
        await world.settle()
        assert await queues() == ["first", "own"]
        for queue, expected in (("second", "second"), (None, "default-queue")):
            patch = {"metadata": {"labels": {"kai.scheduler/queue": queue}}}
            await world.client.patch(DEPLOYMENT, "web", patch, world.namespace)
            await world.settle()
            assert await queues() == [expected, "own"]


async def test_a_pod_that_was_seen_before_its_role_is_joins_it(cluster: Cluster) -> None:
    """A worker group is added to a Ray cluster; its first pod may be seen before the cluster that has the group."""
    async with a_world(cluster) as world:
        await install(world, RAY)
        owner = await world.owner(RAY, "ray", {"workerGroupSpecs": []})
        await world.pod("ray-head", owner, gpus=1, labels={"ray.io/group": "headgroup"})
        await world.pod("ray-gpu-0", owner, gpus=9, labels={"ray.io/group": "gpu"})
        await world.settle()
        groups = [{"groupName": "gpu", "replicas": 2, "minReplicas": 2}]
        await world.client.patch(RAY, "ray", {"spec": {"workerGroupSpecs": groups}}, world.namespace)
        await world.settle()
        assert world.floors() == {"headgroup": 1, "gpu": 2}
        (gpu,) = (group for group in gang(world).spec.pod_groups if group.name == "gpu")
        assert [pod.name for pod in gpu.pod_references] == ["ray-gpu-0"]


async def test_an_owner_that_is_in_no_namespace_is_followed(cluster: Cluster) -> None:
    """Pods may be of an object beside all namespaces; a change of it changes the gang."""
    async with a_world(cluster, configuration=OWN) as world:
        await install(world, FLEET)
        owner = await world.owner(FLEET, "fleet", {"least": 1})
        await world.pod("fleet-0", owner)
        await world.until(lambda: world.floors() == {"default": 1})
        await world.client.patch(FLEET, "fleet", {"spec": {"least": 2}})
        await world.until(lambda: world.floors() == {"default": 2})


async def test_counts_in_an_object_that_owns_no_pod_are_followed(cluster: Cluster) -> None:
    """A kind of one's own may have its numbers in an object beside it; a change of that changes the gang."""
    async with a_world(cluster, configuration=OWN) as world:
        for kind in (PLAN, FLOW):
            await install(world, kind)
        await world.owner(PLAN, "plan", {"least": 1})
        await world.pod("flow-0", await world.owner(FLOW, "flow", {"plan": "plan"}))
        await world.settle()
        assert world.floors() == {"default": 1}
        await world.client.patch(PLAN, "plan", {"spec": {"least": 3}}, world.namespace)
        await world.settle()
        assert world.floors() == {"default": 3}


async def test_an_owner_of_a_kind_without_a_rule_is_followed_while_its_pods_wait(cluster: Cluster) -> None:
    """What `why` recommends for it is seen, as for every workload; nobody reads it again once its pods have nodes."""
    line = FaultyTransport(cluster.client.transport)
    read: list[str] = []

    def noted(method: str, path: str) -> None:
        if method == "GET" and path.endswith("/plans/own"):
            read.append(path)

    line.fault = noted
    async with a_world(replace(cluster, client=Client(line, cluster.runtime))) as world:
        await install(world, PLAN)
        owner = await world.owner(PLAN, "own", annotations={MIN_MEMBER: "3"})
        for number in range(2):
            await world.pod(f"own-{number}", owner)
        await world.until(lambda: world.floors() == {"default": 3})
        patch = {"metadata": {"annotations": {MIN_MEMBER: "2"}, "labels": {"kai.scheduler/queue": "late"}}}
        await world.client.patch(PLAN, "own", patch, world.namespace)
        await world.until(lambda: len(world.placed()) == 2)
        assert (world.floors(), gang(world).metadata.labels["kai.scheduler/queue"]) == ({"default": 2}, "late")
        times = len(read)
        await world.settle(600)
        assert len(read) == times


async def test_owners_are_not_read_again_one_by_one_while_the_api_server_is_away(cluster: Cluster) -> None:
    """Each would be asked for until it is given up, with a line in the log; all are read when it is back."""
    line = FaultyTransport(cluster.client.transport)
    read: set[str] = set()

    def away(method: str, path: str) -> None:
        if method == "GET" and "/plans/" in path:
            read.add(path)
            raise ConnectionRefused("away")

    async with a_world(replace(cluster, client=Client(line, cluster.runtime))) as world:
        await install(world, PLAN)
        for name in ("a", "b", "c"):
            await world.pod(name, await world.owner(PLAN, name, annotations={MIN_MEMBER: "2"}))
        await world.until(lambda: len(world.gangs) == 3)
        line.fault = away
        await world.settle(60)
        assert len(read) == 1
        line.fault = lambda method, path: None
        patch = {"metadata": {"annotations": {MIN_MEMBER: "1"}}}
        await world.client.patch(PLAN, "c", patch, world.namespace)
        await world.until(lambda: world.placed() == ["c"])


async def test_a_workload_that_comes_to_have_an_owner_inherits_from_it(cluster: Cluster) -> None:
    """A Job that another object adopts while it waits goes to that one's queue."""
    async with a_world(cluster) as world:
        await install(world, PLAN)
        await world.job("train", 5, least=5)
        await world.settle(60)
        above = await world.owner(PLAN, "above", labels={"kai.scheduler/queue": "late"})
        await world.client.patch(JOB, "train", {"metadata": {"ownerReferences": [above]}}, world.namespace)
        await world.until(lambda: gang(world).metadata.labels["kai.scheduler/queue"] == "late")


async def test_a_user_may_change_the_labels_that_a_pod_on_its_own_was_given(cluster: Cluster) -> None:
    """They were written for its owners' sake; what its user writes there instead is the pod's own, and stays."""
    async with a_world(cluster) as world:
        await world.pod("alone", await world.owner(DEPLOYMENT, "web", A_DEPLOYMENT), gpus=99)

        async def labels() -> JSON:
            await world.settle()
            found: JSON = (await world.client.get(POD, "alone", world.namespace))["metadata"]["labels"]
            return found

        assert (await labels())["kai.scheduler/queue"] == "default-queue"
        mine = {"kai.scheduler/queue": "mine", "priorityClassName": "urgent"}
        await world.client.patch(POD, "alone", {"metadata": {"labels": mine}}, world.namespace)
        assert mine.items() <= (await labels()).items()
        patch = {"metadata": {"labels": {"kai.scheduler/queue": "late"}}}
        await world.client.patch(DEPLOYMENT, "web", patch, world.namespace)
        assert mine.items() <= (await labels()).items()
        await world.client.patch(POD, "alone", {"metadata": {"labels": dict.fromkeys(mine)}}, world.namespace)
        assert (await labels())["kai.scheduler/queue"] == "late"


async def test_labels_that_an_earlier_version_gave_a_pod_on_its_own_follow_its_owners(cluster: Cluster) -> None:
    """It noted the keys without their values; they are not taken for what the user wrote."""
    async with a_world(cluster) as world:
        owner = await world.owner(DEPLOYMENT, "web", A_DEPLOYMENT)
        given = {"kai.scheduler/queue": "default-queue", "spinney.dev/grouped": "alone"}
        noted = {"spinney.dev/inherited": "kai.scheduler/queue"}
        await world.pod("alone", owner, gpus=99, labels=given, annotations=noted)
        patch = {"metadata": {"labels": {"kai.scheduler/queue": "late"}}}
        await world.client.patch(DEPLOYMENT, "web", patch, world.namespace)
        await world.settle()
        labels = (await world.client.get(POD, "alone", world.namespace))["metadata"]["labels"]
        assert labels["kai.scheduler/queue"] == "late"


async def test_a_pod_that_has_finished_is_not_needed_again_when_it_is_deleted(cluster: Cluster) -> None:
    """A node may go with the finished pod on it: those that run on are not evicted for that. Made anew, all count."""
    async with a_world(cluster) as world:
        marks = {"labels": {"spinney.dev/gang": "sweep"}, "annotations": {MIN_MEMBER: "4"}}

        async def make(*names: str) -> None:
            for name in names:
                await world.pod(name, **marks)
            await world.settle()
            assert set(names) <= set(world.placed())

        async def end(name: str) -> None:
            done = {"status": {"phase": "Succeeded"}}
            await world.client.patch(POD, name, done, world.namespace, subresource="status")
            await world.settle()
            await world.client.delete(POD, name, world.namespace, grace_period_seconds=0)
            await world.settle(120)

        await make("a", "b", "c", "d")
        await end("a")
        assert (world.floors(), sorted(world.placed())) == ({"default": 3}, ["b", "c", "d"])
        await end("b")
        assert (world.floors(), sorted(world.placed())) == ({"default": 2}, ["c", "d"])
        for name in ("c", "d"):
            await world.client.delete(POD, name, world.namespace, grace_period_seconds=0)
        await world.settle(1)
        for name in ("e", "f"):
            await world.pod(name, **marks)
        await world.settle()
        assert (world.floors(), world.placed()) == ({"default": 4}, [])
        await make("g", "h")
        assert (world.floors(), len(world.placed())) == ({"default": 4}, 4)


async def test_a_pod_on_its_own_gets_a_priority_class_that_comes_later(cluster: Cluster) -> None:
    """Its Deployment names one that does not exist; when it is made, pods that wait have it."""
    async with a_world(cluster) as world:
        owner = await world.owner(DEPLOYMENT, "web", A_DEPLOYMENT, labels={"priorityClassName": "late"})
        await world.pod("alone", owner, gpus=99)
        await world.settle(60)
        await world.client.create(PRIORITY_CLASS, {"metadata": {"name": "late"}, "value": 70})
        await world.settle()
        found = await world.client.get(POD, "alone", world.namespace)
        assert found["metadata"]["labels"]["priorityClassName"] == "late"


async def test_the_label_that_names_the_queue_may_be_another(cluster: Cluster) -> None:
    """Where another label was chosen, the scheduler still learns the queue, of gangs and of pods on their own."""
    async with a_world(cluster, configuration="{kind: GrouperConfiguration, queueLabel: team}") as world:
        job = await world.owner(JOB, "train", A_JOB, labels={"team": "vision"})
        await world.pod("train-0", job)
        await world.pod("web-0", await world.owner(DEPLOYMENT, "web", A_DEPLOYMENT, labels={"team": "vision"}))
        await world.settle()
        assert gang(world).metadata.labels["kai.scheduler/queue"] == "vision"
        web = await world.client.get(POD, "web-0", world.namespace)
        assert web["metadata"]["labels"]["kai.scheduler/queue"] == "vision"
