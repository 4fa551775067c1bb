"""Preferences between pods, with the rules that a scheduler has by default."""

import pytest

from spinney.api.affinity import Affinity, PodAffinity, PodAffinityTerm, WeightedPodAffinityTerm
from spinney.api.selectors import LabelSelector
from tests.scheduler.building import ZONE, a_gang, a_node, a_pod, a_scheduler, an_inventory, placements, put_gang


@pytest.mark.parametrize("zone", ["x", "y"])
@pytest.mark.parametrize("near", [True, False])
def test_a_pod_goes_near_or_far_from_those_it_would_rather(zone: str, near: bool) -> None:
    """Preferred affinity to pods decides between nodes that suit as well, and preferred anti-affinity the other way."""
    inventory = an_inventory(a_node("a", labels={ZONE: "x"}), a_node("b", labels={ZONE: "y"}))
    there = {"x": "a", "y": "b"}
    cache = a_pod("cache-0", gang="cache", node=there[zone], labels={"app": "cache"})
    put_gang(inventory, a_gang("cache"), [cache])
    term = PodAffinityTerm(topology_key=ZONE, label_selector=LabelSelector(match_labels={"app": "cache"}))
    preferred = PodAffinity(
        preferred_during_scheduling_ignored_during_execution=(
            WeightedPodAffinityTerm(weight=10, pod_affinity_term=term),
        )
    )
    affinity = Affinity(pod_affinity=preferred) if near else Affinity(pod_anti_affinity=preferred)
    put_gang(inventory, a_gang("job"), [a_pod("job-0", gang="job", gpus=1, affinity=affinity)])

    wanted = zone if near else {"x": "y", "y": "x"}[zone]
    assert placements(a_scheduler(inventory)) == {"job-0": there[wanted]}
