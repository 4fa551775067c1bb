"""Topology constraints on their way to schedulers, and what happens while they cannot be translated."""

import dataclasses

import msgspec

from spinney.api import labels as marks
from spinney.api.conditions import find_condition, is_true
from spinney.api.grove import POD_CLIQUE_SET, PodCliqueSet
from spinney.api.kai import TOPOLOGY
from spinney.api.meta import Condition
from spinney.api.podgang import INITIALIZED, GangTopologyConstraint
from spinney.api.topology_binding import CLUSTER_TOPOLOGY_BINDING, ClusterTopologyBinding, SchedulerTopologyBinding
from spinney.backends import Profile, Profiles
from spinney.operator.operator import Settings
from spinney.operator.pod_states import has_gate
from spinney.operator.status.clustertopologybinding import DRIFT
from spinney.operator.status.podcliqueset import TOPOLOGY_LEVELS_UNAVAILABLE
from spinney.testing.builders import a_clique, a_pod_clique_set, a_scaling_group, a_topology
from tests.operator.harness import SPINNEY, World, a_world
from tests.virtual_time import on_virtual_time

AWARE = Settings(profiles=SPINNEY, topology_enabled=True)
KAI = Settings(profiles=Profiles((Profile("kai-scheduler"), Profile("default-scheduler")), "kai-scheduler"))


def workload() -> PodCliqueSet:
    """Return a set with a constraint at each level, and a scaled gang."""
    cliques = [a_clique("router", 1), a_clique("worker", 2, required="host")]
    groups = [a_scaling_group("sg", ["worker"], 3, 2, required="rack", preferred="host")]
    return a_pod_clique_set("model", cliques, groups, required="block", topology="cluster")


def keys(constraint: GangTopologyConstraint | None) -> tuple[str | None, str | None] | None:
    """Return the node labels of a constraint."""
    pack = constraint.pack_constraint if constraint is not None else None
    return None if pack is None else (pack.required, pack.preferred)


async def condition(world: World) -> Condition:
    """Return the set's condition about topology levels."""
    pcs = await world.client.get(POD_CLIQUE_SET, "model", "test", type=PodCliqueSet)
    found = find_condition(pcs.status.conditions, TOPOLOGY_LEVELS_UNAVAILABLE)
    assert found is not None
    return found


@on_virtual_time
async def test_constraints_are_translated_at_every_level() -> None:
    """Domains become node labels on the gang, on each scaling group replica and on each group of pods."""
    async with a_world(AWARE) as world:
        await world.client.create(CLUSTER_TOPOLOGY_BINDING, a_topology("cluster"))
        await world.bring_up(workload())
        base = await world.gang("model-0")
        assert keys(base.spec.topology_constraint) == ("topology.example/block", None)
        configs = base.spec.topology_constraint_group_configs
        assert [(config.name, config.pod_group_names) for config in configs] == [
            ("model-0-sg-0", ("model-0-sg-0-worker",)),
            ("model-0-sg-1", ("model-0-sg-1-worker",)),
        ]
        assert keys(configs[0].topology_constraint) == ("topology.example/rack", "kubernetes.io/hostname")
        assert keys(base.spec.pod_groups[1].topology_constraint) == ("kubernetes.io/hostname", None)
        assert base.metadata.annotations[marks.TOPOLOGY_NAME] == "cluster"
        scaled = await world.gang("model-0-sg-0")
        assert keys(scaled.spec.topology_constraint) == ("topology.example/rack", "kubernetes.io/hostname")
        assert scaled.spec.topology_constraint_group_configs == ()
        assert (await condition(world)).status == "False"


@on_virtual_time
async def test_a_required_domain_that_is_unknown_keeps_pods_gated() -> None:
    """Without the topology the pods wait, gated, and the gang and the set say why; with it they go."""
    async with a_world(AWARE) as world:
        await world.bring_up(workload())
        pods = await world.pods()
        assert pods
        assert all(has_gate(pod) for pod in pods)
        gang = await world.gang("model-0")
        initialized = find_condition(gang.status.conditions, INITIALIZED)
        assert initialized is not None
        assert "ClusterTopologyBinding 'cluster' does not exist" in initialized.message
        assert (await condition(world)).reason == "ClusterTopologyNotFound"
        await world.client.create(CLUSTER_TOPOLOGY_BINDING, a_topology("cluster", zone="z", block="b", rack="r"))
        await world.settle()
        assert (await condition(world)).reason == "ClusterTopologyLevelsUnavailable"
        assert all(has_gate(pod) for pod in await world.pods())
        await world.client.apply(CLUSTER_TOPOLOGY_BINDING, a_topology("cluster"))
        await world.settle()
        assert (await condition(world)).reason == "AllClusterTopologyLevelsAvailable"
        assert not any(has_gate(pod) for pod in await world.pods())


@on_virtual_time
async def test_a_topology_that_disappears_changes_no_running_gang() -> None:
    """A gang keeps the constraints it had when its topology is deleted."""
    async with a_world(AWARE) as world:
        await world.client.create(CLUSTER_TOPOLOGY_BINDING, a_topology("cluster"))
        await world.bring_up(workload())
        before = (await world.gang("model-0")).spec
        await world.client.delete(CLUSTER_TOPOLOGY_BINDING, "cluster")
        await world.settle()
        after = await world.gang("model-0")
        assert after.spec == before
        assert is_true(after.status.conditions, INITIALIZED)


@on_virtual_time
async def test_disabled_topology_is_said_and_nothing_is_constrained() -> None:
    """With topology-aware scheduling off, gangs carry no constraint and the set says so."""
    async with a_world(dataclasses.replace(AWARE, topology_enabled=False)) as world:
        await world.bring_up(workload())
        assert (await world.gang("model-0")).spec.topology_constraint is None
        assert (await condition(world)).reason == "TopologyAwareSchedulingDisabled"


@on_virtual_time
async def test_a_binding_becomes_kais_topology_and_reports_drift() -> None:
    """An unbound topology is managed for KAI; one that somebody else manages is compared, and drift is reported."""

    async def drift(world: World) -> tuple[str, str]:
        binding = await world.client.get(CLUSTER_TOPOLOGY_BINDING, "cluster", type=ClusterTopologyBinding)
        found = find_condition(binding.status.conditions, DRIFT)
        assert found is not None
        return found.status, found.reason

    async with a_world(KAI) as world:
        plain = a_topology("cluster")
        await world.client.create(CLUSTER_TOPOLOGY_BINDING, plain)
        await world.settle()
        assert (await world.client.get(TOPOLOGY, "cluster"))["spec"]["levels"][0] == {
            "nodeLabel": "topology.example/zone"
        }
        assert await drift(world) == ("False", "InSync")
        reference = SchedulerTopologyBinding(scheduler_name="kai-scheduler", topology_reference="theirs")
        spec = msgspec.structs.replace(plain.spec, scheduler_topology_bindings=(reference,))
        await world.client.apply(CLUSTER_TOPOLOGY_BINDING, msgspec.structs.replace(plain, spec=spec))
        await world.settle()
        assert await drift(world) == ("True", "Drift")
        levels = [{"nodeLabel": level.key} for level in plain.spec.levels]
        await world.client.create(TOPOLOGY, {"metadata": {"name": "theirs"}, "spec": {"levels": levels}})
        await world.settle()
        assert await drift(world) == ("False", "InSync")
