"""Gangs are packed as their constraints say, at every level (Grove's TAS scenarios 2 to 16 and 23).

Where pods went is read from the labels of their nodes; what was asked of the scheduler from the PodGang and, with KAI,
from the PodGroup.
"""

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager

import pytest

from spinney.api.struct import JSON
from tests.e2e.backends import REAL_KAI, WITH_TOPOLOGY, Backend, everywhere
from tests.e2e.floor import BLOCK, HOST, RACK, ZONE
from tests.e2e.harness import Stage, Stages
from tests.e2e.packing import FREE, Leaf, Tree, domains, expect_together, expect_tree, preferred, required
from tests.e2e.workloads import topology


@pytest.fixture(params=WITH_TOPOLOGY, ids=str)
def backend(request: pytest.FixtureRequest) -> Backend:
    """The backends that place by topology."""
    row: Backend = request.param
    return row


async def packed(stage: Stage, manifest: JSON, count: int) -> None:
    """Bring a workload up on the topology of the floor."""
    await stage.bind_topology()
    await stage.deploy(manifest)
    await stage.until_ready(count)
    await stage.settle()


async def play(
    opening: AbstractAsyncContextManager[Stage],
    manifest: JSON,
    pods: int,
    *together: tuple[str, ...],
    trees: Mapping[str, Tree],
) -> None:
    """Bring up a workload; check whose pods are ``together``, and the ``trees`` of its gangs.

    A row of ``together`` is a level and the PodCliques whose pods share a domain of it; all pods, where it names none.
    """
    async with opening as stage:
        await packed(stage, manifest, pods)
        for level, *cliques in together:
            expect_together(stage, level, *cliques)
        for gang, tree in trees.items():
            await expect_tree(stage, gang, tree)


async def test_tas2_cliques_with_constraints_of_their_own(a_stage: Stages) -> None:
    """Three pods share a rack and four a block, each clique by itself."""
    rack, block = "tas-indep-clq-0-worker-rack", "tas-indep-clq-0-worker-block"
    await play(
        a_stage(28),
        topology.indep_clq(),
        7,
        (RACK, rack),
        (BLOCK, block),
        trees={"tas-indep-clq-0": Tree({rack: Leaf(3, required(RACK)), block: Leaf(4, required(BLOCK))})},
    )


async def test_tas3_a_constraint_on_the_set_only(a_stage: Stages) -> None:
    """All pods share a rack; the gang has three leaves and nothing between them and itself."""
    name = "tas-sl-pcs-only-0"
    leaves = {f"{name}-router": Leaf(2), **{f"{name}-workers-{j}-worker": Leaf(1) for j in (0, 1)}}
    await play(a_stage(28), topology.sl_pcs_only(), 4, (RACK,), trees={name: Tree(leaves, top=required(RACK))})


async def test_tas4_a_constraint_on_the_scaling_group_only(a_stage: Stages) -> None:
    """Each replica of the group has its rack, routers are free, and the set says that its levels exist."""
    async with a_stage(28) as stage:
        await packed(stage, topology.sl_pcsg_only(), 4)
        name = "tas-sl-pcsg-only-0"
        for j in (0, 1):
            expect_together(stage, RACK, f"{name}-workers-{j}-worker")
        leaves = {
            f"{name}-router": Leaf(2),
            f"{name}-workers-0-worker": Leaf(1, parent=f"{name}-workers-0"),
            f"{name}-workers-1-worker": Leaf(1, parent=f"{name}-workers-1"),
        }
        parents = {f"{name}-workers-{j}": required(RACK) for j in (0, 1)}
        await expect_tree(stage, name, Tree(leaves, parents=parents))
        conditions = {each.type: each for each in stage.pod_clique_set("tas-sl-pcsg-only").status.conditions}
        found = conditions["TopologyLevelsUnavailable"]
        assert (found.status, found.reason) == ("False", "AllClusterTopologyLevelsAvailable")


async def test_tas5_on_one_host(a_stage: Stages) -> None:
    """Two pods that must share a host do."""
    tree = Tree({"tas-host-level-0-worker": Leaf(2, required(HOST))})
    await play(a_stage(28), topology.host_level(), 2, (HOST,), trees={"tas-host-level-0": tree})


async def test_tas6_in_one_zone(a_stage: Stages) -> None:
    """Four pods share a zone; their clique has no constraint of its own."""
    tree = Tree({"tas-pcs-zone-0-worker": Leaf(4)}, top=required(ZONE))
    await play(a_stage(28), topology.pcs_zone(), 4, (ZONE,), trees={"tas-pcs-zone-0": tree})


