"""Who may not be evicted, and by what: a gang that waits for room is told what keeps it from others."""

import pytest

from spinney.api.struct import JSON
from spinney.explain.rendering import as_text
from spinney.sim import Cluster
from spinney.sim.advice.advice import Advisor

ANY = {"quota": -1, "limit": -1, "overQuotaWeight": 1}


def a_queue(name: str, quota: int, parent: str | None, **more: str) -> JSON:
    """Return a queue with a quota of GPUs."""
    resources = {"gpu": {**ANY, "quota": quota}, "cpu": ANY, "memory": ANY}
    spec: JSON = {"resources": resources, **more, **({"parentQueue": parent} if parent else {})}
    return {"apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": {"name": name}, "spec": spec}


def a_pod(name: str, queue: str, priority: int) -> JSON:
    """Return a pod that takes a whole node."""
    metadata = {"name": name, "namespace": "default", "labels": {"kai.scheduler/queue": queue, "app": name}}
    container = {"name": "main", "resources": {"limits": {"nvidia.com/gpu": "8"}}}
    spec = {"schedulerName": "spinney-scheduler", "priority": priority, "containers": [container]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def told(cluster: Cluster) -> str:
    """Return what is said of the first pod that waits."""
    waiting, *_ = Advisor(cluster.snapshot(), runtime=cluster.runtime, best=0).cycle.waiting
    assert waiting.explanation is not None
    return as_text(waiting.explanation)


@pytest.mark.parametrize(("queue", "action"), [("mine", "preempt"), ("other", "reclaim")])
def test_what_has_just_started_is_named_with_the_plugin_that_protects_it(queue: str, action: str) -> None:
    """It is of lower priority, or holds what the queue is entitled to, and its queue grants it some time."""
    times = {"preemptMinRuntime": "1h", "reclaimMinRuntime": "1h"}
    cluster = Cluster("1x8")
    cluster.submit(a_queue("root", 8, None), a_queue("mine", 8, "root"), a_queue("other", 0, "root", **times))
    cluster.submit(a_queue("mine", 8, "root", **times))
    cluster.submit(a_pod("old", queue, 10))
    cluster.step()
    cluster.submit(a_pod("new", "mine", 90))

    assert f"\n  {action}: default/old is protected by plugin minruntime\n" in told(cluster) + "\n"


def test_a_disruption_budget_that_protects_is_named() -> None:
    """Who looks for room learns which budget has nothing left."""
    cluster = Cluster("1x8")
    cluster.submit(a_pod("old", "default-queue", 10))
    selector = {"matchLabels": {"app": "old"}}
    metadata, spec = {"name": "keep", "namespace": "default"}, {"minAvailable": 1, "selector": selector}
    cluster.submit({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata, "spec": spec})
    cluster.step()
    cluster.submit(a_pod("new", "default-queue", 90))

    expected = "preempt: disruption budget default/keep allows 0 more disruptions, and 1 is needed"
    assert expected in told(cluster)


def test_those_who_hold_nothing_are_in_nobodys_way() -> None:
    """A job that waits, too, is neither named as protected nor in place of the one that is."""
    cluster = Cluster("1x8")
    cluster.submit(a_queue("root", 8, None), a_queue("mine", 8, "root", preemptMinRuntime="1h"))
    cluster.submit(a_pod("old", "mine", 10))
    cluster.step()
    cluster.submit(a_pod("new", "mine", 90), a_pod("waits", "mine", 20))

    assert "\n  preempt: default/old is protected by plugin minruntime\n" in told(cluster) + "\n"
