"""With OnDelete nothing is replaced until somebody deletes it (Grove's OD scenarios).

Each row of a scenario is something that is done, and how many pods of which PodCliques have the present template then.
"""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager

from spinney.api import labels as marks
from spinney.api.core import Pod
from spinney.api.grove import PodClique, PodCliqueSet
from spinney.api.struct import JSON
from tests.e2e.backends import THOROUGH, on
from tests.e2e.floor import HOST
from tests.e2e.harness import Stage, Stages
from tests.e2e.updating import deleted_since
from tests.e2e.workloads.functional import workload_ondelete

SET = "workload-ondelete"
A = f"{SET}-0-pc-a"
B = f"{SET}-0-sg-x-0-pc-b"
C = f"{SET}-0-sg-x-1-pc-c"


async def deployed(stage: Stage, *, replicas: int = 1) -> None:
    """Bring the workload up in so many replicas."""
    await stage.deploy(workload_ondelete())
    await stage.until_ready(10)
    if replicas > 1:
        await stage.scale(PodCliqueSet, SET, replicas)
        await stage.until_ready(10 * replicas)
    await stage.settle()


async def changed(stage: Stage, *cliques: str, edit: Callable[[JSON], None] | None = None) -> None:
    """Change cliques: no pod and no PodClique goes, and the change is on record at every level, as an ended update."""
    before = stage.pod_clique_set(SET).status.current_generation_hash
    existing = {clique.metadata.uid for clique in stage.chronicle.all(PodClique).values()}
    since = await stage.change(SET, *cliques, edit=edit)

    def recorded() -> bool:
        status = stage.pod_clique_set(SET).status
        current = status.current_generation_hash
        followed = all(
            clique.status.current_pod_clique_set_generation_hash == current
            for clique in stage.chronicle.all(PodClique).values()
        )
        return current != before and followed

    await stage.until(recorded)
    await stage.settle()
    progress = stage.pod_clique_set(SET).status.update_progress
    assert progress is not None
    assert not progress.currently_updating
    of_parts = [clique.status.update_progress for clique in stage.chronicle.all(PodClique).values()]
    steps = [each for each in (stage.group(f"{SET}-0-sg-x").status.update_progress, *of_parts) if each is not None]
    assert steps
    assert all(each.update_ended_at for each in (progress, *steps))
    assert deleted_since(stage, since) == set()
    assert existing == {clique.metadata.uid for clique in stage.chronicle.all(PodClique).values()}


async def replaced(stage: Stage, pod: Pod) -> Pod:
    """Delete a pod and return what came in its place, ready and of its clique's present template."""
    clique, before, count = pod.metadata.labels[marks.POD_CLIQUE], stage.uids(), len(stage.pods())
    await stage.delete_pod(pod)
    await stage.until(lambda: len(stage.uids() - before) == 1 and len(stage.ready()) == count)
    assert before - {pod.metadata.uid} <= stage.uids()
    (new,) = [each for each in stage.pods(clique) if each.metadata.uid not in before]
    assert is_current(stage, new)
    return new


def is_current(stage: Stage, pod: Pod) -> bool:
    """Say whether a pod is of its clique's present template."""
    template = stage.clique(pod.metadata.labels[marks.POD_CLIQUE]).metadata.labels[marks.POD_TEMPLATE_HASH]
    return pod.metadata.labels[marks.POD_TEMPLATE_HASH] == template


Deed = Callable[[Stage], Awaitable[object]]


async def play(
    opening: AbstractAsyncContextManager[Stage], *rows: tuple[Deed, dict[str, int]], replicas: int = 1
) -> None:
    """Do row after row; the PodCliques count as many updated pods as there are."""
    async with opening as stage:
        await deployed(stage, replicas=replicas)
        for do, updated in rows:
            await do(stage)
            await stage.settle()
            for clique, count in updated.items():
                assert sum(is_current(stage, pod) for pod in stage.pods(clique)) == count
                assert stage.clique(clique).status.updated_replicas == count


def change(*cliques: str) -> Deed:
    """Change cliques, of which no pod goes for it."""
    return lambda stage: changed(stage, *cliques)


def delete_one(clique: str) -> Deed:
    """Delete the first pod of a PodClique; what comes in its place is new, and no other pod is touched."""
    return lambda stage: replaced(stage, stage.pods(clique)[0])


