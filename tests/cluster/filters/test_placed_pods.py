"""The count tables over placed pods."""

import tracemalloc

from spinney.api.core import Pod
from spinney.api.selectors import Selector
from spinney.api.struct import convert
from spinney.cluster.filters import PlacedPods
from spinney.cluster.filters.pod_kinds import SELECTORS_KEPT
from spinney.cluster.filters.pod_selectors import PodSelector, PodTerm


def a_pod(name: str, app: str = "a", namespace: str = "blue") -> Pod:
    return convert(Pod, {"metadata": {"name": name, "namespace": namespace, "labels": {"app": app}}})


def pods_of(app: str, *, live: bool = False) -> PodSelector:
    """Return the selector of the pods with this label in namespace blue."""
    return PodSelector((PodTerm(frozenset(["blue"]), Selector.parse(f"app={app}")),), live=live)


def test_counts_are_right_whenever_they_are_first_asked_for() -> None:
    """A selector first asked about late counts the pods that came before, and then follows."""
    pods = PlacedPods()
    pods.place(a_pod("one"), 3)
    pods.place(a_pod("elsewhere", namespace="green"), 3)
    assert pods.counts(pods_of("a"), 5).tolist() == [0, 0, 0, 1, 0]
    pods.place(a_pod("two"), 4)
    pods.place(a_pod("two"), 0)  # the same pod, seen on another node
    assert pods.counts(pods_of("a"), 5).tolist() == [1, 0, 0, 1, 0]


def test_terminating_pods_count_only_where_asked() -> None:
    """Spread constraints leave out pods that are being deleted; affinity does not."""
    pods = PlacedPods()
    metadata = {"name": "p", "namespace": "blue", "labels": {"app": "a"}, "deletionTimestamp": "2026-01-01T00:00:00Z"}
    pods.place(convert(Pod, {"metadata": metadata}), 0)
    assert pods.counts(pods_of("a", live=True), 1).tolist() == [0]
    assert pods.counts(pods_of("a"), 1).tolist() == [1]


def test_forks_go_their_own_way() -> None:
    """What is placed on a fork is not seen by the other, also for selectors either asked about first."""
    pods = PlacedPods()
    pods.place(a_pod("one"), 0)
    fork = pods.fork()
    fork.place(a_pod("two"), 1)
    assert fork.counts(pods_of("a"), 2).tolist() == [1, 1]
    pods.place(a_pod("three"), 0)
    assert pods.counts(pods_of("a"), 2).tolist() == [2, 0]
    assert fork.counts(pods_of("a"), 2).tolist() == [1, 1]


def a_pod_with_rules(name: str, *, rules: int = 1, port: int = 80) -> Pod:
    """Return a pod that keeps others away by so many rules, of which the first means pods of app 0, and has a port."""
    terms = [{"topologyKey": "host", "labelSelector": {"matchLabels": {"app": str(number)}}} for number in range(rules)]
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    container = {"name": "c", "ports": [{"containerPort": port, "hostPort": port}]}
    metadata = {"name": name, "namespace": "blue"}
    return convert(Pod, {"metadata": metadata, "spec": {"affinity": affinity, "containers": [container]}})


def carried(pods: PlacedPods, rows: int) -> list[list[int]]:
    """Return how many pods carry each rule about pods of app 0, and how many have port 80."""
    about = pods.rules_about("blue", {}, {"app": "0"}, rows)
    assert pods.have_rules_about("blue", {}, {"app": "0"}) == (about is not None)
    rules = [counts.tolist() for counts in about.forbidding.values()] if about is not None else []
    return [*rules, *(counts.tolist() for counts in pods.port_users("TCP", 80, rows).values())]


def test_rules_and_ports_of_forks_go_their_own_way() -> None:
    """Placing and removing on one side, or on a fork of a fork, is not seen on the others."""
    pods = PlacedPods()
    pods.place(a_pod_with_rules("one"), 0)
    fork = pods.fork()
    fork.place(a_pod_with_rules("two"), 2)
    second = fork.fork()
    second.remove(("blue", "one"))
    pods.place(a_pod_with_rules("three"), 1)
    fork.place(a_pod_with_rules("four"), 2)
    assert carried(pods, 3) == [[1, 1, 0]] * 2
    assert carried(fork, 3) == [[1, 0, 2]] * 2
    assert carried(second, 3) == [[0, 0, 1]] * 2
    second.remove(("blue", "two"))
    assert carried(second, 3) == []
    assert carried(fork, 3) == [[1, 0, 2]] * 2


def test_a_fork_costs_no_memory_for_rules_that_it_does_not_touch() -> None:
    """A pod may carry thousands of rules, and each cycle takes forks of a large cluster."""
    pods = PlacedPods()
    pods.reserve(4096)
    pods.place(a_pod_with_rules("one", rules=1000), 0)
    assert carried(pods, 4096)
    tracemalloc.start()
    try:
        fork = pods.fork()
        assert carried(fork, 4096)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


def test_many_selectors_of_the_past_do_not_disturb() -> None:
    """Old selectors are forgotten in bulk; those asked about again are counted anew and followed."""
    pods = PlacedPods()
    fork = pods.fork()
    pods.place(a_pod("one"), 0)
    assert pods.counts(pods_of("a"), 1).tolist() == [1]
    for number in range(SELECTORS_KEPT + 1):
        fork.counts(pods_of(f"job-{number}"), 1)
    pods.place(a_pod("two"), 0)
    assert pods.counts(pods_of("a"), 1).tolist() == [2]
