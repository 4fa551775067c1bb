"""Topologies are named by ClusterTopologyBindings, kept for schedulers, and checked (Grove's TAS 1 and 17 to 22)."""

from collections.abc import Awaitable

import pytest

from spinney.api import kai
from spinney.api.conditions import find_condition
from spinney.api.core import NODE, Node
from spinney.api.grove import PodCliqueSet
from spinney.api.podgang import INITIALIZED
from spinney.api.struct import JSON
from spinney.api.topology_binding import CLUSTER_TOPOLOGY_BINDING
from spinney.kube.errors import ApiError
from tests.e2e.backends import KAI, WITH_TOPOLOGY, Backend, on
from tests.e2e.floor import BLOCK, HOST, RACK, ZONE, a_binding
from tests.e2e.harness import Stage, Stages
from tests.e2e.packing import expect_together
from tests.e2e.workloads import topology
from tests.e2e.workloads.parts import a_clique, a_constraint, a_group, a_set

NVL_BLOCK = "example.com/nvl-block"
NVLINK_DOMAIN = "example.com/nvlink-domain"


@pytest.fixture(params=WITH_TOPOLOGY, ids=str)
def backend(request: pytest.FixtureRequest) -> Backend:
    """The backends that place by topology."""
    row: Backend = request.param
    return row


def levels(found: JSON) -> list[str]:
    """Return the node labels of a KAI Topology."""
    return [level["nodeLabel"] for level in found["spec"]["levels"]]


def drift(binding: JSON) -> tuple[str, str] | None:
    """Return status and reason of the drift condition of a binding."""
    conditions = binding.get("status", {}).get("conditions", [])
    return next(
        ((each["status"], each["reason"]) for each in conditions if each["type"] == "SchedulerTopologyDrift"), None
    )


async def rejected(creation: Awaitable[object]) -> str:
    """Await something that must be refused, and return the refusal."""
    with pytest.raises(ApiError) as refusal:
        await creation
    assert 400 <= refusal.value.status < 500
    return str(refusal.value)


@on(KAI)
async def test_tas1_a_topology_is_made_from_a_binding(a_stage: Stages) -> None:
    """A binding of four levels becomes a KAI Topology of the same name, and every node has all its labels."""
    async with a_stage(28) as stage:
        await stage.bind_topology()
        made = await stage.until_seen(kai.TOPOLOGY, "grove-topology", lambda found: True)
        assert levels(made) == [ZONE, BLOCK, RACK, HOST]
        for node in stage.chronicle.all(Node).values():
            assert {ZONE, BLOCK, RACK, HOST} <= node.metadata.labels.keys()
        await stage.until_seen(CLUSTER_TOPOLOGY_BINDING, "grove-topology", lambda it: drift(it) == ("False", "InSync"))


async def test_tas17_two_topologies_over_different_labels(a_stage: Stages) -> None:
    """Two kinds of machines have their own levels; each workload is packed by the labels of its topology."""
    async with a_stage(28) as stage:
        for number, name in enumerate(stage.fleet.names[14:], start=14):
            labels = {RACK: None, NVL_BLOCK: f"nvl-{number // 7}", NVLINK_DOMAIN: f"domain-{number // 2}"}
            await stage.client.patch(NODE, name, {"metadata": {"labels": labels}})
        await stage.bind_topology(a_binding("h100-topology", block=RACK, host=HOST))
        await stage.bind_topology(a_binding("gb200-topology", block=NVL_BLOCK, rack=NVLINK_DOMAIN, host=HOST))
        await stage.deploy(topology.of_topology("tas-h100", "h100-topology"))
        await stage.deploy(topology.of_topology("tas-gb200", "gb200-topology"))
        await stage.until_ready(4)
        expect_together(stage, RACK, "tas-h100-0-worker")
        expect_together(stage, NVL_BLOCK, "tas-gb200-0-worker")


@on(KAI)
async def test_tas18_a_topology_that_is_missing(a_stage: Stages) -> None:
    """A binding that refers to a KAI Topology nobody made says so."""
    async with a_stage(1) as stage:
        manifest = a_binding()
        manifest["spec"]["schedulerTopologyBindings"] = [
            {"schedulerName": "kai-scheduler", "topologyReference": "somebody-elses"}
        ]
        await stage.bind_topology(manifest)
        found = await stage.until_seen(
            CLUSTER_TOPOLOGY_BINDING, "grove-topology", lambda it: drift(it) == ("True", "Drift")
        )
        (status,) = found["status"]["schedulerTopologyStatuses"]
        assert status["topologyReference"] == "somebody-elses"
        assert not status["inSync"]


@on(KAI)
async def test_tas19_levels_are_added(a_stage: Stages) -> None:
    """A level added to a managed binding gives a new Topology with that level, without drift."""
    async with a_stage(1) as stage:
        await stage.bind_topology(a_binding(zone=ZONE, block=BLOCK))
        first = await stage.until_seen(kai.TOPOLOGY, "grove-topology", lambda found: True)
        assert levels(first) == [ZONE, BLOCK]
        found = await stage.until_seen(
            CLUSTER_TOPOLOGY_BINDING, "grove-topology", lambda it: drift(it) == ("False", "InSync")
        )
        found["spec"]["levels"].append({"domain": "rack", "key": RACK})
        await stage.client.replace(CLUSTER_TOPOLOGY_BINDING, found)
        second = await stage.until_seen(kai.TOPOLOGY, "grove-topology", lambda it: len(levels(it)) == 3)
        assert levels(second) == [ZONE, BLOCK, RACK]
        assert second["metadata"]["uid"] != first["metadata"]["uid"]
        generation = found["metadata"]["generation"] + 1
        await stage.until_seen(
            CLUSTER_TOPOLOGY_BINDING,
            "grove-topology",
            lambda it: it["status"].get("observedGeneration") == generation and drift(it) == ("False", "InSync"),
        )


