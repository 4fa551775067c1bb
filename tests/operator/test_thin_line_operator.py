"""From a PodCliqueSet to released pods, with the gate invariants checked on everything that was written."""

from spinney.api.conditions import find_condition, is_true
from spinney.api.grove import POD_CLIQUE_SET, PodCliqueSet
from spinney.api.podgang import BACKEND_READY, INITIALIZED
from spinney.operator.pod_states import has_gate
from spinney.testing.builders import a_clique, a_pod_clique_set, a_scaling_group
from tests.operator.harness import World, given_a_world


@given_a_world
async def test_a_set_becomes_a_gang_of_released_pods(world: World) -> None:
    """Applying a PodCliqueSet yields a gang that is Initialized, refers to every pod, and lets them be scheduled."""
    await world.bring_up(a_pod_clique_set("model", [a_clique("worker", 3), a_clique("leader", 1)]))
    pods = await world.pods()
    assert len(pods) == 4
    assert not any(has_gate(pod) for pod in pods)
    assert {pod.spec.scheduler_name for pod in pods} == {"spinney-scheduler"}
    gang = await world.gang("model-0")
    assert is_true(gang.status.conditions, INITIALIZED)
    assert is_true(gang.status.conditions, BACKEND_READY)
    referenced = {r.name for group in gang.spec.pod_groups for r in group.pod_references}
    assert referenced == {pod.metadata.name for pod in pods}
    pcs = await world.client.get(POD_CLIQUE_SET, "model", "test", type=PodCliqueSet)
    assert pcs.status.available_replicas == 1


@given_a_world
async def test_initialized_is_false_before_it_is_true(world: World) -> None:
    """A gang says PodsPending from its first status on, and turns Ready once, after its references are in the spec."""
    await world.bring_up(a_pod_clique_set())
    seen = []
    for version in world.witness.gang_history["model-0"]:
        conditions = {each["type"]: each for each in version.get("status", {}).get("conditions", [])}
        if INITIALIZED in conditions:
            seen.append((conditions[INITIALIZED]["status"], conditions[INITIALIZED]["reason"]))
        references = [group.get("podReferences", []) for group in version["spec"]["podgroups"]]
        if seen and seen[-1][0] == "True":
            assert all(references)
    assert seen[0] == ("False", "PodsPending")
    assert seen[-1] == ("True", "Ready")
    assert sorted(set(seen)) == [("False", "PodsPending"), ("True", "Ready")]


@given_a_world
async def test_scaled_gangs_wait_for_the_base_gang(world: World) -> None:
    """Pods of a scaling group replica beyond the minimum keep their gate until the base gang is scheduled."""
    world.place = lambda pod: False
    cliques = [a_clique("leader", 1), a_clique("worker", 2)]
    await world.bring_up(a_pod_clique_set("model", cliques, [a_scaling_group("sg", ["worker"], replicas=3)]))
    gated = {pod.spec.hostname for pod in await world.pods() if has_gate(pod)}
    assert gated == {f"model-0-sg-{j}-worker-{k}" for j in (1, 2) for k in (0, 1)}
    await world.now_place()
    await world.settle()
    assert not any(has_gate(pod) for pod in await world.pods())
    assert len(await world.pods()) == 7


@given_a_world
async def test_an_idle_operator_writes_nothing(world: World) -> None:
    """Once a workload has settled, nothing is written for as long as nothing happens."""
    await world.bring_up(a_pod_clique_set("model", replicas=3))
    before = (await world.client.list(POD_CLIQUE_SET, "test")).resource_version
    await world.settle(3600)
    assert (await world.client.list(POD_CLIQUE_SET, "test")).resource_version == before
    assert [controller.repairs for controller in world.operator.controllers] == [0, 0, 0, 0, 0]


@given_a_world
async def test_a_deleted_pod_is_replaced_and_referred_to_before_its_gate_opens(world: World) -> None:
    """A replacement pod takes the free index, is added to the references, and only then released."""
    await world.bring_up(a_pod_clique_set("model", [a_clique("worker", 2)]))
    victim = (await world.pods())[0]
    await world.client.delete(world.operator.caches.pods.resource, victim.metadata.name, "test")
    await world.settle()
    pods = await world.pods()
    assert {pod.spec.hostname for pod in pods} == {"model-0-worker-0", "model-0-worker-1"}
    assert victim.metadata.uid not in {pod.metadata.uid for pod in pods}
    assert not any(has_gate(pod) for pod in pods)
    condition = find_condition((await world.gang("model-0")).status.conditions, INITIALIZED)
    assert condition is not None
    assert condition.status == "True"
