"""kube-scheduler's own gangs, in the forms of three releases."""

import msgspec
import pytest

from spinney.api import workload_v1alpha1, workload_v1alpha2, workload_v1beta1
from spinney.api.conditions import set_condition
from spinney.api.core import Pod
from spinney.api.meta import Condition
from spinney.api.podgang import PodGang
from spinney.api.struct import JSON, convert
from spinney.backends import BackendUnavailable, Rejected, additions
from spinney.backends.kube import NO_GANGS, KubeScheduler, KubeSchedulerConfig
from spinney.backends.native_gangs import NEWEST_FIRST
from spinney.operator.desired import gangs
from spinney.operator.desired.layout import Layout
from spinney.operator.desired.topologies import SetTopology
from spinney.server import ServerOptions
from spinney.testing.backends import a_gang, a_pod
from spinney.testing.builders import a_clique, a_pod_clique_set, a_pod_spec, a_scaling_group, a_topology
from tests.backends.bench import asking, stored
from tests.virtual_time import on_virtual_time

PCS = a_pod_clique_set("model", [a_clique("leader", 1), a_clique("worker", 4, 2)])


def native(context: object) -> KubeScheduler:
    """Return the backend with gang scheduling on."""
    return KubeScheduler(context, KubeSchedulerConfig(gang_scheduling=True))  # type: ignore[arg-type]


@pytest.mark.parametrize("release", ["1.35", "1.36", "1.37"])
@on_virtual_time
async def test_each_release_gets_its_own_form(release: str) -> None:
    """One native group per gang, with the sum of the minimums, in the kind that the release serves."""
    resource = {
        "1.35": workload_v1alpha1.WORKLOAD,
        "1.36": workload_v1alpha2.POD_GROUP,
        "1.37": workload_v1beta1.POD_GROUP,
    }[release]
    async with asking(native, sets=[PCS], options=ServerOptions(kubernetes_version=release)) as kube:
        gang = await stored(kube, a_gang(PCS))
        await kube.sync_pod_gang(gang)
        (found,) = (await kube.context.client.list(resource, "test")).items
        spec = found["spec"]
        policy = spec["podGroups"][0]["policy"] if release == "1.35" else spec["schedulingPolicy"]
        assert policy == {"gang": {"minCount": 3}}
        assert found["metadata"]["name"].startswith("model-0-")


@on_virtual_time
async def test_only_the_minimum_is_in_the_gang() -> None:
    """The first pods of each group join, the others do not, and wait until the gang is scheduled."""
    async with asking(native, sets=[PCS]) as kube:
        gang = await stored(kube, a_gang(PCS))
        (worker,) = [group for group in gang.spec.pod_groups if group.name.endswith("worker")]
        joined = []
        for index in range(4):
            pod = a_pod(gang, worker, index)
            kube.prepare_pod(pod, gang)
            joined.append("schedulingGroup" in pod["spec"])
        assert joined == [True, True, False, False]
        beyond = convert(Pod, a_pod(gang, worker, 3))
        assert not kube.may_release(beyond, gang)
        conditions = set_condition((), Condition(type="Scheduled", status="True"), kube.context.clock.now())
        placed = msgspec.structs.replace(gang.status, conditions=conditions)
        assert kube.may_release(beyond, msgspec.structs.replace(gang, status=placed))


@on_virtual_time
async def test_a_recycled_gang_gets_a_new_group() -> None:
    """Another incarnation has another native group, and the former one is deleted."""
    async with asking(native, sets=[PCS]) as kube:
        gang = await stored(kube, a_gang(PCS))
        await kube.sync_pod_gang(gang)
        reborn = await stored(kube, _in_life(a_gang(PCS), "x7k2p"))
        await kube.sync_pod_gang(reborn)
        listing = await kube.context.client.list(workload_v1beta1.POD_GROUP, "test")
        live = [each["metadata"]["name"] for each in listing.items if "deletionTimestamp" not in each["metadata"]]
        assert live == ["model-0-x7k2p"]


@pytest.mark.parametrize("release", ["1.35", "1.36", "1.37"])
@on_virtual_time
async def test_a_pod_of_a_former_life_is_told_from_one_of_this(release: str) -> None:
    """A member that names the group of a former life is of no use; one of this life and one beyond the minimum are."""
    async with asking(native, sets=[PCS], options=ServerOptions(kubernetes_version=release)) as kube:
        gang = await stored(kube, a_gang(PCS))
        reborn = _in_life(gang, "x7k2p")
        (worker,) = [group for group in gang.spec.pod_groups if group.name.endswith("worker")]
        for index, is_member in ((1, True), (2, False)):
            manifest = a_pod(gang, worker, index)
            kube.prepare_pod(manifest, gang)
            pod = convert(Pod, manifest)
            assert kube.is_prepared_for(pod, gang)
            assert kube.is_prepared_for(pod, reborn) is not is_member