async def test_tas7_without_constraints(a_stage: Stages) -> None:
    """A workload without constraints runs, and asks for nothing."""
    tree = Tree({f"tas-no-constraint-0-workers-{j}-worker": Leaf(2) for j in (0, 1)})
    await play(a_stage(28), topology.no_constraint(), 4, trees={"tas-no-constraint-0": tree})


@everywhere(*WITH_TOPOLOGY, peers=(REAL_KAI,))
async def test_tas8_three_levels(a_stage: Stages) -> None:
    """Each clique has its host, each replica of the group its rack, and all of it one block."""
    name = "tas-hierarchy-0"
    replicas = [f"{name}-inference-group-{j}" for j in (0, 1)]
    leaves = {f"{each}-{part}": Leaf(2, required(HOST), each) for each in replicas for part in ("prefill", "decode")}
    await play(
        a_stage(8),
        topology.hierarchy(),
        8,
        (BLOCK,),
        *((RACK, f"{each}-prefill", f"{each}-decode") for each in replicas),
        *((HOST, clique) for clique in leaves),
        trees={name: Tree(leaves, required(BLOCK), dict.fromkeys(replicas, required(RACK)))},
    )


async def test_tas9_set_and_clique(a_stage: Stages) -> None:
    """Two pods share a host inside a block."""
    tree = Tree({"tas-pcs-pclq-0-worker": Leaf(2, required(HOST))}, top=required(BLOCK))
    await play(a_stage(28), topology.pcs_pclq(), 2, (HOST,), trees={"tas-pcs-pclq-0": tree})


async def test_tas10_scaled_gangs_take_the_groups_constraint(a_stage: Stages) -> None:
    """Each replica of the group has its rack; only the base gang is constrained as the set is."""
    name = "tas-pcsg-scale-0"
    replicas = [f"{name}-workers-{j}" for j in range(3)]
    base = Tree({f"{replicas[0]}-worker": Leaf(2, parent=replicas[0])}, required(BLOCK), {replicas[0]: required(RACK)})
    scaled = {
        f"{name}-workers-{j}": Tree({f"{each}-worker": Leaf(2)}, top=required(RACK))
        for j, each in enumerate(replicas[1:])
    }
    await play(
        a_stage(28),
        topology.pcsg_scale(),
        6,
        *((RACK, f"{each}-worker") for each in replicas),
        trees={name: base, **scaled},
    )


async def test_tas11_group_and_clique(a_stage: Stages) -> None:
    """Each replica of the group has its rack and there its host; nothing holds the replicas together."""
    name = "tas-pcsg-pclq-0"
    replicas = [f"{name}-workers-{j}" for j in (0, 1)]
    leaves = {f"{each}-worker": Leaf(2, required(HOST), each) for each in replicas}
    await play(
        a_stage(28),
        topology.pcsg_pclq(),
        4,
        *((HOST, clique) for clique in leaves),
        trees={name: Tree(leaves, parents=dict.fromkeys(replicas, required(RACK)))},
    )


async def test_tas12_many_scaled_gangs(a_stage: Stages) -> None:
    """Seven scaled gangs fall back to the set's block; every pair has a host and all twenty pods one block."""
    name = "tas-large-scale-0"
    leaves = [(f"{name}-workers-{j}-worker", Leaf(2, required(HOST))) for j in range(10)]
    scaled = {f"{name}-workers-{j}": Tree(dict([leaf]), required(BLOCK)) for j, leaf in enumerate(leaves[3:])}
    await play(
        a_stage(28),
        topology.large_scale(),
        20,
        (BLOCK,),
        *((HOST, clique) for clique, _ in leaves),
        trees={name: Tree(dict(leaves[:3]), required(BLOCK)), **scaled},
    )


async def test_tas13_what_cannot_fit_is_pending(a_stage: Stages) -> None:
    """Ten pods too large for any node are all pending and say why, and the constraint is still handed on."""
    async with a_stage(28) as stage:
        await stage.bind_topology()
        await stage.deploy(topology.insuffic())
        await stage.until_pending(10)
        await stage.stays(lambda: not stage.bound())
        await expect_tree(stage, "tas-insuffic-0", Tree({"tas-insuffic-0-worker": Leaf(10)}, top=required(RACK)))


