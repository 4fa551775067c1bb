"""The built-in backends work with the CRDs their schedulers publish, not only with the ones made from our own types.

The manifests in ``published/`` are written from the reference of each project. The server prunes what they do not know,
so a field of the wrong name would be lost; here it is refused instead. The rules that a project's own webhook enforces
are checked by hand.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest
import yaml

from spinney.api import coscheduling, kai, volcano
from spinney.api import labels as marks
from spinney.api.core import NAMESPACE
from spinney.api.grove import PodCliqueSet
from spinney.api.podgang import POD_GANG, PodGang
from spinney.api.resource import Resource
from spinney.api.schema.crd import manifests
from spinney.api.struct import JSON
from spinney.api.topology_binding import CLUSTER_TOPOLOGY_BINDING, ClusterTopologyBinding
from spinney.backends import BackendContext, SchedulerBackend
from spinney.backends.coscheduling import CoschedulingBackend, CoschedulingConfig
from spinney.backends.kai import KaiScheduler
from spinney.backends.volcano import Volcano
from spinney.kube.client import Client
from spinney.kube.crds import install_crds
from spinney.kube.events import EventRecorder
from spinney.operator.desired import gangs
from spinney.operator.desired.layout import Layout
from spinney.operator.desired.topologies import SetTopology
from spinney.runtime import Runtime, run_virtual
from spinney.server import ApiServer
from spinney.sim.embedded.transport import InProcessTransport
from spinney.testing.backends import Lookup, a_gang
from spinney.testing.builders import a_clique, a_pod_clique_set, a_pod_spec, a_scaling_group, a_topology
from tests.virtual_time import on_virtual_time

PUBLISHED = [yaml.safe_load(path.read_text()) for path in sorted((Path(__file__).parent / "published").glob("*.yaml"))]
GPU = a_pod_spec(cpu="500m", gpus=2)


class Strict(Client):
    """A client whose writes are refused when the server would drop a field."""

    def _writing(self, dry_run: bool, field_manager: str | None = None) -> dict[str, str]:
        return {**super()._writing(dry_run, field_manager), "fieldValidation": "Strict"}


def workload(*, topology: bool) -> PodCliqueSet:
    """Return a set that uses everything a gang can have; with constraints on three levels or with none."""
    host, rack, block = ("host", "rack", "block") if topology else (None, None, None)
    cliques = [
        a_clique("router", 3, 1, pod_spec=GPU),
        a_clique("prefill", 2, pod_spec=GPU, required=host),
        a_clique("decode", 2, pod_spec=GPU),
    ]
    group = a_scaling_group("sg", ["prefill", "decode"], 3, 2, required=rack)
    labels = {marks.KAI_QUEUE: "research"}
    return a_pod_clique_set(
        "model", cliques, [group], required=block, topology="cluster" if topology else None, labels=labels
    )


@asynccontextmanager
async def a_cluster(pcs: PodCliqueSet, binding: ClusterTopologyBinding) -> AsyncIterator[BackendContext]:
    """Run a server that has Grove's kinds and, of the schedulers', the published ones."""
    runtime = Runtime.virtual(seed=2)
    server = ApiServer(runtime)
    client = Strict(InProcessTransport(server), runtime)
    async with server.running():
        await client.create(NAMESPACE, {"metadata": {"name": "test"}})
        await install_crds(client, [crd for crd in manifests() if "grove.io" in crd["spec"]["group"]])
        await install_crds(client, PUBLISHED)
        lookup = Lookup(sets={pcs.metadata.name: pcs}, bindings={binding.metadata.name: binding})
        yield BackendContext(client, EventRecorder(client, "test"), runtime.clock, lookup)


def translated(
    make: Callable[[BackendContext], SchedulerBackend],
    resource: Resource,
    check: Callable[[list[JSON]], None],
    *,
    topology: bool,
) -> None:
    """Sync all gangs of the workload, twice, and check what the server has stored."""
    pcs, binding = workload(topology=topology), a_topology("cluster")
    layout = Layout(pcs)

    async def story() -> None:
        async with a_cluster(pcs, binding) as context:
            backend = make(context)
            await backend.init()
            for plan in gangs.expected_gangs(layout, {}):
                spec = gangs.content(plan, layout, SetTopology(topology, "cluster", binding), {}).spec
                annotations = {marks.TOPOLOGY_NAME: "cluster"}
                plain = a_gang(pcs, name=plan.name)
                metadata = msgspec.structs.replace(plain.metadata, annotations=annotations)
                gang = msgspec.structs.replace(plain, metadata=metadata, spec=spec)
                stored = await context.client.apply(POD_GANG, gang, type=PodGang)
                await backend.sync_pod_gang(stored)
                await backend.sync_pod_gang(stored)
            check(list((await context.client.list(resource, "test")).items))

    run_virtual(story())


def test_pod_groups_of_kai() -> None:
    """The sub-groups are the tree KAI's webhook accepts: leaves have members, inner ones children, names are labels."""

    def check(groups: list[JSON]) -> None:
        assert [each["metadata"]["name"] for each in groups] == ["model-0", "model-0-sg-0"]
        for group in groups:
            spec = group["spec"]
            sub_groups = {each["name"]: each for each in spec["subGroups"]}
            assert len(sub_groups) == len(spec["subGroups"])
            parents = {each["parent"] for each in sub_groups.values() if "parent" in each}
            assert parents <= sub_groups.keys()
            for name, each in sub_groups.items():
                inner = name in parents
                assert ("minSubGroup" in each, "minMember" in each) == (inner, not inner)
                assert "parent" not in sub_groups.get(each.get("parent", ""), {})
            assert (spec["queue"], spec["markUnschedulable"], spec["schedulingBackoff"]) == ("research", True, -1)
            assert spec["stalenessGracePeriod"] == "-1s"
        base = groups[0]["spec"]
        assert base["topologyConstraint"] == {"topology": "cluster", "requiredTopologyLevel": "topology.example/block"}
        assert groups[1]["spec"]["topologyConstraint"]["requiredTopologyLevel"] == "topology.example/rack"

    translated(KaiScheduler, kai.POD_GROUP, check, topology=True)


