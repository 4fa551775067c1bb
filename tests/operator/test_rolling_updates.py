"""Template changes: one replica of a set at a time, in it one pod, or one scaling group replica, at a time."""

import asyncio
from collections.abc import Callable
from itertools import pairwise

import msgspec

from spinney.api import labels as marks
from spinney.api.core import POD
from spinney.api.grove import (
    POD_CLIQUE,
    POD_CLIQUE_SCALING_GROUP,
    POD_CLIQUE_SET,
    PodClique,
    PodCliqueSet,
    PodCliqueTemplateSpec,
)
from spinney.api.grove_status import PodCliqueSetUpdateProgress
from spinney.kube.transport import Request, Response
from spinney.server import ApiServer
from spinney.sim.embedded.transport import InProcessTransport
from spinney.testing.builders import a_clique, a_pod_clique_set, a_pod_spec, a_scaling_group
from tests.operator.harness import World, a_world, given_a_world
from tests.virtual_time import on_virtual_time

NEW = "registry.example/worker:2"


def changed(pcs: PodCliqueSet, *cliques: str, image: str = NEW) -> PodCliqueSet:
    """Return the set with another image in some cliques."""

    def edit(clique: PodCliqueTemplateSpec) -> PodCliqueTemplateSpec:
        if clique.name not in cliques:
            return clique
        return msgspec.structs.replace(
            clique, spec=msgspec.structs.replace(clique.spec, pod_spec=a_pod_spec(image=image))
        )

    template = msgspec.structs.replace(
        pcs.spec.template, cliques=tuple(edit(clique) for clique in pcs.spec.template.cliques)
    )
    return msgspec.structs.replace(pcs, spec=msgspec.structs.replace(pcs.spec, template=template))


async def images(world: World) -> dict[str, str]:
    """Return the image of each pod by host name."""
    listing = await world.client.list(POD, "test")
    return {
        pod["spec"]["hostname"]: pod["spec"]["containers"][0]["image"]
        for pod in listing.items
        if "deletionTimestamp" not in pod["metadata"]
    }


async def progress(world: World) -> PodCliqueSetUpdateProgress:
    pcs = await world.client.get(POD_CLIQUE_SET, "model", "test", type=PodCliqueSet)
    assert pcs.status.update_progress is not None
    return pcs.status.update_progress


def workload(**options: object) -> PodCliqueSet:
    """Return a set with a standalone clique and a scaling group."""
    cliques = [a_clique("a", 2), a_clique("b", 1), a_clique("c", 3)]
    return a_pod_clique_set("model", cliques, [a_scaling_group("sg", ["b", "c"], 2, 2)], **options)  # type: ignore[arg-type]


def in_flight(world: World, clique_of: Callable[[dict[str, str]], str]) -> int:
    """Return the most pods of one clique that were missing at any moment after the first complete one."""
    worst = 0
    alive: dict[str, str] = {}
    target: dict[str, int] = {}
    events = sorted(
        (int(version["metadata"]["resourceVersion"]), uid, version)
        for uid, history in world.witness.pods.items()
        for version in history
    )
    for _, uid, version in events:
        clique = clique_of(version["metadata"]["labels"])
        if "deletionTimestamp" in version["metadata"]:
            alive.pop(uid, None)
        else:
            alive[uid] = clique
        count = sum(1 for each in alive.values() if each == clique)
        target[clique] = max(target.get(clique, 0), count)
        worst = max(worst, target[clique] - count)
    return worst


@given_a_world
async def test_a_standalone_clique_is_updated_one_pod_at_a_time(world: World) -> None:
    """With no pods to spare, the next pod is only taken when all others are ready again."""
    pcs = workload()
    await world.bring_up(pcs)
    await world.bring_up(changed(pcs, "a"), 20)
    found = await images(world)
    assert {found[f"model-0-a-{k}"] for k in (0, 1)} == {NEW}
    assert all(image != NEW for host, image in found.items() if not host.startswith("model-0-a"))
    assert in_flight(world, lambda labels: labels[marks.POD_CLIQUE]) == 1
    done = await progress(world)
    assert done.update_ended_at is not None
    assert (done.updated_pod_cliques_count, done.total_pod_cliques_count) == (1, 1)
    assert done.updated_pod_clique_scaling_groups_count == 1


@given_a_world
async def test_a_scaling_group_is_updated_one_replica_at_a_time(world: World) -> None:
    """The PodCliques of one replica are made anew together; the other replica keeps serving meanwhile."""
    pcs = workload()
    await world.bring_up(pcs)
    before = {each["metadata"]["uid"] for each in (await world.client.list(POD_CLIQUE, "test")).items}
    await world.bring_up(changed(pcs, "b"), 30)
    after = await world.client.list(POD_CLIQUE, "test", type=PodClique)
    kept = {each.metadata.name for each in after.items if each.metadata.uid in before}
    assert kept == {"model-0-a"}
    found = await images(world)
    assert {image for host, image in found.items() if "-b-" in host} == {NEW}
    assert len(found) == 10
    both_down = in_flight(world, lambda labels: labels.get(marks.SCALING_GROUP, labels[marks.POD_CLIQUE]))
    assert both_down == 4
    assert (await progress(world)).update_ended_at is not None