async def test_tas14_each_replica_of_the_set_is_packed(a_stage: Stages) -> None:
    """Two replicas of the set have a rack each; it may be the same."""
    names = [f"tas-multirep-{i}" for i in (0, 1)]
    await play(
        a_stage(28),
        topology.multirep(),
        4,
        *((RACK, f"{name}-worker") for name in names),
        trees={name: Tree({f"{name}-worker": Leaf(2)}, top=required(RACK)) for name in names},
    )


async def test_tas15_two_kinds_of_groups(a_stage: Stages) -> None:
    """Ten pods share a block and each replica of either group a rack; one replica of each is in the base gang."""
    async with a_stage(28) as stage:
        await packed(stage, topology.multi_pcsg(), 10)
        expect_together(stage, BLOCK)
        await expect_groups_packed(stage, "tas-multi-pcsg-0")


async def test_tas16_two_kinds_of_groups_twice(a_stage: Stages) -> None:
    """The same in two replicas of the set, with a host for each pworker: each replica has a block."""
    async with a_stage(28) as stage:
        await packed(stage, topology.multi_pcsg(replicas=2, host=True), 20)
        for i in (0, 1):
            name = f"tas-multi-replica-{i}"
            cliques = {pod.metadata.labels["grove.io/podclique"] for pod in stage.pods()}
            expect_together(stage, BLOCK, *(each for each in cliques if each.startswith(name)))
            await expect_groups_packed(stage, name, pworker=required(HOST))


async def expect_groups_packed(stage: Stage, name: str, *, pworker: tuple[str, str] = FREE) -> None:
    """Check racks and trees of decoder and prefill in one replica of the set."""
    members = {"decoder": ("dworker", "dleader"), "prefill": ("pworker", "pleader")}
    levels = {"pworker": pworker}
    base = {f"{name}-router": Leaf(2)}
    parents = {}
    for group, cliques in members.items():
        for j in (0, 1):
            replica = f"{name}-{group}-{j}"
            expect_together(stage, RACK, *(f"{replica}-{clique}" for clique in cliques))
            if j == 0:
                parents[replica] = required(RACK)
                base |= {f"{replica}-{each}": Leaf(1, levels.get(each, FREE), replica) for each in cliques}
            else:
                leaves = {f"{replica}-{each}": Leaf(1, levels.get(each, FREE)) for each in cliques}
                await expect_tree(stage, f"{name}-{group}-0", Tree(leaves, top=required(RACK)))
    await expect_tree(stage, name, Tree(base, required(BLOCK), parents))


async def test_tas23_what_is_only_preferred(a_stage: Stages) -> None:
    """The set requires a block and prefers a rack, its parts prefer hosts; with room enough all of it holds."""
    async with a_stage(28) as stage:
        await packed(stage, topology.preferred_pack(), 3)
        name = "tas-preferred-pack-0"
        expect_together(stage, BLOCK)
        assert len(domains(stage, RACK, f"{name}-router", f"{name}-workers-0-worker")) == 1
        leaves = {
            f"{name}-router": Leaf(1, preferred(HOST)),
            f"{name}-workers-0-worker": Leaf(1, parent=f"{name}-workers-0"),
        }
        parents = {f"{name}-workers-0": preferred(HOST)}
        await expect_tree(stage, name, Tree(leaves, (BLOCK, RACK), parents))
        scaled = Tree({f"{name}-workers-1-worker": Leaf(1)}, top=preferred(HOST))
        await expect_tree(stage, f"{name}-workers-0", scaled)


async def test_packing_is_not_luck(a_stage: Stages) -> None:
    """With one open node left in the first rack, filling nodes in order would straddle racks; both pods go further."""
    async with a_stage(28) as stage:
        for name in stage.fleet.names[:6]:
            await stage.close(name)
        await packed(stage, topology.multirep(), 4)
        for i in (0, 1):
            expect_together(stage, RACK, f"tas-multirep-{i}-worker")
        assert "rack-0" not in domains(stage, RACK)


async def test_a_rack_that_is_too_small_is_not_left_for_another(a_stage: Stages) -> None:
    """Eight pods that need a node each and must share a rack of seven are pending, although the block has room."""
    async with a_stage(28) as stage:
        await stage.bind_topology()
        manifest = topology.multirep()
        manifest["spec"]["replicas"] = 1
        clique = manifest["spec"]["template"]["cliques"][0]["spec"]
        clique["replicas"] = clique["minAvailable"] = 8
        await stage.deploy(manifest)
        await stage.until_pending(8)