@on_virtual_time
async def test_topologies_of_kai() -> None:
    """A Topology is made and, since its levels are immutable, made anew when the binding changes."""
    pcs, plain = workload(topology=True), a_topology("cluster")
    async with a_cluster(pcs, plain) as context:
        backend = KaiScheduler(context)
        await backend.init()
        binding = await context.client.create(CLUSTER_TOPOLOGY_BINDING, plain, type=ClusterTopologyBinding)
        await backend.sync_topology(binding)
        fewer = msgspec.structs.replace(binding.spec, levels=binding.spec.levels[1:])
        await backend.sync_topology(msgspec.structs.replace(binding, spec=fewer))
        found = await context.client.get(kai.TOPOLOGY, "cluster")
        assert [each["nodeLabel"] for each in found["spec"]["levels"]] == [level.key for level in fewer.levels]


def test_pod_groups_of_volcano() -> None:
    """Each group of pods has a policy of its own, selected by its PodClique, with its minimum as one sub-group."""

    def check(groups: list[JSON]) -> None:
        assert [each["metadata"]["name"] for each in groups] == ["model-0", "model-0-sg-0"]
        policies = groups[0]["spec"]["subGroupPolicy"]
        assert groups[0]["spec"]["minMember"] == sum(each["subGroupSize"] for each in policies) == 9
        for each in policies:
            assert each["labelSelector"] == {"matchLabels": {marks.POD_CLIQUE: each["name"]}}
            assert (each["matchLabelKeys"], each["minSubGroups"]) == ([marks.POD_CLIQUE], 1)

    translated(Volcano, volcano.POD_GROUP, check, topology=False)


def test_pod_groups_of_scheduler_plugins() -> None:
    """The spec has the minimum, what it requests together, and nothing the CRD does not know."""

    def check(groups: list[JSON]) -> None:
        assert [each["spec"] for each in groups] == [
            {"minMember": 9, "minResources": {"cpu": "4500m", "nvidia.com/gpu": "18"}, "scheduleTimeoutSeconds": 90},
            {"minMember": 4, "minResources": {"cpu": "2000m", "nvidia.com/gpu": "8"}, "scheduleTimeoutSeconds": 90},
        ]

    config = CoschedulingConfig(schedule_timeout_seconds=90)
    translated(lambda context: CoschedulingBackend(context, config), coscheduling.POD_GROUP, check, topology=False)


@pytest.mark.parametrize("crd", PUBLISHED, ids=lambda crd: crd["metadata"]["name"])
def test_our_own_crds_know_every_published_field(crd: JSON) -> None:
    """Where Spinney installs the CRD of another scheduler, because nobody has, no field of its spec is missing."""
    name = crd["metadata"]["name"]
    (ours,) = [each for each in manifests() if each["metadata"]["name"] == name]

    def fields(manifest: JSON) -> set[str]:
        (version,) = [each for each in manifest["spec"]["versions"] if each["storage"]]
        return set(version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"])

    assert fields(crd) <= fields(ours)


@on_virtual_time
async def test_the_reader_of_this_module_is_not_misled() -> None:
    """A field that no published CRD has is refused by the client these tests use."""
    async with a_cluster(workload(topology=False), a_topology("cluster")) as context:
        manifest = {"metadata": {"name": "x", "namespace": "test"}, "spec": {"minMember": 1, "noSuchField": 1}}
        await _refused(context.client.create(kai.POD_GROUP, manifest))


async def _refused(writing: Awaitable[object]) -> None:
    with pytest.raises(Exception, match="noSuchField"):
        await writing
