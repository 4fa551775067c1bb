"""New pods are told their gang at once where that is certain, and are created as they are where it is not."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from spinney.api import labels as marks
from spinney.api.core import NAMESPACE, POD
from spinney.api.podgang import POD_GANG
from spinney.api.resource import Resource
from spinney.api.struct import JSON
from spinney.grouping.admission import PodAdmission
from spinney.kube.client import Client
from spinney.kube.errors import NotFound
from spinney.kube.transport import Request, Response, Transport
from tests.conftest import Cluster
from tests.grouping.test_agreement import TEMPLATE
from tests.grouping.test_controller import A_DEPLOYMENT, A_JOB, DEPLOYMENT, install
from tests.grouping.world import JOB, World, a_pod, a_world
from tests.scheduler.process.world import FaultyTransport

pytestmark = pytest.mark.parametrize("cluster_name", ["embedded"])

JOB_SET = Resource("jobset.x-k8s.io", "v1alpha2", "JobSet", "jobsets")
FLOW = Resource("jobs.example.com", "v1", "Flow", "flows")
THREE: JSON = {"annotations": {"kai.scheduler/batch-min-member": "3"}}
SPEC: JSON = {"parallelism": 3, "completions": 3, **A_JOB}
GANG_MARKS = {marks.GROUPED, marks.POD_GANG, marks.POD_CLIQUE}


class Silent(FaultyTransport):
    """Does not answer requests for one path until told to."""

    def __init__(self, behind: Transport, path: str) -> None:
        super().__init__(behind)
        self.speaks = asyncio.Event()
        self._path = path

    async def request(self, request: Request) -> Response:
        """Pass the request on, late if it is for that path."""
        if request.path.endswith(self._path):
            await self.speaks.wait()
        return await super().request(request)


async def created(world: World, name: str, owner: JSON | None = None, **fields: Any) -> JSON:
    """Create a pod, and return it as the API server answered: before any controller has seen it."""
    made: JSON = await world.client.create(POD, a_pod(name, owner, **fields), world.namespace)
    return made


def told(pod: JSON) -> set[str]:
    """Return which of our labels a pod carries."""
    labels: dict[str, str] = pod["metadata"].get("labels", {})
    return GANG_MARKS & labels.keys()


def admission(world: World) -> PodAdmission:
    """Return what answers for new pods."""
    assert world.grouper is not None
    assert world.grouper.admission is not None
    return world.grouper.admission


async def test_a_pod_of_a_job_is_created_in_its_gang_and_not_written_again(cluster: Cluster) -> None:
    """The first pods of a kind wait a moment until it is known; none is patched by the grouper."""
    line = FaultyTransport(cluster.client.transport)
    async with a_world(replace(cluster, client=Client(line, cluster.runtime)), at_creation=True) as world:
        owner = await world.owner(JOB, "train", SPEC, **THREE)
        pods = [await created(world, f"train-{number}", owner) for number in range(3)]
        assert [told(pod) for pod in pods] == [GANG_MARKS] * 3
        await world.until(lambda: len(world.placed()) == 3)
        assert world.counted("spinney_grouper_pods_grouped_total", kind="batch/Job") == 3
    assert not [path for method, path in line.writes if method == "PATCH" and "/pods/" in path and "status" not in path]


async def test_a_pod_of_a_service_is_created_as_a_gang_of_its_own(cluster: Cluster) -> None:
    """Its queue and priority class are on the pod when it is stored."""
    async with a_world(cluster, at_creation=True) as world:
        pod = await created(world, "web-0", await world.owner(DEPLOYMENT, "web", A_DEPLOYMENT))
        assert pod["metadata"]["labels"] == {
            marks.GROUPED: "alone",
            marks.KAI_QUEUE: "default-queue",
            "priorityClassName": "inference",
        }


async def test_it_can_be_switched_off(cluster: Cluster) -> None:
    """Pods are then told after their creation."""
    configuration = "kind: GrouperConfiguration\nadmission: {enabled: false}"
    async with a_world(cluster, configuration=configuration, at_creation=True) as world:
        pod = await created(world, "train-0", await world.owner(JOB, "train", SPEC))
        assert not told(pod)
        await world.until(lambda: world.placed() == ["train-0"])


# -- what is left to the controllers -----------------------------------------------------------------------------------


async def test_a_dry_run_is_told_and_not_counted(cluster: Cluster) -> None:
    """Nobody else learns of it."""
    async with a_world(cluster, at_creation=True) as world:
        owner = await world.owner(JOB, "train", SPEC)
        pod = await world.client.create(POD, a_pod("train-0", owner), world.namespace, dry_run=True)
        assert told(pod) == GANG_MARKS
        with pytest.raises(NotFound):
            await world.client.get(POD, "train-0", world.namespace)
        assert world.counted("spinney_grouper_admissions_total", answer="gang") == 0


async def test_a_kind_without_a_rule_is_not_looked_for_while_somebody_waits(cluster: Cluster) -> None:
    """Whoever creates pods may name any kind. Once its first pod is grouped, the next ones are told at once."""
    async with a_world(cluster, at_creation=True) as world:
        await install(world, FLOW)
        owner = await world.owner(FLOW, "flow")
        assert not told(await created(world, "flow-0", owner))
        await world.until(lambda: world.placed() == ["flow-0"])
        assert told(await created(world, "flow-1", owner)) == GANG_MARKS
        await world.until(lambda: len(world.placed()) == 2)


async def test_an_owner_that_does_not_exist_leaves_the_pod_as_it_is(cluster: Cluster) -> None:
    """It is created, and says later what is missing."""
    async with a_world(cluster, at_creation=True) as world:
        owner = await world.owner(JOB, "train", SPEC)
        assert not told(await created(world, "gone-0", {**owner, "name": "gone"}))
        assert await admission(world).changes(a_pod("other-0", {**owner, "uid": "another"}), world.namespace) == {}
        await world.settle()
        (said,) = await world.events("GroupingRefused")
        assert said.startswith("Job gone (batch/v1) owns the pod and is not there")


async def test_an_owner_that_is_not_read_in_time_leaves_the_pod_as_it_is(cluster: Cluster) -> None:
    """Whoever creates a pod waits for a second at most."""
    line = Silent(cluster.client.transport, "/jobs/late")
    async with a_world(replace(cluster, client=Client(line, cluster.runtime)), at_creation=True) as world:
        first = await world.owner(JOB, "first", SPEC)
        await created(world, "first-0", first)
        clock = cluster.runtime.clock
        began = clock.monotonic()
        assert not told(await created(world, "late-0", {**first, "name": "late"}))
        assert clock.monotonic() - began == pytest.approx(1.0, abs=0.1)
        line.speaks.set()


async def test_a_rule_that_refuses_leaves_the_pod_as_it_is(cluster: Cluster) -> None:
    """The pod says why in an event, as ever."""
    async with a_world(cluster, at_creation=True) as world:
        owner = await world.owner(JOB, "odd", SPEC, annotations={"kai.scheduler/batch-min-member": "none"})
        assert not told(await created(world, "odd-0", owner))
        await world.settle()
        assert len(await world.events("GroupingRefused")) == 1


async def test_a_gang_named_after_a_pod_without_a_name_is_left_to_the_controllers(cluster: Cluster) -> None:
    """A real API server makes up name and uid after it has asked; the labels of a single pod do not need them."""
    async with a_world(cluster, every_backend=True, at_creation=True) as world:
        unnamed = a_pod("", scheduler="kai-scheduler")
        assert await admission(world).changes(unnamed, world.namespace) == {}
        changes = await admission(world).changes(a_pod(""), world.namespace)
        assert changes["labels"][marks.GROUPED] == "alone"
        owner = await world.owner(JOB, "train", SPEC)
        assert (await admission(world).changes(a_pod("", owner), world.namespace))["labels"].keys() == GANG_MARKS


async def test_pods_that_the_scheduler_cannot_hand_a_gang_say_so(cluster: Cluster) -> None:
    """The event needs a pod that exists."""
    configuration = "kind: GrouperConfiguration\nschedulerNames: [default-scheduler]"
    async with a_world(cluster, configuration=configuration, every_backend=True, at_creation=True) as world:
        owner = await world.owner(JOB, "train", SPEC, **THREE)
        assert not told(await created(world, "train-0", owner, scheduler="default-scheduler"))
        await world.settle()
        assert len(await world.events("CannotJoin")) == 1


async def test_a_backend_whose_scheduler_does_not_wait_for_groups_gets_its_pods_afterwards(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise it might start the pods one by one before their group exists."""
    async with a_world(cluster, at_creation=True) as world:
        backend = type(admission(world).backends["spinney-scheduler"])
        able = replace(admission(world).backends["spinney-scheduler"].capabilities, waits_for_group=False)
        monkeypatch.setattr(backend, "capabilities", able)
        assert not told(await created(world, "train-0", await world.owner(JOB, "train", SPEC)))
        await world.until(lambda: world.placed() == ["train-0"])