@on_virtual_time
async def test_after_an_upgrade_the_new_form_is_used() -> None:
    """A form of native gangs that is no longer served is exchanged for the one that is, at the next sync."""
    async with asking(native, sets=[PCS]) as kube:
        kube._native = next(each for each in NEWEST_FIRST if each.release == "1.35")
        kube._topology = False
        gang = await stored(kube, a_gang(PCS))
        await kube.sync_pod_gang(gang)
        (found,) = (await kube.context.client.list(workload_v1beta1.POD_GROUP, "test")).items
        pod = a_pod(gang, gang.spec.pod_groups[0], 0)
        kube.prepare_pod(pod, gang)
        assert pod["spec"]["schedulingGroup"] == {"podGroupName": found["metadata"]["name"]}
        assert kube.capabilities.required_topology


@on_virtual_time
async def test_a_minimum_that_changes_is_patched() -> None:
    """Since 1.37 a group follows the sum of the minimums and stays the same object."""
    async with asking(native, sets=[PCS]) as kube:
        gang = await stored(kube, a_gang(PCS))
        await kube.sync_pod_gang(gang)
        (before,) = (await kube.context.client.list(workload_v1beta1.POD_GROUP, "test")).items
        fewer = msgspec.structs.replace(gang.spec, pod_groups=gang.spec.pod_groups[:1])
        await kube.sync_pod_gang(msgspec.structs.replace(gang, spec=fewer))
        (after,) = (await kube.context.client.list(workload_v1beta1.POD_GROUP, "test")).items
        assert after["metadata"]["uid"] == before["metadata"]["uid"]
        minimums = [each["spec"]["schedulingPolicy"]["gang"]["minCount"] for each in (before, after)]
        assert minimums == [3, 1]


@on_virtual_time
async def test_the_priority_of_the_group_is_that_of_its_pods() -> None:
    """A priority class in the pod spec wins over the set's, as it does for the pods."""
    pcs = a_pod_clique_set("model", [a_clique("worker", 2, pod_spec=a_pod_spec(priorityClassName="own"))])
    async with asking(native, sets=[pcs]) as kube:
        await kube.context.client.raw(
            "POST",
            "/apis/scheduling.k8s.io/v1/priorityclasses",
            body=b'{"metadata":{"name":"own"},"value":10}',
        )
        await kube.sync_pod_gang(await stored(kube, a_gang(pcs)))
        (found,) = (await kube.context.client.list(workload_v1beta1.POD_GROUP, "test")).items
        assert found["spec"]["priorityClassName"] == "own"


@on_virtual_time
async def test_mixed_priorities_are_rejected() -> None:
    """kube-scheduler refuses a gang whose pods differ in priority, so admission does."""
    pcs = a_pod_clique_set("model", [a_clique("a"), a_clique("b", pod_spec=a_pod_spec(priorityClassName="own"))])
    async with asking(native) as kube:
        with pytest.raises(Rejected, match="priority class 'own'"):
            await kube.validate_pod_clique_set(pcs, None)


@on_virtual_time
async def test_without_native_gangs_the_workload_is_told() -> None:
    """kube-scheduler without gang scheduling accepts a workload and says what it loses."""
    async with asking(KubeScheduler) as kube:
        (found,) = await kube.validate_pod_clique_set(PCS, None)
        assert found.message == NO_GANGS
        assert not kube.capabilities.gang_scheduling
        with pytest.raises(Rejected, match="rack"):
            await kube.validate_pod_clique_set(a_pod_clique_set(required="rack", topology="cluster"), None)


@on_virtual_time
async def test_a_part_of_a_gang_cannot_be_confined() -> None:
    """A native gang has one constraint for all its pods, so one for a part of it is rejected, and so are stragglers."""
    async with asking(native) as kube:
        assert kube.capabilities.required_topology
        whole = a_pod_clique_set("model", [a_clique("a"), a_clique("b")], required="rack", topology="cluster")
        assert await kube.validate_pod_clique_set(whole, None) == []
        part = a_pod_clique_set("model", [a_clique("a"), a_clique("b", required="rack")])
        with pytest.raises(Rejected, match="a part of a gang"):
            await kube.validate_pod_clique_set(part, None)
        twice = a_scaling_group("sg", ["a"], 2, 2, required="rack")
        with pytest.raises(Rejected, match="a part of a gang"):
            await kube.validate_pod_clique_set(a_pod_clique_set("model", [a_clique("a")], [twice]), None)
        beyond = a_pod_clique_set("model", [a_clique("a", 3, 1)], required="rack", topology="cluster")
        with pytest.raises(Rejected, match="beyond its minAvailable"):
            await kube.validate_pod_clique_set(beyond, None)


