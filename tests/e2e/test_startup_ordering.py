"""Cliques start in the order they ask for, within their gang (Grove's SO scenarios).

All pods of a gang are placed together; a pod's containers start only when enough pods of the cliques it starts after,
in its own gang, are ready. The times are those its node wrote.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import pairwise

from spinney.api.struct import JSON
from spinney.nodes import PodTimes
from tests.e2e.backends import ONE_OF_EACH, on
from tests.e2e.harness import Stage, Stages
from tests.e2e.workloads.functional import workload3, workload4, workload5, workload6

VARIED = PodTimes(start="1s..4s", ready="2s..5s", stop="500ms")


def started(stage: Stage, clique: str) -> list[datetime]:
    """Return when the containers of a PodClique's pods started, in order."""
    running = [pod.status.container_statuses[0].state.running for pod in stage.pods(clique)]
    return sorted(each.started_at for each in running if each is not None and each.started_at is not None)


def became_ready(stage: Stage, clique: str) -> list[datetime]:
    """Return when the pods of a PodClique became ready, in order."""
    conditions = [pod.condition("Ready") for pod in stage.pods(clique)]
    return sorted(
        each.last_transition_time for each in conditions if each is not None and each.last_transition_time is not None
    )


def expect_order(stage: Stage, *cliques: str, minimum: int | None = None) -> None:
    """Check that no pod of a clique started before the minimum of the clique before it was ready."""
    for parent, child in pairwise(cliques):
        ready = became_ready(stage, parent)
        enough = ready[-1] if minimum is None else ready[minimum - 1]
        assert started(stage, child)[0] >= enough, f"{child} started before {parent} was ready"


async def play(
    a_stage: Stages,
    manifest: JSON,
    *orders: Sequence[str],
    minimum: int | None = None,
    starts_after: Mapping[str, tuple[str, ...]] | None = None,
) -> None:
    """Start ten pods; check each of the ``orders`` of PodCliques, and what PodCliques say that they start after."""
    name = f"{manifest['metadata']['name']}-0"
    async with a_stage(10, times=VARIED) as stage:
        await stage.deploy(manifest)
        await stage.until_ready(10)
        for cliques in orders:
            expect_order(stage, *(f"{name}-{clique}" for clique in cliques), minimum=minimum)
        for clique, parents in (starts_after or {}).items():
            found = stage.clique(f"{name}-{clique}").spec.starts_after
            assert found == tuple(f"{name}-{parent}" for parent in parents)


@on(*ONE_OF_EACH)
async def test_so1_in_order_within_one_gang(a_stage: Stages) -> None:
    """All of pc-a is ready before any pc-b starts, and every pc-b before any pc-c."""
    await play(
        a_stage,
        workload3(),
        ("pc-a", "sg-x-0-pc-b", "sg-x-0-pc-c"),
        ("pc-a", "sg-x-0-pc-b", "sg-x-1-pc-c"),
        ("pc-a", "sg-x-1-pc-b", "sg-x-0-pc-c"),
        ("pc-a", "sg-x-1-pc-b", "sg-x-1-pc-c"),
    )


@on(*ONE_OF_EACH)
async def test_so2_in_order_within_each_gang(a_stage: Stages) -> None:
    """The base gang starts a, b, c; the scaled gang b, c, and waits for nobody else."""
    await play(
        a_stage,
        workload4(),
        ("pc-a", "sg-x-0-pc-b", "sg-x-0-pc-c"),
        ("sg-x-1-pc-b", "sg-x-1-pc-c"),
        minimum=1,
        starts_after={"sg-x-1-pc-b": (), "sg-x-1-pc-c": ("sg-x-1-pc-b",)},
    )


@on(*ONE_OF_EACH)
async def test_so3_an_explicit_order_within_one_gang(a_stage: Stages) -> None:
    """pc-c starts after pc-a, and pc-b after pc-c, whatever their place in the list."""
    await play(
        a_stage,
        workload5(),
        ("pc-a", "sg-x-0-pc-c", "sg-x-0-pc-b"),
        ("pc-a", "sg-x-0-pc-c", "sg-x-1-pc-b"),
        ("pc-a", "sg-x-1-pc-c", "sg-x-0-pc-b"),
        ("pc-a", "sg-x-1-pc-c", "sg-x-1-pc-b"),
    )


@on(*ONE_OF_EACH)
async def test_so4_an_explicit_order_within_each_gang(a_stage: Stages) -> None:
    """The base gang starts a, b, c; in the scaled gang only b before c is left of that order."""
    await play(
        a_stage,
        workload6(),
        ("pc-a", "sg-x-0-pc-b", "sg-x-0-pc-c"),
        ("sg-x-1-pc-b", "sg-x-1-pc-c"),
        minimum=1,
        starts_after={"sg-x-1-pc-b": ()},
    )