def scale(clique: str, replicas: int) -> Deed:
    async def do(stage: Stage) -> None:
        await stage.scale(PodClique, clique, replicas)
        await stage.until(lambda: len(stage.pods(clique)) == replicas)

    return do


def switch_to(strategy: str) -> Deed:
    """Have the set updated in another way."""
    return lambda stage: stage.edit(SET, lambda pcs: pcs["spec"].update(updateStrategy={"type": strategy}))


def roll(changed: str, of: str) -> Deed:
    """Change a clique and wait until the pods of a PodClique have been replaced."""

    async def do(stage: Stage) -> None:
        before = stage.uids(of)
        await stage.change(SET, changed)
        await stage.until(lambda: not before & stage.uids() and len(stage.ready()) == 10)

    return do


async def a_minute(stage: Stage) -> None:
    """Let a minute pass in which no pod goes."""
    uids = stage.uids()
    await stage.stays(lambda: stage.uids() == uids, seconds=60)


async def test_od1_a_change_deletes_nothing(a_stage: Stages) -> None:
    """Changing pc-a deletes no pod; the update is on record as ended, with nothing updated."""
    await play(a_stage(10), (change("pc-a"), {A: 0}))


async def test_od2_a_deleted_pod_comes_back_new(a_stage: Stages) -> None:
    """The replacement of a pod deleted by hand has the new template, and the clique counts one updated pod."""
    await play(a_stage(10), (change("pc-a"), {A: 0}), (delete_one(A), {A: 1}))


@on(*(backend for backend in THOROUGH if backend.minimums_first))
async def test_od3_scaling_in_prefers_outdated_pods(a_stage: Stages) -> None:
    """Of one outdated and one updated pod the outdated one is scaled away."""
    await play(a_stage(10), (change("pc-a"), {A: 0}), (delete_one(A), {A: 1}), (scale(A, 1), {A: 1}))


async def test_od4_a_member_clique_is_not_recreated(a_stage: Stages) -> None:
    """Changing a member of a scaling group deletes nothing; the group records the update as ended."""
    await play(a_stage(10), (change("pc-b"), {B: 0}))


async def test_od5_a_deleted_member_pod_comes_back_new(a_stage: Stages) -> None:
    """The replacement of a scaling group's pod deleted by hand has the new template; its siblings stay."""
    await play(a_stage(10), (change("pc-c"), {C: 0}), (delete_one(C), {C: 1}))


async def test_od6_one_pod_of_each_kind(a_stage: Stages) -> None:
    """With all cliques changed nothing is deleted, and one pod of each deleted by hand comes back new."""
    await play(
        a_stage(10),
        (change("pc-a", "pc-b", "pc-c"), {A: 0, B: 0, C: 0}),
        (delete_one(A), {A: 1, B: 0, C: 0}),
        (delete_one(B), {A: 1, B: 1, C: 0}),
        (delete_one(C), {A: 1, B: 1, C: 1}),
    )


async def test_od7_in_every_replica(a_stage: Stages) -> None:
    """Changing pc-a deletes nothing in either replica of the set."""
    both = {A: 0, f"{SET}-1-pc-a": 0}
    await play(a_stage(20), (change("pc-a"), both), (a_minute, both), replicas=2)


async def test_od8_moving_a_pod_off_a_node(a_stage: Stages) -> None:
    """With a template that avoids a node, deleting the pod there moves it, and only it."""
    async with a_stage(11) as stage:
        await deployed(stage)
        victim = stage.pods(A)[0]
        failed = victim.spec.node_name

        def avoid(clique: JSON) -> None:
            affinity = clique["spec"]["podSpec"]["affinity"]["nodeAffinity"]
            term = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"][0]
            term["matchExpressions"].append({"key": HOST, "operator": "NotIn", "values": [failed]})

        await changed(stage, "pc-a", edit=avoid)
        new = await replaced(stage, victim)
        assert new.spec.node_name != failed


async def test_od9_switching_the_strategy(a_stage: Stages) -> None:
    """OnDelete leaves pods, RollingRecreate after a switch replaces what changes then, and OnDelete leaves again."""
    await play(
        a_stage(10),
        (change("pc-a"), {A: 0}),
        (switch_to("RollingRecreate"), {}),
        (roll("pc-b", of=B), {B: 1, C: 3}),
        (switch_to("OnDelete"), {}),
        (change("pc-c"), {C: 0}),
    )
