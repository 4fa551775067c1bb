"""Objects that are valid and make no sense: their own pods say so, and everybody else's are placed."""

import pytest

from spinney.api.core import CONFIG_MAP, POD, RESOURCE_QUOTA
from spinney.api.resource import Resource
from spinney.api.scheduling import PRIORITY_CLASS
from spinney.api.struct import JSON
from tests.conftest import Cluster
from tests.grouping.test_controller import A_DEPLOYMENT, A_JOB, DEPLOYMENT, RAY, install
from tests.grouping.world import JOB, World, a_pod, a_world, reference

pytestmark = pytest.mark.parametrize("cluster_name", ["embedded"])

FLOW = Resource("jobs.example.com", "v1", "PyFlow", "pyflows")
OWN = """
kind: GrouperConfiguration
rules:
- kind: jobs.example.com/PyFlow
  roles:
  - {name: driver, replicas: 1, pods: {role: driver}}
  - {name: worker, replicas: spec.workers.count, pods: {role: worker}}
"""


async def others_are_placed(world: World) -> None:
    """See that a sound Job beside it starts."""
    await world.job("sound", 2, least=2)
    await world.until(lambda: len(world.placed("sound")) == 2)


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"worker": {"count": 2}}, "spec.workers.count: not there, expected a whole number"),
        ({"workers": {"count": "two"}}, "spec.workers.count: found 'two', expected a whole number"),
        ({"workers": {"count": -2}}, "comes to -2, expected 0 to 999999999"),
        ({"workers": {"count": 10**12}}, "comes to 1000000000000, expected 0 to 999999999"),
    ],
)
async def test_a_count_that_is_none_is_said_on_the_pods(cluster: Cluster, spec: JSON, said: str) -> None:
    """The event names rule, object, field and what was found; other workloads of the same kind are placed."""
    async with a_world(cluster, configuration=OWN) as world:
        await install(world, FLOW)
        odd, sound = await world.owner(FLOW, "odd", spec), await world.owner(FLOW, "flow", {"workers": {"count": 1}})
        await world.pod("odd-0", odd, labels={"role": "worker"})
        for role in ("driver", "worker"):
            await world.pod(f"flow-{role}", sound, labels={"role": role})
        await world.until(lambda: len(world.placed("flow")) == 2)
        await world.settle()
        (text,) = await world.events("GroupingRefused")
        assert "the rule for jobs.example.com/PyFlow cannot be applied to PyFlow odd: " in text
        assert said in text
        assert world.placed("odd") == []


@pytest.mark.parametrize(
    "least", ["2147483647", "99999999999", "0", "-1", "1e3", " 3 ", "\N{ARABIC-INDIC DIGIT THREE}"]
)
async def test_an_annotation_that_is_no_count_is_said_on_the_pod(cluster: Cluster, least: str) -> None:
    """What is not a whole number of a sensible size is refused, with the bounds."""
    async with a_world(cluster) as world:
        annotations = {"kai.scheduler/batch-min-member": least}
        owner = await world.owner(JOB, "odd", {**A_JOB, "parallelism": 2**31 - 1}, annotations=annotations)
        await world.pod("odd-0", owner)
        await others_are_placed(world)
        await world.settle()
        (text,) = await world.events("GroupingRefused")
        assert f"found {least!r}, expected a whole number from 1 to 999999999" in text


async def test_owners_that_own_each_other_end_the_climb(cluster: Cluster) -> None:
    """A loop of owner references is walked for a while, and the pod is placed."""
    async with a_world(cluster) as world:
        client, namespace = world.client, world.namespace
        first = await client.create(CONFIG_MAP, {"metadata": {"name": "a"}}, namespace)
        above = [reference(CONFIG_MAP, first)]
        second = await client.create(CONFIG_MAP, {"metadata": {"name": "b", "ownerReferences": above}}, namespace)
        loop = {"metadata": {"ownerReferences": [reference(CONFIG_MAP, second)]}}
        await client.patch(CONFIG_MAP, "a", loop, namespace)
        await world.pod("looped", reference(CONFIG_MAP, first))
        await world.until(lambda: world.placed() == ["looped"])


