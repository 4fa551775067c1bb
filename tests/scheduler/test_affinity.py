"""Preferences between pods, with the rules that a scheduler has by default."""

import sys

import pytest

from spinney.api.affinity import Affinity, PodAffinity, PodAffinityTerm, WeightedPodAffinityTerm
from spinney.api.selectors import LabelSelector, LabelSelectorRequirement
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


@pytest.mark.parametrize("required", [True, False])
def test_rules_that_one_pod_has_about_all_others_are_summed_once_for_those_that_are_alike(required: bool) -> None:
    """Somebody's pod may have thousands of terms that mean everybody's: a pod more costs no more for them."""

    def calls_for(pods: int, rules: int) -> int:
        inventory = an_inventory(*(a_node(name, gpus=32, labels={ZONE: name}) for name in "abc"))
        selectors = (
            LabelSelector(match_expressions=(LabelSelectorRequirement(key=f"none-{number}", operator="DoesNotExist"),))
            for number in range(rules)
        )
        terms = tuple(PodAffinityTerm(topology_key=ZONE, label_selector=each) for each in selectors)
        wished = tuple(WeightedPodAffinityTerm(weight=1, pod_affinity_term=term) for term in terms)
        rule = (
            PodAffinity(required_during_scheduling_ignored_during_execution=terms)
            if required
            else PodAffinity(preferred_during_scheduling_ignored_during_execution=wished)
        )
        lord = a_pod("lord-0", gang="lord", node="a", affinity=Affinity(pod_anti_affinity=rule))
        put_gang(inventory, a_gang("lord"), [lord])
        for number in range(pods):
            put_gang(inventory, a_gang(f"job-{number}"), [a_pod(f"job-{number}-0", gang=f"job-{number}", gpus=1)])
        scheduler, calls = a_scheduler(inventory), 0

        def count(frame: object, event: str, arg: object) -> None:
            nonlocal calls
            calls += event == "call"

        sys.setprofile(count)
        try:
            result = scheduler.run_cycle()
        finally:
            sys.setprofile(None)
        assert len(result.binds) == pods
        assert "a" not in {bind.node for bind in result.binds}
        return calls

    few, many = (calls_for(20, rules) - calls_for(10, rules) for rules in (20, 200))
    assert many < 2 * few