@on_virtual_time
async def test_a_gang_of_one_group_takes_the_narrowest_constraint() -> None:
    """Of the constraints of set, scaling group and clique the narrowest holds; what is lost between gangs is said."""
    group = a_scaling_group("sg", ["worker"], 2, 1, required="rack")
    pcs = a_pod_clique_set("model", [a_clique("worker", 2)], [group], required="block", topology="cluster")
    layout, binding = Layout(pcs), a_topology("cluster")
    content = gangs.content(gangs.expected_gangs(layout, {})[0], layout, SetTopology(True, "cluster", binding), {})
    async with asking(native, sets=[pcs], bindings=[binding]) as kube:
        (lost,) = await kube.validate_pod_clique_set(pcs, None)
        assert lost.capability == "required_topology"
        await kube.sync_pod_gang(await stored(kube, msgspec.structs.replace(a_gang(pcs), spec=content.spec)))
        (found,) = (await kube.context.client.list(workload_v1beta1.POD_GROUP, "test")).items
        assert _key(found) == "topology.example/rack"


@on_virtual_time
async def test_a_cluster_without_native_gangs_stops_the_operator() -> None:
    """Gang scheduling on a cluster that does not serve it fails at start and says which flags are missing."""
    with pytest.raises(BackendUnavailable, match="--feature-gates=GenericWorkload=true"):
        async with asking(native, options=ServerOptions(gang_versions=())):
            pass


def composite(context: object) -> KubeScheduler:
    """Return the backend with trees of native groups."""
    return KubeScheduler(context, KubeSchedulerConfig(gang_scheduling=True, composites=True))  # type: ignore[arg-type]


@on_virtual_time
async def test_a_composite_has_a_group_for_each_part() -> None:
    """Groups that share a constraint have a composite of their own; every leaf keeps its minimum and its key."""
    pcs = a_pod_clique_set(
        "model",
        [a_clique("router", 2, 1), a_clique("prefill", 2, required="host"), a_clique("decode", 2)],
        [a_scaling_group("sg", ["prefill", "decode"], 2, 2, required="rack")],
        required="block",
        topology="cluster",
    )
    binding = a_topology("cluster")
    layout = Layout(pcs)
    content = gangs.content(gangs.expected_gangs(layout, {})[0], layout, SetTopology(True, "cluster", binding), {})
    async with asking(composite, sets=[pcs], bindings=[binding]) as kube:
        assert kube.capabilities.group_topology
        assert [each.capability for each in await kube.validate_pod_clique_set(pcs, None)] == ["required_topology"]
        gang = await stored(kube, msgspec.structs.replace(a_gang(pcs), spec=content.spec))
        await kube.sync_pod_gang(gang)
        client, life = kube.context.client, (gang.metadata.uid or "")[:5]
        inner = (await client.list(workload_v1beta1.COMPOSITE_POD_GROUP, "test")).items
        assert {each["metadata"]["name"]: _key(each) for each in inner} == {
            f"model-0-{life}": "topology.example/block",
            f"model-0-sg-0-{life}": "topology.example/rack",
            f"model-0-sg-1-{life}": "topology.example/rack",
        }
        root = next(each for each in inner if each["metadata"]["name"] == f"model-0-{life}")
        assert root["spec"]["schedulingPolicy"] == {"gang": {"minGroupCount": 3}}
        assert root["spec"]["disruptionMode"] == {"all": {}}
        parents = {each["metadata"]["name"]: each["spec"].get("parentCompositePodGroupName") for each in inner}
        assert parents.pop(root["metadata"]["name"]) is None
        assert set(parents.values()) == {root["metadata"]["name"]}
        leaves = (await client.list(workload_v1beta1.POD_GROUP, "test")).items
        found = {
            each["metadata"]["name"].removesuffix(f"-{life}"): (
                each["spec"]["parentCompositePodGroupName"].removesuffix(f"-{life}"),
                each["spec"]["schedulingPolicy"]["gang"]["minCount"],
                _key(each),
            )
            for each in leaves
        }
        assert found["model-0-router"] == ("model-0", 1, None)
        assert found["model-0-sg-1-prefill"] == ("model-0-sg-1", 2, "kubernetes.io/hostname")
        assert len(found) == 5
        pod = a_pod(gang, gang.spec.pod_groups[0], 7)
        kube.prepare_pod(pod, gang)
        assert pod["spec"]["schedulingGroup"] == {"podGroupName": f"model-0-router-{life}"}


@on_virtual_time
async def test_a_gang_too_wide_for_a_composite_stays_flat() -> None:
    """More groups than a Workload has templates make one flat group, and the workload is told."""
    pcs = a_pod_clique_set("model", [a_clique(f"c{n}") for n in range(9)])
    async with asking(composite, sets=[pcs]) as kube:
        (found,) = await kube.validate_pod_clique_set(pcs, None)
        assert "is flat" in found.message
        await kube.sync_pod_gang(await stored(kube, a_gang(pcs)))
        assert len((await kube.context.client.list(workload_v1beta1.POD_GROUP, "test")).items) == 1


def _key(group: JSON) -> str | None:
    topology = group["spec"].get("schedulingConstraints", {}).get("topology")
    return topology[0]["key"] if topology else None


def _in_life(gang: PodGang, incarnation: str) -> PodGang:
    annotations = {**gang.metadata.annotations, additions.INCARNATION: incarnation}
    return msgspec.structs.replace(gang, metadata=msgspec.structs.replace(gang.metadata, annotations=annotations))