@pytest.mark.parametrize("raised", [ZeroDivisionError, SystemExit])
async def test_a_backend_that_fails_fails_for_nobody_who_creates_a_pod(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, raised: type[BaseException]
) -> None:
    """The pod is created as it is."""
    async with a_world(cluster, at_creation=True) as world:
        backend = type(admission(world).backends["spinney-scheduler"])

        def broken(*_: object) -> None:
            raise raised

        monkeypatch.setattr(backend, "prepare_pod", broken)
        assert not told(await created(world, "train-0", await world.owner(JOB, "train", SPEC)))


# -- what stands meanwhile ---------------------------------------------------------------------------------------------


async def test_a_part_that_starts_later_joins_when_the_gang_has_it(cluster: Cluster) -> None:
    """Before that its pods would be started one by one, as more than the gang needs."""
    job = {"replicas": 1, "template": {"spec": {"parallelism": 2, "template": TEMPLATE}}}
    jobs = [{"name": "first", **job}, {"name": "then", "dependsOn": [{"name": "first"}], **job}]
    async with a_world(cluster, at_creation=True) as world:
        await install(world, JOB_SET)
        owner = await world.owner(JOB_SET, "set", {"replicatedJobs": jobs})
        for name, is_told in (("first", True), ("then", False)):
            labels = {"jobset.sigs.k8s.io/replicatedjob-name": name, "jobset.sigs.k8s.io/job-index": "0"}
            for number in range(2):
                assert bool(told(await created(world, f"{name}-{number}", owner, labels=labels))) == is_told
        await world.until(lambda: len(world.placed()) == 4)
        assert world.floors("set") == {"first-replica-0": 2, "then-replica-0": 2}


