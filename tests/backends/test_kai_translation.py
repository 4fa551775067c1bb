"""What a gang becomes for KAI."""

import msgspec
import pytest

from spinney.api import labels as marks
from spinney.api.grove import PodCliqueSet
from spinney.api.kai import POD_GROUP, TOPOLOGY, PodGroup, Topology
from spinney.api.podgang import POD_GANG, PodGang
from spinney.api.topology_binding import CLUSTER_TOPOLOGY_BINDING, ClusterTopologyBinding, SchedulerTopologyBinding
from spinney.backends import Rejected
from spinney.backends.kai import KaiScheduler
from spinney.operator.desired import gangs
from spinney.operator.desired.layout import Layout
from spinney.operator.desired.topologies import SetTopology
from spinney.testing.backends import a_gang, a_pod
from spinney.testing.builders import a_clique, a_pod_clique_set, a_scaling_group, a_topology
from tests.backends.bench import asking, stored
from tests.virtual_time import on_virtual_time


def workload(**labels: str) -> PodCliqueSet:
    """Return a set with three levels of topology constraints."""
    return a_pod_clique_set(
        "model",
        [a_clique("router", 2), a_clique("prefill", 2, required="host"), a_clique("decode", 2)],
        [a_scaling_group("sg", ["prefill", "decode"], 2, 2, required="rack")],
        required="block",
        topology="cluster",
        labels={marks.KAI_QUEUE: "research", **labels},
    )


def gang_of(pcs: PodCliqueSet, binding: ClusterTopologyBinding) -> PodGang:
    """Return the base gang of a set with its constraints translated."""
    layout = Layout(pcs)
    plan = gangs.expected_gangs(layout, {})[0]
    spec = gangs.content(plan, layout, SetTopology(True, "cluster", binding), {}).spec
    annotated = {marks.TOPOLOGY_NAME: "cluster"}
    gang = a_gang(pcs)
    return msgspec.structs.replace(
        gang, spec=spec, metadata=msgspec.structs.replace(gang.metadata, annotations=annotated)
    )


@on_virtual_time
async def test_kais_pod_grouper_is_told_to_leave_the_gang_alone() -> None:
    """The gang gets the annotation once; a sync that finds it writes nothing."""
    async with asking(KaiScheduler, sets=[workload()], bindings=[a_topology("cluster")]) as kai:
        gang = await stored(kai, gang_of(workload(), a_topology("cluster")))
        await kai.sync_pod_gang(gang)
        found = await kai.context.client.get(POD_GANG, "model-0", "test", type=PodGang)
        assert found.metadata.annotations[marks.KAI_SKIP_POD_GROUPER] == "true"
        await kai.sync_pod_gang(found)
        again = await kai.context.client.get(POD_GANG, "model-0", "test", type=PodGang)
        assert again.metadata.resource_version == found.metadata.resource_version


@on_virtual_time
async def test_a_gang_becomes_a_tree_of_sub_groups() -> None:
    """Topology groups are inner sub-groups that need all their children; every group of pods is a leaf."""
    pcs, binding = workload(), a_topology("cluster")
    async with asking(KaiScheduler, sets=[pcs], bindings=[binding]) as kai:
        gang = await stored(kai, gang_of(pcs, binding))
        await kai.sync_pod_gang(gang)
        group = await kai.context.client.get(POD_GROUP, "model-0", "test", type=PodGroup)
        assert (group.spec.queue, group.spec.min_member) == ("research", 10)
        assert group.spec.topology_constraint is not None
        assert group.spec.topology_constraint.required_topology_level == "topology.example/block"
        tree = {each.name: (each.parent, each.min_member, each.min_sub_group) for each in group.spec.sub_groups}
        assert tree == {
            "model-0-sg-0": (None, None, 2),
            "model-0-sg-1": (None, None, 2),
            "model-0-router": (None, 2, None),
            "model-0-sg-0-prefill": ("model-0-sg-0", 2, None),
            "model-0-sg-0-decode": ("model-0-sg-0", 2, None),
            "model-0-sg-1-prefill": ("model-0-sg-1", 2, None),
            "model-0-sg-1-decode": ("model-0-sg-1", 2, None),
        }
        levels = {
            each.name: each.topology_constraint.required_topology_level
            for each in group.spec.sub_groups
            if each.topology_constraint is not None
        }
        assert levels == {
            "model-0-sg-0": "topology.example/rack",
            "model-0-sg-1": "topology.example/rack",
            "model-0-sg-0-prefill": "kubernetes.io/hostname",
            "model-0-sg-1-prefill": "kubernetes.io/hostname",
        }
        assert group.spec.staleness_grace_period == "-1s"
        assert group.metadata.owner_references[0].uid == gang.metadata.uid


