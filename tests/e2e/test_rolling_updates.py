"""A changed pod template is rolled out without surge, one piece at a time (Grove's RU scenarios).

The piece is a pod in a standalone clique, a replica in a scaling group, and only one replica of the set is touched at a
time. What is in flight is judged after every write to a pod, from the log.
"""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from spinney.api import labels as marks
from spinney.api.grove import PodClique, PodCliqueScalingGroup, PodCliqueSet
from tests.e2e.backends import THOROUGH, everywhere
from tests.e2e.harness import Stage, Stages
from tests.e2e.updating import (
    deleted_since,
    deployed,
    expect_one_at_a_time,
    expect_updated_once,
    is_updating,
    template_reached,
    turn_of,
    updated,
)

STANDALONE = ("pc-a",)
ALL = ("pc-a", "pc-b", "pc-c")


async def scaled_during_update(
    opening: AbstractAsyncContextManager[Stage],
    changed: Sequence[str],
    *,
    turn: int,
    scaled: tuple[type[Any], str, int],
    pods: int,
    groups: int = 2,
    standalone: int = 2,
    reached: int | None = None,
    kept: int = 2,
    once: bool = False,
) -> None:
    """Change cliques of two replicas, scale something when it is the turn of one, and see the update end.

    ``reached`` is a replica that has the new template before that; ``kept`` are those that are served all the time, and
    ``once`` says that nothing new is replaced.
    """
    async with opening as stage:
        await deployed(stage, replicas=2, groups=groups, standalone=standalone)
        since = await stage.change("workload1", *changed)
        await turn_of(stage, turn)
        if reached is not None:
            await template_reached(stage, reached)
        await stage.scale(*scaled)
        await updated(stage, pods)
        kind, name, replicas = scaled
        assert kind is not PodClique or len(stage.pods(name)) == replicas
        expect_one_at_a_time(stage, since, replicas=kept)
        if once:
            expect_updated_once(stage, since)


@everywhere(*THOROUGH)
async def test_ru7_a_standalone_clique(a_stage: Stages) -> None:
    """The pods of a changed standalone clique are replaced one by one, and no other pod is touched."""
    async with a_stage(10) as stage:
        await deployed(stage)
        others = stage.uids() - stage.uids("workload1-0-pc-a")
        since = await stage.change("workload1", "pc-a")
        await updated(stage, 10)
        expect_one_at_a_time(stage, since)
        expect_updated_once(stage, since)
        assert others <= stage.uids()


async def test_ru8_a_member_of_a_scaling_group(a_stage: Stages) -> None:
    """A changed member clique recreates its scaling group one replica at a time, and no standalone pod."""
    async with a_stage(10) as stage:
        await deployed(stage)
        others = stage.uids("workload1-0-pc-a")
        since = await stage.change("workload1", "pc-b")
        await updated(stage, 10)
        expect_one_at_a_time(stage, since)
        expect_updated_once(stage, since)
        assert others == stage.uids("workload1-0-pc-a")


async def test_ru9_all_cliques(a_stage: Stages) -> None:
    """With every clique changed at most one pod of pc-a and one replica of the group are in flight."""
    async with a_stage(10) as stage:
        await deployed(stage)
        before = stage.uids()
        since = await stage.change("workload1", "pc-a", "pc-b", "pc-c")
        await updated(stage, 10)
        expect_one_at_a_time(stage, since)
        expect_updated_once(stage, since)
        assert not before & stage.uids()


async def test_ru10_without_room_the_update_waits(a_stage: Stages) -> None:
    """With every node closed one old pod goes, its replacement stays pending and nothing else moves; then it ends."""
    async with a_stage(10) as stage:
        await deployed(stage)
        await stage.cordon(10)
        since = await stage.change("workload1", "pc-a")
        await stage.until(lambda: len(stage.pending("workload1-0-pc-a")) == 1)
        await stage.stays(lambda: len(deleted_since(stage, since)) == 1 and len(stage.ready()) == 9, seconds=120)
        await stage.until_unschedulable(1)
        await stage.uncordon()
        await updated(stage, 10)
        expect_one_at_a_time(stage, since)


async def test_ru11_the_set_grows_during_an_update(a_stage: Stages) -> None:
    """A replica added half-way is made from the new template at once and is not updated again."""
    await scaled_during_update(
        a_stage(30), STANDALONE, turn=0, scaled=(PodCliqueSet, "workload1", 3), pods=30, once=True
    )


async def test_ru12_the_replica_under_update_is_scaled_away(a_stage: Stages) -> None:
    """The last replica disappears while it is its turn, and the update ends."""
    await scaled_during_update(a_stage(30), ALL, turn=1, scaled=(PodCliqueSet, "workload1", 1), pods=10, kept=1)