async def test_pods_of_a_workload_that_grew_join_when_its_gang_has_grown(cluster: Cluster) -> None:
    """They are counted in the gang as it is now: two of four do not start on the nodes that are left."""
    async with a_world(cluster, nodes=4, at_creation=True) as world:
        owner = await world.owner(JOB, "train", SPEC, annotations={"kai.scheduler/batch-min-member": "2"})
        for number in range(2):
            await created(world, f"train-{number}", owner)
        await world.until(lambda: len(world.placed()) == 2)
        more = {"metadata": {"annotations": {"kai.scheduler/batch-min-member": "6"}}, "spec": {"parallelism": 6}}
        await world.client.patch(JOB, "train", more, world.namespace)
        await asyncio.sleep(0.01)  # virtual: the watch has seen it, and the gang is looked at a little later
        assert not told(await created(world, "train-2", owner))


async def test_a_pod_that_is_made_anew_joins_the_gang_that_stands(cluster: Cluster) -> None:
    """Its workload and its gang are as they were."""
    async with a_world(cluster, at_creation=True) as world:
        owner = await world.owner(JOB, "train", SPEC)
        first = await created(world, "train-0", owner)
        await world.until(lambda: world.placed() == ["train-0"])
        await world.client.delete(POD, "train-0", world.namespace, grace_period_seconds=0)
        again = await created(world, "train-0", owner)
        assert told(again) == GANG_MARKS
        assert again["metadata"]["labels"] == first["metadata"]["labels"]
        await world.until(lambda: world.placed() == ["train-0"])


