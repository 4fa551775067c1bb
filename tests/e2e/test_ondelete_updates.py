"""With OnDelete nothing is replaced until somebody deletes it (Grove's OD scenarios)."""

from collections.abc import Callable

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


async def changed(stage: Stage, *cliques: str, edit: Callable[[JSON], None] | None = None) -> int:
    """Change cliques; wait until the change is on record at every level, as an update that has ended."""
    before = stage.pod_clique_set(SET).status.current_generation_hash
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
    assert progress.update_ended_at is not None
    assert not progress.currently_updating
    return since


async def replaced(stage: Stage, pod: Pod) -> Pod:
    """Delete a pod and return what came in its place, ready and of its clique's present template."""
    clique, before, count = pod.metadata.labels[marks.POD_CLIQUE], stage.uids(), len(stage.pods())
    await stage.delete_pod(pod)
    await stage.until(lambda: len(stage.uids() - before) == 1 and len(stage.ready()) == count)
    (new,) = [each for each in stage.pods(clique) if each.metadata.uid not in before]
    assert is_current(stage, new)
    return new


def is_current(stage: Stage, pod: Pod) -> bool:
    """Say whether a pod is of its clique's present template."""
    template = stage.clique(pod.metadata.labels[marks.POD_CLIQUE]).metadata.labels[marks.POD_TEMPLATE_HASH]
    return pod.metadata.labels[marks.POD_TEMPLATE_HASH] == template


async def test_od1_a_change_deletes_nothing(a_stage: Stages) -> None:
    """Changing pc-a deletes no pod; the update is on record as ended, with nothing updated."""
    async with a_stage(10) as stage:
        await deployed(stage)
        since = await changed(stage, "pc-a")
        assert deleted_since(stage, since) == set()
        assert not any(is_current(stage, pod) for pod in stage.pods(A))
        assert stage.clique(A).status.updated_replicas == 0
        progress = stage.clique(A).status.update_progress
        assert progress is not None
        assert progress.update_ended_at is not None
        assert stage.pod_clique_set(SET).status.updated_replicas == 0


async def test_od2_a_deleted_pod_comes_back_new(a_stage: Stages) -> None:
    """The replacement of a pod deleted by hand has the new template, and the clique counts one updated pod."""
    async with a_stage(10) as stage:
        await deployed(stage)
        await changed(stage, "pc-a")
        await replaced(stage, stage.pods(A)[0])
        await stage.until(lambda: stage.clique(A).status.updated_replicas == 1)


@on(*(backend for backend in THOROUGH if backend.minimums_first))
async def test_od3_scaling_in_prefers_outdated_pods(a_stage: Stages) -> None:
    """Of one outdated and one updated pod the outdated one is scaled away."""
    async with a_stage(10) as stage:
        await deployed(stage)
        await changed(stage, "pc-a")
        new = await replaced(stage, stage.pods(A)[0])
        await stage.scale(PodClique, A, 1)
        await stage.until(lambda: len(stage.pods(A)) == 1)
        await stage.settle()
        assert stage.uids(A) == {new.metadata.uid}


async def test_od4_a_member_clique_is_not_recreated(a_stage: Stages) -> None:
    """Changing a member of a scaling group deletes nothing; the group records the update as ended."""
    async with a_stage(10) as stage:
        await deployed(stage)
        cliques = {clique.metadata.uid for clique in stage.chronicle.all(PodClique).values()}
        since = await changed(stage, "pc-b")
        assert deleted_since(stage, since) == set()
        assert cliques == {clique.metadata.uid for clique in stage.chronicle.all(PodClique).values()}
        progress = stage.group(f"{SET}-0-sg-x").status.update_progress
        assert progress is not None
        assert progress.update_ended_at is not None


async def test_od5_a_deleted_member_pod_comes_back_new(a_stage: Stages) -> None:
    """The replacement of a scaling group's pod deleted by hand has the new template; its siblings stay."""
    async with a_stage(10) as stage:
        await deployed(stage)
        await changed(stage, "pc-c")
        victim = stage.pods(C)[0]
        others = stage.uids() - {victim.metadata.uid}
        await replaced(stage, victim)
        assert others <= stage.uids()


async def test_od6_one_pod_of_each_kind(a_stage: Stages) -> None:
    """With all cliques changed nothing is deleted, and one pod of each deleted by hand comes back new."""
    async with a_stage(10) as stage:
        await deployed(stage)
        since = await changed(stage, "pc-a", "pc-b", "pc-c")
        assert deleted_since(stage, since) == set()
        for clique in (A, B, C):
            await replaced(stage, stage.pods(clique)[0])
        assert sum(is_current(stage, pod) for pod in stage.pods()) == 3


async def test_od7_in_every_replica(a_stage: Stages) -> None:
    """Changing pc-a deletes nothing in either replica of the set."""
    async with a_stage(20) as stage:
        await deployed(stage, replicas=2)
        since = await changed(stage, "pc-a")
        await stage.stays(lambda: deleted_since(stage, since) == set(), seconds=60)
        assert len(stage.ready()) == 20


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

        since = await changed(stage, "pc-a", edit=avoid)
        assert deleted_since(stage, since) == set()
        others = stage.uids() - {victim.metadata.uid}
        new = await replaced(stage, victim)
        assert new.spec.node_name != failed
        assert others <= stage.uids()


async def test_od9_switching_the_strategy(a_stage: Stages) -> None:
    """OnDelete leaves pods, RollingRecreate after a switch replaces what changes then, and OnDelete leaves again."""

    def switch_to(strategy: str) -> Callable[[JSON], None]:
        def edit(pcs: JSON) -> None:
            pcs["spec"]["updateStrategy"] = {"type": strategy}

        return edit

    async with a_stage(10) as stage:
        await deployed(stage)
        since = await changed(stage, "pc-a")
        assert deleted_since(stage, since) == set()

        await stage.edit(SET, switch_to("RollingRecreate"))
        await stage.settle()
        before = stage.uids(B)
        await stage.change(SET, "pc-b")
        await stage.until(lambda: not before & stage.uids() and len(stage.ready()) == 10)
        await stage.settle()
        assert all(is_current(stage, pod) for pod in stage.pods(B, C))

        await stage.edit(SET, switch_to("OnDelete"))
        await stage.settle()
        since = await changed(stage, "pc-c")
        assert deleted_since(stage, since) == set()
