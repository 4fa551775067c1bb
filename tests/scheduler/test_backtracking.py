"""The default profile finds places that greed misses; the compatible one is greedy."""

import pytest

from spinney.gangs.tree import GroupSet, PodSet, TopologyConstraintInfo
from spinney.scheduler.config import SchedulerConfig
from spinney.scheduler.intake.inventory import Inventory
from spinney.scheduler.topology.levels import TopologyLevels
from tests.scheduler.building import RACK, a_gang, a_node, a_pod, a_scheduler, an_inventory, placements, put_gang


def unlike_pods() -> Inventory:
    """Return a gang of one small and two large pods on nodes that hold them only if the large ones go first."""
    inventory = an_inventory(a_node("n1", gpus=2), a_node("n2", gpus=3))
    sizes = {"a-small": 1, "b-large": 2, "c-large": 2}
    put_gang(inventory, a_gang("job", minimum=3), [a_pod(name, gang="job", gpus=gpus) for name, gpus in sizes.items()])
    return inventory


def competing_groups() -> Inventory:
    """Return a gang of two groups, the first of which would greedily take the only rack the second can use."""
    inventory = an_inventory(
        a_node("r1-0", gpus=4, cpu="64", labels={RACK: "r1"}), a_node("r2-0", gpus=5, cpu="8", labels={RACK: "r2"})
    )
    inventory.put_topology(TopologyLevels("fabric", (RACK,)))
    constraint = TopologyConstraintInfo("fabric", required=RACK)
    root = GroupSet("", (PodSet("a", 3, constraint), PodSet("b", 4, constraint)))
    pods = [a_pod(f"a{number}", gang="job", pod_set="a", gpus=1, cpu="1") for number in range(3)]
    pods += [a_pod(f"b{number}", gang="job", pod_set="b", gpus=1, cpu="8") for number in range(4)]
    put_gang(inventory, a_gang("job", root=root), pods)
    return inventory


@pytest.mark.parametrize("make", [unlike_pods, competing_groups])
def test_a_gang_that_greed_fails_is_still_placed(make) -> None:  # type: ignore[no-untyped-def]
    """Large pods first, and a choice of rack revisited, place what greedy placement cannot."""
    assert placements(a_scheduler(make(), config=SchedulerConfig.kai_compat())) == {}
    assert len(placements(a_scheduler(make()))) in {3, 7}


def test_a_gang_that_cannot_fit_is_not_searched_for() -> None:
    """Where the sum of requests exceeds what is free, one attempt is enough."""
    inventory = an_inventory(a_node("n1", gpus=3))
    sizes = {"a-small": 1, "b-large": 2, "c-large": 2}
    put_gang(inventory, a_gang("job", minimum=3), [a_pod(name, gang="job", gpus=gpus) for name, gpus in sizes.items()])
    scheduler = a_scheduler(inventory)
    session = scheduler.open_session()
    scheduler.run_actions(session)

    assert not session.binds
    assert len(session.fit_errors[a_gang("job").key]) == 1


def test_the_reason_of_a_search_that_fails_is_that_of_the_first_attempt() -> None:
    """A failed search adds nothing to what the user is told."""
    inventory = an_inventory(a_node("n1", gpus=3), a_node("n2", gpus=3))
    put_gang(
        inventory,
        a_gang("job", minimum=3),
        [a_pod(name, gang="job", gpus=gpus) for name, gpus in {"a": 1, "b": 1, "c": 4}.items()],
    )
    (unschedulable,) = a_scheduler(inventory).run_cycle().unschedulable

    assert [error.reason for error in unschedulable.errors] == ["PodSchedulingErrors"]