async def test_what_a_pod_was_told_is_corrected_when_its_workload_says_otherwise(cluster: Cluster) -> None:
    """A Deployment whose pods stand alone is annotated to be one gang."""
    async with a_world(cluster, at_creation=True) as world:
        owner = await world.owner(DEPLOYMENT, "web", A_DEPLOYMENT)
        assert told(await created(world, "web-0", owner)) == {marks.GROUPED}
        patch = {"metadata": {"annotations": {"kai.scheduler/min-member": "1"}}}
        await world.client.patch(DEPLOYMENT, "web", patch, world.namespace)
        await world.settle()
        assert told(await world.client.get(POD, "web-0", world.namespace)) == GANG_MARKS


# -- whom nobody trusts ------------------------------------------------------------------------------------------------


async def test_a_pod_that_claims_to_be_in_a_gang_is_put_where_it_belongs(cluster: Cluster) -> None:
    """Labels as the grouper writes them, with the gang of somebody else: they are replaced before the pod is stored."""
    async with a_world(cluster, at_creation=True) as world:
        victim = await created(world, "train-0", await world.owner(JOB, "train", SPEC))
        forged = {key: victim["metadata"]["labels"][key] for key in GANG_MARKS}
        bare = await created(world, "bare", labels=forged)
        assert told(bare) == {marks.GROUPED}
        assert bare["metadata"]["labels"][marks.GROUPED] == "alone"
        other = await created(world, "other-0", await world.owner(JOB, "other", SPEC), labels=forged)
        assert other["metadata"]["labels"][marks.POD_GANG].startswith("pg-other-")


async def test_a_pod_does_not_join_a_gang_of_another_namespace(cluster: Cluster) -> None:
    """Owners are looked for in the namespace of the request, whatever the pod says."""
    async with a_world(cluster, at_creation=True) as world:
        await world.client.create(NAMESPACE, {"metadata": {"name": "tenant"}})
        owner = await world.owner(JOB, "train", SPEC)
        await created(world, "train-0", owner)
        forged = a_pod("forged", owner)
        forged["metadata"]["namespace"] = world.namespace
        assert await admission(world).changes(forged, "tenant") == {}
        assert await admission(world).changes(a_pod("forged", {**owner, "uid": ""}), world.namespace) == {}
        stored = await world.client.create(POD, a_pod("forged", owner), "tenant")
        assert not told(stored)


async def test_pods_do_not_stay_in_a_gang_that_turns_out_to_be_somebody_elses(cluster: Cluster) -> None:
    """A PodGang of the name exists, or appears before the grouper could make its own: the pods are in none."""
    async with a_world(cluster, at_creation=True) as world:
        labels = {marks.GANG: "mine"}
        first = await created(world, "mine-0", labels=labels, annotations={"kai.scheduler/min-member": "2"})
        assert first["metadata"]["labels"][marks.POD_GANG] == "mine"
        groups = [{"name": "default", "minReplicas": 1, "podReferences": []}]
        manifest = {"metadata": {"name": "mine"}, "spec": {"podgroups": groups}}
        await world.client.create(POD_GANG, manifest, world.namespace)
        await asyncio.sleep(0.01)  # virtual: the watch has seen it
        assert not told(await created(world, "mine-1", labels=labels))
        await world.settle(30)
        for name in ("mine-0", "mine-1"):
            assert not told(await world.client.get(POD, name, world.namespace))
        assert await world.events("ForeignPodGang")


async def test_pods_with_much_text_are_not_remembered(cluster: Cluster) -> None:
    """A tenant who tries to create pods, each with other annotations, does not fill the grouper's memory."""
    async with a_world(cluster, at_creation=True) as world:
        owner = await world.owner(JOB, "train", SPEC)
        for number in range(3):
            pod = a_pod(f"big-{number}", owner, annotations={"text": "x" * 10_000})
            assert (await admission(world).changes(pod, world.namespace))["labels"]
        assert not admission(world)._told._found