@on_virtual_time
async def test_what_kai_or_an_administrator_set_is_kept() -> None:
    """The queue and the fields KAI owns on an existing PodGroup survive further syncs."""
    pcs, binding = workload(), a_topology("cluster")
    async with asking(KaiScheduler, sets=[pcs], bindings=[binding]) as kai:
        gang = await stored(kai, gang_of(pcs, binding))
        await kai.sync_pod_gang(gang)
        patch = {"spec": {"queue": "moved", "markUnschedulable": False}, "metadata": {"labels": {"theirs": "1"}}}
        await kai.context.client.patch(POD_GROUP, "model-0", patch, "test")
        smaller = msgspec.structs.replace(gang.spec, pod_groups=gang.spec.pod_groups[:1], priority_class_name="high")
        await kai.sync_pod_gang(msgspec.structs.replace(gang, spec=smaller))
        group = await kai.context.client.get(POD_GROUP, "model-0", "test", type=PodGroup)
        assert group.spec.priority_class_name == "high"
        assert (group.spec.queue, group.spec.mark_unschedulable) == ("moved", False)
        assert group.metadata.labels["theirs"] == "1"


@on_virtual_time
async def test_pods_find_group_and_sub_group() -> None:
    """Pods carry the annotations and the label by which KAI finds their PodGroup and leaf."""
    pcs = workload()
    async with asking(KaiScheduler, sets=[pcs]) as kai:
        gang = a_gang(pcs)
        pod = a_pod(gang, gang.spec.pod_groups[0], 0)
        kai.prepare_pod(pod, gang)
        assert pod["metadata"]["annotations"] == {"kai.scheduler/skip-podgrouper": "true", "pod-group-name": "model-0"}
        assert pod["metadata"]["labels"]["kai.scheduler/subgroup-name"] == "model-0-router"


@pytest.mark.parametrize(
    ("labels", "clique_label", "fits"),
    [({marks.KAI_QUEUE: "a"}, None, True), ({}, "a", True), ({marks.KAI_QUEUE: "a"}, "b", False), ({}, None, False)],
)
@on_virtual_time
async def test_exactly_one_queue_must_be_named(labels: dict[str, str], clique_label: str | None, fits: bool) -> None:
    """A set names its queue on itself or on its cliques; none, or two different ones, are rejected."""
    own = {} if clique_label is None else {marks.KAI_QUEUE: clique_label}
    pcs = a_pod_clique_set("model", [a_clique("worker", 1, labels=own)], labels=labels)
    async with asking(KaiScheduler) as kai:
        if fits:
            assert await kai.validate_pod_clique_set(pcs, None) == []
        else:
            with pytest.raises(Rejected, match="queue"):
                await kai.validate_pod_clique_set(pcs, None)


@on_virtual_time
async def test_a_set_level_constraint_with_scaling_groups_is_a_degradation() -> None:
    """That base and scaled gangs may land in different domains is said, and not a reason to reject."""
    async with asking(KaiScheduler) as kai:
        (found,) = await kai.validate_pod_clique_set(workload(), None)
        assert found.capability == "required_topology"


@on_virtual_time
async def test_a_topology_follows_its_binding() -> None:
    """A KAI Topology is made from the levels, and made anew when they change, for its levels cannot be edited."""
    async with asking(KaiScheduler) as kai:
        client = kai.context.client
        binding = await client.create(CLUSTER_TOPOLOGY_BINDING, a_topology("cluster"), type=ClusterTopologyBinding)
        assert (await kai.sync_topology(binding)).in_sync
        first = await client.get(TOPOLOGY, "cluster", type=Topology)
        assert (await kai.sync_topology(binding)).in_sync
        assert (await client.get(TOPOLOGY, "cluster", type=Topology)).metadata.uid == first.metadata.uid
        fewer = msgspec.structs.replace(binding.spec, levels=binding.spec.levels[:2])
        await kai.sync_topology(msgspec.structs.replace(binding, spec=fewer))
        second = await client.get(TOPOLOGY, "cluster", type=Topology)
        assert [level.node_label for level in second.spec.levels] == ["topology.example/zone", "topology.example/block"]


@on_virtual_time
async def test_an_external_topology_is_named_in_the_pod_group() -> None:
    """Where the binding refers to a Topology that somebody else manages, PodGroups name that one."""
    pcs, plain = workload(), a_topology("cluster")
    reference = SchedulerTopologyBinding(scheduler_name="kai-scheduler", topology_reference="theirs")
    spec = msgspec.structs.replace(plain.spec, scheduler_topology_bindings=(reference,))
    binding = msgspec.structs.replace(plain, spec=spec)
    async with asking(KaiScheduler, sets=[pcs], bindings=[binding]) as kai:
        await kai.sync_pod_gang(await stored(kai, gang_of(pcs, binding)))
        group = await kai.context.client.get(POD_GROUP, "model-0", "test", type=PodGroup)
        assert group.spec.topology_constraint is not None
        assert group.spec.topology_constraint.topology == "theirs"
        state = await kai.check_topology(binding, "theirs")
        assert not state.in_sync
        assert "does not exist" in state.message