async def test_ru13_the_set_shrinks_after_its_last_replica_was_updated(a_stage: Stages) -> None:
    """Scaling in right after the last replica finished leaves one replica, of the new template, and no open update."""
    async with a_stage(20) as stage:
        await deployed(stage, replicas=2)
        since = await stage.change("workload1", "pc-a")
        await turn_of(stage, 1)
        await stage.until(lambda: not is_updating(stage))
        await stage.scale(PodCliqueSet, "workload1", 1)
        await updated(stage, 10)
        expect_one_at_a_time(stage, since, replicas=1)


async def test_ru14_a_scaling_group_grows_during_its_update(a_stage: Stages) -> None:
    """A replica added to a group under update is made from the new template and not replaced again."""
    await scaled_during_update(
        a_stage(28), ALL, turn=0, scaled=(PodCliqueScalingGroup, "workload1-0-sg-x", 3), pods=24, once=True
    )


async def test_ru15_a_scaling_group_grows_before_its_turn(a_stage: Stages) -> None:
    """A replica added to a group that waits for its turn is updated no more than once, and the update ends."""
    await scaled_during_update(
        a_stage(28), ALL, turn=0, scaled=(PodCliqueScalingGroup, "workload1-1-sg-x", 3), pods=24, once=True
    )


async def test_ru16_a_scaling_group_shrinks_during_its_update(a_stage: Stages) -> None:
    """A group of three loses its last replica while it is updated, and the update ends."""
    await scaled_during_update(
        a_stage(28), ALL, turn=0, groups=3, scaled=(PodCliqueScalingGroup, "workload1-0-sg-x", 2), pods=24
    )


async def test_ru17_a_scaling_group_shrinks_before_its_turn(a_stage: Stages) -> None:
    """A group of three loses its last replica before its turn, and the update ends."""
    await scaled_during_update(
        a_stage(28), ALL, turn=0, groups=3, scaled=(PodCliqueScalingGroup, "workload1-1-sg-x", 2), pods=24
    )


async def test_ru18_a_standalone_clique_grows_during_its_update(a_stage: Stages) -> None:
    """Pods added to a clique under update are made from the new template and not replaced again."""
    await scaled_during_update(a_stage(24), ALL, turn=0, scaled=(PodClique, "workload1-0-pc-a", 4), pods=22, once=True)


async def test_ru19_a_standalone_clique_grows_before_its_turn(a_stage: Stages) -> None:
    """Pods added to a clique that waits for its turn are made from the new template and not replaced again."""
    await scaled_during_update(
        a_stage(24), ALL, turn=0, reached=1, scaled=(PodClique, "workload1-1-pc-a", 4), pods=22, once=True
    )


async def test_ru20_a_standalone_clique_shrinks_during_its_update(a_stage: Stages) -> None:
    """A clique of three loses a pod while it is updated; what was updated stays, and the update ends."""
    await scaled_during_update(
        a_stage(22), STANDALONE, turn=0, standalone=3, scaled=(PodClique, "workload1-0-pc-a", 2), pods=21
    )


async def test_ru21_a_standalone_clique_shrinks_before_its_turn(a_stage: Stages) -> None:
    """A clique of three loses a pod before its turn, and the update ends with the two that are left."""
    await scaled_during_update(
        a_stage(22), STANDALONE, turn=0, standalone=3, scaled=(PodClique, "workload1-1-pc-a", 2), pods=21
    )


async def test_an_update_names_its_progress(a_stage: Stages) -> None:
    """While a set is updated its counts never exceed their totals, and at the end they reach them."""
    async with a_stage(10) as stage:
        await deployed(stage)
        since = await stage.change("workload1", "pc-a", "pc-b", "pc-c")
        await updated(stage, 10)
        seen = [
            each.object.status.update_progress for each in stage.chronicle.log(since=since) if each.kind is PodCliqueSet
        ]
        for progress in filter(None, seen):
            assert (progress.updated_pod_cliques_count or 0) <= (progress.total_pod_cliques_count or 0)
            assert len(progress.currently_updating) <= 1
        last = seen[-1]
        assert last is not None
        assert last.updated_pod_cliques_count == last.total_pod_cliques_count == 1
        groups = last.updated_pod_clique_scaling_groups_count, last.total_pod_clique_scaling_groups_count
        assert groups == (1, 1)
        assert {pod.metadata.labels[marks.POD_TEMPLATE_HASH] for pod in stage.pods("workload1-0-pc-a")} == {
            stage.clique("workload1-0-pc-a").metadata.labels[marks.POD_TEMPLATE_HASH]
        }