@given_a_world
async def test_replicas_of_a_set_are_updated_one_after_the_other(world: World) -> None:
    """While one replica is being updated no pod of another is deleted."""
    pcs = workload(replicas=3)
    await world.bring_up(pcs)
    await world.bring_up(changed(pcs, "a", "b", "c"), 120)
    assert set((await images(world)).values()) == {NEW}
    spans: dict[str, list[int]] = {}
    for history in world.witness.pods.values():
        for version in history:
            if "deletionTimestamp" in version["metadata"]:
                replica = version["metadata"]["labels"][marks.REPLICA_INDEX]
                spans.setdefault(replica, []).append(int(version["metadata"]["resourceVersion"]))
    ordered = sorted((min(times), max(times)) for times in spans.values())
    assert len(ordered) == 3
    assert all(one[1] < two[0] for one, two in pairwise(ordered))


@given_a_world
async def test_an_update_that_cannot_be_placed_stops_after_one_pod(world: World) -> None:
    """When new pods find no place, exactly one serving pod has been given up; it goes on when there is room again."""
    pcs = workload()
    await world.bring_up(pcs)
    world.place = lambda pod: False
    await world.bring_up(changed(pcs, "a"), 120)
    found = await images(world)
    assert sorted(found[f"model-0-a-{k}"] == NEW for k in (0, 1)) == [False, True]
    await world.now_place()
    await world.settle(20)
    assert {image for host, image in (await images(world)).items() if "-a-" in host} == {NEW}


@given_a_world
async def test_on_delete_leaves_pods_alone(world: World) -> None:
    """With OnDelete nothing is deleted; a pod somebody deletes comes back from the new template."""
    pcs = workload(strategy="OnDelete")
    await world.bring_up(pcs)
    before = {pod.metadata.uid for pod in await world.pods()}
    await world.bring_up(changed(pcs, "a", "c"), 20)
    assert {pod.metadata.uid for pod in await world.pods()} == before
    assert (await progress(world)).update_ended_at is not None
    for clique in ("model-0-a", "model-0-sg-0-c"):
        pods = await world.pods()
        victim = next(pod for pod in pods if pod.metadata.labels[marks.POD_CLIQUE] == clique)
        await world.client.delete(POD, victim.metadata.name, "test")
    await world.settle()
    found = await images(world)
    assert sorted(host.rpartition("-")[0] for host, image in found.items() if image == NEW) == [
        "model-0-a",
        "model-0-sg-0-c",
    ]


@given_a_world
async def test_scale_in_after_on_delete_takes_the_outdated_pod(world: World) -> None:
    """A clique scaled in keeps the pod that follows the present template."""
    pcs = a_pod_clique_set("model", [a_clique("a", 2, 1)], strategy="OnDelete")
    await world.bring_up(pcs)
    await world.bring_up(changed(pcs, "a"))
    await world.client.delete(POD, (await world.pods())[0].metadata.name, "test")
    await world.settle()
    await world.client.patch(POD_CLIQUE, "model-0-a", {"spec": {"replicas": 1}}, "test")
    await world.settle()
    assert list((await images(world)).values()) == [NEW]


@given_a_world
async def test_a_template_changed_back_half_way_leaves_no_stray_pods(world: World) -> None:
    """Going back to the first template during an update ends with all pods on it."""
    pcs = workload()
    await world.bring_up(pcs)
    world.place = lambda pod: False
    await world.bring_up(changed(pcs, "a"))
    await world.apply(pcs)
    await world.now_place()
    await world.settle(30)
    found = await images(world)
    assert NEW not in found.values()
    assert len(found) == 10
    assert (await progress(world)).update_ended_at is not None


@on_virtual_time
async def test_pods_made_before_anything_was_on_record_are_updated() -> None:
    """A crash between the pods of a PodClique and its first status hides no pod from a change made meanwhile."""
    cliques = [a_clique("worker", 2), a_clique("member", 1)]
    pcs = a_pod_clique_set("model", cliques, [a_scaling_group("sg", ["member"])])
    async with a_world() as world:
        await world.bring_up(pcs)
        server = world.server
        before = {pod.metadata.uid for pod in await world.pods()}
    async with a_world(server=server, placing=False) as bare:
        bare.operator.stop()
        await bare.settle(1)
        for resource, name in ((POD_CLIQUE, "model-0-worker"), (POD_CLIQUE_SCALING_GROUP, "model-0-sg")):
            nothing = {"status": {"currentPodTemplateHash": None, "currentPodCliqueSetGenerationHash": None}}
            await bare.client.patch(resource, name, nothing, "test", subresource="status")
        await bare.apply(changed(pcs, "worker", "member"))
    async with a_world(server=server) as world:
        await world.settle(60)
        assert not {pod.metadata.uid for pod in await world.pods()} & before
        assert len(await world.pods()) == 3


@on_virtual_time
async def test_a_template_that_changes_while_the_end_of_an_update_is_written_is_rolled_out() -> None:
    """The answer shows the newer template; no pod has it yet, so it is not on record as the one that they have."""
    ending, newer = asyncio.Event(), asyncio.Event()

    class Line(InProcessTransport):
        async def request(self, request: Request) -> Response:
            if request.path.endswith("/podcliques/model-0-a/status") and b"updateEndedAt" in (request.body or b""):
                ending.set()
                await newer.wait()
            return await super().request(request)

    def line(server: ApiServer) -> InProcessTransport:
        return Line(server)

    async with a_world(line=line) as world:
        pcs = a_pod_clique_set("model", [a_clique("a", 2)])
        await world.bring_up(pcs)
        await world.apply(changed(pcs, "a"))
        await ending.wait()
        await world.bring_up(changed(pcs, "a", image="registry.example/worker:3"))
        newer.set()
        await world.settle(60)
        assert set((await images(world)).values()) == {"registry.example/worker:3"}
        assert (await progress(world)).update_ended_at is not None