async def test_an_owner_of_a_kind_that_is_not_served_is_said_on_the_pod(cluster: Cluster) -> None:
    """The pod waits and names the owner that is not there."""
    async with a_world(cluster) as world:
        owner = {"apiVersion": "no.such/v1", "kind": "Thing", "name": "gone", "uid": "u", "controller": True}
        await world.pod("orphan", owner)
        await others_are_placed(world)
        await world.settle()
        (text,) = await world.events("GroupingRefused")
        assert "Thing gone (no.such/v1) owns the pod and is not there" in text


async def test_pods_of_what_should_have_none_are_placed(cluster: Cluster) -> None:
    """A Job of parallelism 0 and a Ray group of 0 whose pods exist, and a group that is in no spec, wait for nobody."""
    async with a_world(cluster) as world:
        await world.pod("job-0", await world.owner(JOB, "job", {**A_JOB, "parallelism": 0}))
        await install(world, RAY)
        empty = {"workerGroupSpecs": [{"groupName": "gpu", "replicas": 0, "minReplicas": 0}]}
        owner = await world.owner(RAY, "ray", empty)
        for name, group in (("head", "headgroup"), ("worker", "gpu"), ("stray", "other")):
            await world.pod(f"ray-{name}", owner, labels={"ray.io/group": group})
        await world.until(lambda: sorted(world.placed()) == ["job-0", "ray-head", "ray-stray", "ray-worker"])


async def test_a_gang_that_the_api_server_refuses_is_said_on_its_pods(cluster: Cluster) -> None:
    """A quota on gangs keeps the pods waiting; they say why, once, and start when there is room in it."""
    async with a_world(cluster) as world:
        quota = {"metadata": {"name": "none"}, "spec": {"hard": {"count/podgangs.scheduler.grove.io": "0"}}}
        await world.client.create(RESOURCE_QUOTA, quota, world.namespace)
        await world.pod("job-0", await world.owner(JOB, "job", A_JOB))
        await world.settle()
        (text,) = await world.events("GroupingRefused")
        assert "cannot be written" in text
        assert "exceeded quota: none" in text
        await world.client.delete(RESOURCE_QUOTA, "none", world.namespace)
        await world.until(lambda: world.placed() == ["job-0"], 600)


async def test_roles_of_one_name_are_said_on_the_pods(cluster: Cluster) -> None:
    """Two worker groups of one name cannot be told apart."""
    async with a_world(cluster) as world:
        await install(world, RAY)
        owner = await world.owner(RAY, "ray", {"workerGroupSpecs": [{"groupName": "gpu", "replicas": 1}] * 2})
        await world.pod("ray-head", owner, labels={"ray.io/group": "headgroup"})
        await others_are_placed(world)
        await world.settle()
        (text,) = await world.events("GroupingRefused")
        assert "2 roles are called 'gpu'; each needs a name of its own" in text


@pytest.mark.parametrize("at_creation", [True, False])
async def test_a_priority_class_with_a_name_longer_than_a_label_counts(cluster: Cluster, *, at_creation: bool) -> None:
    """A pod on its own is created and placed; its class is the one that its spec names."""
    async with a_world(cluster, at_creation=at_creation) as world:
        name = "urgent." + "x" * 63
        await world.client.create(PRIORITY_CLASS, {"metadata": {"name": name}, "value": 1000})
        await world.settle()
        manifest = a_pod("web-0", await world.owner(DEPLOYMENT, "web", A_DEPLOYMENT))
        manifest["spec"]["priorityClassName"] = name
        await world.client.create(POD, manifest, world.namespace)
        await world.until(lambda: world.placed() == ["web-0"])
        stored = await world.client.get(POD, "web-0", world.namespace)
        assert "priorityClassName" not in stored["metadata"]["labels"]


@pytest.mark.parametrize("at_creation", [True, False])
async def test_a_queue_with_a_name_longer_than_a_label_is_said_on_the_pod(
    cluster: Cluster, *, at_creation: bool
) -> None:
    """A project in a node pool may make one: the pod is created and says so, once, and waits in no other queue."""
    async with a_world(cluster, at_creation=at_creation) as world:
        owner = await world.owner(DEPLOYMENT, "web", A_DEPLOYMENT, labels={"project": "p" * 40})
        await world.pod("web-0", owner, labels={"kai.scheduler/node-pool": "n" * 40})
        await others_are_placed(world)
        await world.settle()
        (text,) = await world.events("GroupingRefused")
        assert "the labels of a gang of its own cannot be written: " in text
        assert f"{'p' * 40}-{'n' * 40}" in text
        assert world.placed("web") == []