async def test_tas20_a_topology_comes_and_goes(a_stage: Stages) -> None:
    """Without its topology a required constraint holds pods back and the set says why; with it they run."""
    async with a_stage(2) as stage:
        binding = a_binding("tas20-topology")
        name = "tas-topology-condition"
        await stage.bind_topology(binding)
        await stage.deploy(topology.topology_condition())
        await stage.until(lambda: condition(stage, name) == ("False", "AllClusterTopologyLevelsAvailable"))
        await stage.client.delete(CLUSTER_TOPOLOGY_BINDING, "tas20-topology")
        await stage.until(lambda: condition(stage, name) == ("Unknown", "ClusterTopologyNotFound"))

        await stage.scale(PodCliqueSet, name, 1)
        await stage.until(lambda: len(stage.pods()) == 2)
        await stage.stays(lambda: all(pod.gated for pod in stage.pods()))
        initialized = find_condition(stage.gang(f"{name}-0").status.conditions, INITIALIZED)
        assert initialized is not None
        assert "tas20-topology" in initialized.message

        await stage.bind_topology(binding)
        await stage.until_ready(2)
        expect_together(stage, RACK)
        assert condition(stage, name) == ("False", "AllClusterTopologyLevelsAvailable")
        await stage.scale(PodCliqueSet, name, 0)
        await stage.until(lambda: not stage.pods())


def condition(stage: Stage, name: str) -> tuple[str, str] | None:
    """Return status and reason of what a set says about its levels."""
    found = find_condition(stage.pod_clique_set(name).status.conditions, "TopologyLevelsUnavailable")
    return None if found is None else (found.status, found.reason)


async def test_tas21_bindings_are_validated(a_stage: Stages, backend: Backend) -> None:
    """Twice the same domain or scheduler, a scheduler not enabled, or one without topologies, is refused."""

    def bound(*schedulers: str) -> JSON:
        manifest = a_binding("refused")
        manifest["spec"]["schedulerTopologyBindings"] = [
            {"schedulerName": name, "topologyReference": "some-topology"} for name in schedulers
        ]
        return manifest

    async with a_stage(1) as stage:
        twice = a_binding("refused")
        twice["spec"]["levels"].append({"domain": "rack", "key": "example.com/rack"})
        assert "spec.levels[4].domain" in await rejected(stage.bind_topology(twice))
        if backend.kai_objects:
            refusal = await rejected(stage.bind_topology(bound(backend.name, backend.name)))
            assert "spec.schedulerTopologyBindings[1].schedulerName" in refusal
        assert "unknown-scheduler" in await rejected(stage.bind_topology(bound("unknown-scheduler")))
        assert "default-scheduler" in await rejected(stage.bind_topology(bound("default-scheduler")))

        await stage.bind_topology()
        inherits = a_clique("worker", 2, memory="40Mi", constraint={"pack": {"required": "host"}})
        whole = a_constraint(required="block")
        await stage.deploy(a_set("tas-inherits", [inherits], topologyConstraint=whole))
        await stage.until_ready(2)


BOTH = {"topologyName": "grove-topology", "packDomain": "rack", "pack": {"required": "rack"}}
REFUSED: dict[str, JSON] = {
    "packDomain on the set": a_set(
        "refused", [a_clique("worker", 1)], topologyConstraint={"topologyName": "grove-topology", "packDomain": "rack"}
    ),
    "packDomain on a clique": a_set(
        "refused", [a_clique("worker", 1, constraint={"topologyName": "grove-topology", "packDomain": "rack"})]
    ),
    "packDomain on a group": a_set(
        "refused",
        [a_clique("worker", 1)],
        [a_group("workers", ["worker"], 1, 1, constraint={"topologyName": "grove-topology", "packDomain": "rack"})],
    ),
    "no pack": a_set("refused", [a_clique("worker", 1)], topologyConstraint={"topologyName": "grove-topology"}),
    "empty pack": a_set("refused", [a_clique("worker", 1)], topologyConstraint=a_constraint()),
    "both": a_set("refused", [a_clique("worker", 1)], topologyConstraint=BOTH),
}


@on(KAI)
async def test_tas22_constraints_are_validated(a_stage: Stages) -> None:
    """The deprecated packDomain is refused at each level, and so is a constraint that says nothing or two things."""
    async with a_stage(1) as stage:
        await stage.bind_topology()
        for what, manifest in REFUSED.items():
            assert "topologyConstraint" in await rejected(stage.deploy(manifest)), what
        only = a_constraint(preferred="rack")
        await stage.deploy(a_set("tas-preferred", [a_clique("worker", 1)], topologyConstraint=only))
        await stage.until_ready(1)
