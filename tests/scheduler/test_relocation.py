"""Relocation: a broken gang is moved whole where it cannot be repaired, and never for nothing."""

import pytest

from spinney.api.labels import HOSTNAME
from spinney.gangs.tree import TopologyConstraintInfo
from spinney.scheduler.config import SchedulerConfig
from spinney.scheduler.framework.session import Session
from spinney.scheduler.intake.inventory import Inventory
from spinney.scheduler.topology.levels import TopologyLevels
from tests.scheduler.building import RACK, a_gang, a_node, a_pod, a_scheduler, an_inventory, put_gang

LEVELS = TopologyLevels(name="hall", levels=(RACK, HOSTNAME), kind="Topology")
ONE_RACK = TopologyConstraintInfo("hall", required=RACK, kind="Topology")


def a_hall(*racks: int) -> Inventory:
    """Return racks of so many nodes with one GPU each."""
    nodes = [
        a_node(f"r{rack}n{number}", gpus=1, labels={RACK: f"r{rack}", HOSTNAME: f"r{rack}n{number}"})
        for rack, size in enumerate(racks)
        for number in range(size)
    ]
    inventory = an_inventory(*nodes)
    inventory.put_topology(LEVELS)
    return inventory


def put_broken(inventory: Inventory, *nodes: str, lost: int = 1, minimum: int | None = None) -> None:
    """Put a gang that runs on these nodes and waits for pods that it lost."""
    size = len(nodes) + lost
    gang = a_gang("train", minimum=size if minimum is None else minimum, topology=ONE_RACK)
    pods = [a_pod(f"train-{number}", gang="train", gpus=1, node=node) for number, node in enumerate(nodes)]
    pods += [a_pod(f"train-{len(nodes) + number}", gang="train", gpus=1) for number in range(lost)]
    put_gang(inventory, gang, pods)


def cycle(inventory: Inventory, config: SchedulerConfig | None = None) -> Session:
    """Run one cycle; return its session."""
    scheduler = a_scheduler(inventory, config=config)
    session = scheduler.open_session()
    scheduler.run_actions(session)
    return session


def test_a_gang_is_repaired_where_it_is() -> None:
    """Its rack has room: the pod is bound there, and nobody is evicted."""
    inventory = a_hall(3, 3)
    put_broken(inventory, "r0n0", "r0n1")
    session = cycle(inventory)
    assert [bind.node for bind in session.binds] == ["r0n2"]
    assert not session.evictions


def test_a_gang_is_moved_whole_where_its_rack_is_full() -> None:
    """All of it goes, and all of it is promised the other rack."""
    inventory = a_hall(2, 3)
    put_broken(inventory, "r0n0", "r0n1")
    session = cycle(inventory)
    assert sorted(eviction.pod.name for eviction in session.evictions) == ["train-0", "train-1"]
    assert {eviction.moves_to[:2] for eviction in session.evictions} == {"r1"}
    assert {pipeline.node[:2] for pipeline in session.pipelines} == {"r1"}
    assert "moved whole" in session.evictions[0].message


@pytest.mark.parametrize("racks", [(2, 2), (2,)])
def test_nobody_is_evicted_where_there_is_no_other_place(racks: tuple[int, ...]) -> None:
    """A move that cannot be costs nothing."""
    inventory = a_hall(*racks)
    put_broken(inventory, "r0n0", "r0n1")
    assert not cycle(inventory).evictions


def test_a_gang_that_has_its_minimum_stays() -> None:
    """Pods beyond the minimum that find no room are no reason to restart the rest."""
    inventory = a_hall(2, 3)
    put_broken(inventory, "r0n0", "r0n1", minimum=2)
    assert not cycle(inventory).evictions


def test_a_gang_that_waits_for_a_pod_that_goes_stays() -> None:
    """Room in the rack that is about to be free is waited for."""
    inventory = a_hall(3, 3)
    put_broken(inventory, "r0n0", "r0n1")
    inventory.apply(a_pod("leaving", gpus=1, node="r0n2", terminating=True))
    session = cycle(inventory)
    assert not session.evictions
    assert [pipeline.node for pipeline in session.pipelines] == ["r0n2"]


def test_a_gang_that_may_lie_anywhere_is_not_moved() -> None:
    """Without a required domain there is none to leave; to shuffle its own pods would restart them for nothing."""
    inventory = a_hall(2)
    gang = a_gang("train", minimum=2)
    pods = [a_pod("train-0", gang="train", gpus=1, node="r0n0"), a_pod("train-1", gang="train", gpus=1)]
    put_gang(inventory, gang, pods)
    inventory.apply(a_pod("other", gpus=1, node="r0n1"))
    assert not cycle(inventory).evictions


def test_the_profile_that_imitates_kai_moves_nobody() -> None:
    """KAI has no such action."""
    inventory = a_hall(2, 3)
    put_broken(inventory, "r0n0", "r0n1")
    assert not cycle(inventory, SchedulerConfig.kai_compat()).evictions


def test_a_broken_gang_moves_before_healthy_ones_make_room() -> None:
    """The single pod that lies in its rack could be moved; the gang, which restarts anyway, is."""
    inventory = a_hall(3, 3, 1)
    put_broken(inventory, "r0n0", "r0n1")
    put_gang(inventory, a_gang("healthy"), [a_pod("healthy-0", gang="healthy", gpus=1, node="r0n2")])
    assert {eviction.gang.name for eviction in cycle(inventory).evictions} == {"train"}
