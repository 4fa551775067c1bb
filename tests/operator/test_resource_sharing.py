"""Shared resource claims and multi-node NVLink domains."""

from spinney.api import labels as marks
from spinney.api.core import POD
from spinney.api.grove import (
    POD_CLIQUE,
    POD_CLIQUE_SCALING_GROUP,
    POD_CLIQUE_SET,
    PodCliqueSet,
    ResourceClaimTemplateConfig,
    ResourceSharing,
    ResourceSharingFilter,
)
from spinney.api.resource_claims import RESOURCE_CLAIM, RESOURCE_CLAIM_TEMPLATE
from spinney.operator.desired import auxiliary, mnnvl
from spinney.operator.desired.layout import Layout
from spinney.testing.builders import a_clique, a_pod_clique_set, a_pod_spec, a_scaling_group
from tests.operator.harness import World, given_a_world

SPEC = {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.example"}}]}}}


def shared(name: str, scope: str, *, cliques: tuple[str, ...] = (), groups: tuple[str, ...] = ()) -> ResourceSharing:
    """Return a sharing of a template, optionally for some children only."""
    chosen = ResourceSharingFilter(child_clique_names=cliques, child_scaling_group_names=groups)
    return ResourceSharing(name=name, scope=scope, filter=chosen if cliques or groups else None)


def workload() -> PodCliqueSet:
    """Return a set that shares claims at all three levels."""
    templates = [ResourceClaimTemplateConfig(name=f"t{n}", template_spec=SPEC) for n in range(1, 7)]
    return a_pod_clique_set(
        "model",
        [
            a_clique("a", 1, sharing=[shared("t1", "PerReplica"), shared("outside", "AllReplicas")]),
            a_clique("b", 1, sharing=[shared("t2", "AllReplicas")]),
        ],
        [a_scaling_group("sg", ["b"], 2, 2, sharing=[shared("t3", "AllReplicas"), shared("t4", "PerReplica")])],
        claim_templates=templates,
        sharing=[
            shared("t5", "AllReplicas"),
            shared("t6", "PerReplica", cliques=("a",)),
            shared("t1", "AllReplicas", groups=("sg",)),
        ],
    )


async def claims(world: World) -> list[str]:
    """Return the names of all claims."""
    return await world.names(RESOURCE_CLAIM)


@given_a_world
async def test_claims_exist_for_every_level_and_follow_scaling(world: World) -> None:
    """Each scope has its claims, pods refer to theirs, and claims of replicas scaled away are removed."""
    manifest = {"metadata": {"name": "outside", "namespace": "test"}, "spec": SPEC}
    await world.client.create(RESOURCE_CLAIM_TEMPLATE, manifest)
    await world.bring_up(workload())
    base = [
        "model-0-a-0-t1",
        "model-0-a-all-outside",
        "model-0-sg-0-b-all-t2",
        "model-0-sg-0-t4",
        "model-0-sg-1-b-all-t2",
        "model-0-sg-1-t4",
        "model-0-sg-all-t3",
        "model-0-t6",
        "model-all-t1",
        "model-all-t5",
    ]
    assert await claims(world) == base
    used = {
        pod["spec"]["hostname"]: [claim["resourceClaimName"] for claim in pod["spec"]["resourceClaims"]]
        for pod in (await world.client.list(POD, "test")).items
    }
    assert used["model-0-a-0"] == ["model-all-t5", "model-0-t6", "model-0-a-all-outside", "model-0-a-0-t1"]
    assert used["model-0-sg-1-b-0"] == [
        "model-all-t5",
        "model-all-t1",
        "model-0-sg-all-t3",
        "model-0-sg-1-t4",
        "model-0-sg-1-b-all-t2",
    ]
    await world.client.patch(POD_CLIQUE_SCALING_GROUP, "model-0-sg", {"spec": {"replicas": 3}}, "test")
    await world.client.patch(POD_CLIQUE, "model-0-a", {"spec": {"replicas": 2}}, "test")
    await world.settle()
    more = {"model-0-a-1-t1", "model-0-sg-2-t4", "model-0-sg-2-b-all-t2"}
    assert set(await claims(world)) == set(base) | more
    await world.client.patch(POD_CLIQUE_SCALING_GROUP, "model-0-sg", {"spec": {"replicas": 2}}, "test")
    await world.client.patch(POD_CLIQUE, "model-0-a", {"spec": {"replicas": 1}}, "test")
    await world.settle()
    assert await claims(world) == base
    await world.client.delete(POD_CLIQUE_SET, "model", "test")
    await world.settle()
    assert await claims(world) == []


@given_a_world
async def test_a_shared_claim_somebody_deleted_comes_back(world: World) -> None:
    """Claims of each level are made anew when they disappear."""
    manifest = {"metadata": {"name": "outside", "namespace": "test"}, "spec": SPEC}
    await world.client.create(RESOURCE_CLAIM_TEMPLATE, manifest)
    await world.bring_up(workload())
    before = await claims(world)
    for name in ("model-all-t5", "model-0-sg-all-t3", "model-0-a-0-t1"):
        await world.client.delete(RESOURCE_CLAIM, name, "test")
    await world.settle()
    assert await claims(world) == before


def test_nvlink_groups_are_found_from_the_inside_out() -> None:
    """The clique's annotation comes before its group's, that before the set's; ``none`` and CPU cliques opt out."""
    gpu = a_pod_spec(gpus=8)
    pcs = a_pod_clique_set(
        "model",
        [
            a_clique("inherits", 1, pod_spec=gpu),
            a_clique("own", 1, pod_spec=gpu, annotations={marks.MNNVL_GROUP: "solo"}),
            a_clique("out", 1, pod_spec=gpu, annotations={marks.MNNVL_GROUP: "none"}),
            a_clique("cpu", 1),
            a_clique("grouped", 1, pod_spec=gpu),
        ],
        [a_scaling_group("sg", ["grouped"], annotations={marks.MNNVL_GROUP: "train"})],
        annotations={marks.MNNVL_GROUP: "default"},
        uid="u",
    )
    layout = Layout(pcs)
    places = {place.template.name: place for place in (*layout.standalone(0), *layout.members(0, "sg", 0))}
    found = {name: mnnvl.group_of(layout, place) for name, place in places.items()}
    assert found == {"inherits": "default", "own": "solo", "out": None, "cpu": None, "grouped": "train"}
    domains = [each for each in auxiliary.wanted(layout, mnnvl_enabled=True) if each.resource.kind == "ComputeDomain"]
    assert [each.name for each in domains] == ["model-0-default", "model-0-solo", "model-0-train"]
    assert not [each for each in auxiliary.wanted(layout, mnnvl_enabled=False) if each.resource.kind == "ComputeDomain"]
