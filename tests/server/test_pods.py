"""Pods: defaults, priority, gates, what may change, binding and eviction."""

from typing import Any

import pytest

from spinney.api.pod_rules.defaults import quality_of_service
from spinney.server import ServerOptions
from tests.server.api import MERGE, PODS, Api, a_binding, a_pod, an_api

_BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
_CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"


async def test_defaults_that_schedulers_read(api: Api) -> None:
    """A new pod is pending, names its scheduler, requests what it limits and tolerates a lost node for a while."""
    pod = a_pod("p")
    pod["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "2", "memory": "1Gi"}}
    made = await api.create(PODS, pod)
    spec = made["spec"]
    assert (spec["schedulerName"], spec["restartPolicy"], spec["terminationGracePeriodSeconds"]) == (
        "default-scheduler",
        "Always",
        30,
    )
    assert spec["containers"][0]["resources"]["requests"] == {"cpu": "2", "memory": "1Gi"}
    assert (spec["priority"], spec["preemptionPolicy"]) == (0, "PreemptLowerPriority")
    assert {each["key"] for each in spec["tolerations"]} == {
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
    }
    assert made["status"] == {"phase": "Pending", "qosClass": "Guaranteed"}


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ({}, "BestEffort"),
        ({"requests": {"cpu": "1"}}, "Burstable"),
        ({"requests": {"cpu": "1000m", "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "1024Mi"}}, "Guaranteed"),
        ({"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "2", "memory": "1Gi"}}, "Burstable"),
        ({"limits": {"nvidia.com/gpu": "1"}, "requests": {"nvidia.com/gpu": "1"}}, "BestEffort"),
    ],
)
def test_quality_of_service(resources: Any, expected: str) -> None:
    """The class follows cpu and memory only, by value and not by spelling."""
    assert quality_of_service({"containers": [{"resources": resources}]}) == expected


async def test_priority_comes_from_the_class(api: Api) -> None:
    """A class name becomes its number and policy; an unknown class or another number is refused."""
    await api.create(_CLASSES, {"metadata": {"name": "high"}, "value": 7, "preemptionPolicy": "Never"})
    spec = (await api.create(PODS, a_pod("a", priorityClassName="high")))["spec"]
    assert (spec["priority"], spec["preemptionPolicy"]) == (7, "Never")
    critical = (await api.create(PODS, a_pod("b", priorityClassName="system-node-critical")))["spec"]
    assert critical["priority"] == 2_000_001_000
    for pod in (a_pod("c", priorityClassName="nope"), a_pod("d", priorityClassName="high", priority=8)):
        assert (await api.send("POST", PODS, pod)).status == 403


async def test_the_global_default_class_applies(api: Api) -> None:
    """Pods without a class get the global default's name and number."""
    await api.create(_CLASSES, {"metadata": {"name": "usual"}, "value": 5, "globalDefault": True})
    spec = (await api.create(PODS, a_pod("a")))["spec"]
    assert (spec["priorityClassName"], spec["priority"]) == ("usual", 5)
    changed = await api.send("PATCH", f"{_CLASSES}/usual", {"value": 6}, headers={"content-type": MERGE})
    assert changed.status == 422


async def test_gates_only_go(api: Api) -> None:
    """A gated pod says so, gates can be removed but not added, and it cannot be bound while gated."""
    made = await api.create(PODS, a_pod("p", schedulingGates=[{"name": "a"}, {"name": "b"}]))
    (condition,) = made["status"]["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == (
        "PodScheduled",
        "False",
        "SchedulingGated",
    )
    assert (await api.send("POST", f"{PODS}/p/binding", a_binding())).status == 409
    more = {"spec": {"schedulingGates": [{"name": "a"}, {"name": "c"}]}}
    assert (await api.send("PATCH", f"{PODS}/p", more, headers={"content-type": MERGE})).status == 422
    await api.patch(f"{PODS}/p", {"spec": {"schedulingGates": []}})
    await api.create(f"{PODS}/p/binding", a_binding())


@pytest.mark.parametrize(
    ("change", "allowed"),
    [
        ({"activeDeadlineSeconds": 9}, True),
        ({"containers": [{"name": "c", "image": "registry.example/c:2"}]}, None),
        ({"nodeName": "elsewhere"}, False),
        ({"priority": 9}, False),
        ({"schedulerName": "other"}, False),
        ({"tolerations": []}, False),
    ],
)
async def test_most_of_a_pod_is_immutable(api: Api, change: dict[str, Any], allowed: bool | None) -> None:
    """Images, deadlines and additional tolerations may change; the rest of the spec may not."""
    made = await api.create(PODS, a_pod("p", tolerations=[{"key": "k", "operator": "Exists"}]))
    if allowed is None:
        change = {"containers": [{**made["spec"]["containers"][0], "image": "registry.example/c:2"}]}
        allowed = True
    answer = await api.send("PATCH", f"{PODS}/p", {"spec": change}, headers={"content-type": MERGE})
    assert answer.status == (200 if allowed else 422)


@pytest.mark.parametrize(
    ("pod", "field"),
    [
        ({"metadata": {"name": "p"}}, "spec.containers"),
        ({"metadata": {"name": "p"}, "spec": {"containers": []}}, "spec.containers"),
        ({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "C", "image": "i"}]}}, "spec.containers[0].name"),
        ({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c"}]}}, "spec.containers[0].image"),
        (a_pod("p", restartPolicy="Sometimes"), "spec.restartPolicy"),
        (a_pod("p", schedulingGates=[{"name": "a"}, {"name": "a"}]), "spec.schedulingGates[1]"),
    ],
)
async def test_a_wrong_pod_is_named(pod: Any, field: str) -> None:
    """A pod that breaks a rule is refused with the path of the field."""
    answer = await an_api().send("POST", PODS, pod)
    assert answer.status == 422
    assert field in [cause["field"] for cause in answer.body["details"]["causes"]]


async def test_binding_happens_once(api: Api) -> None:
    """Binding sets the node and the condition, clears the nomination, and the second bind is a conflict."""
    made = await api.create(PODS, a_pod("p"))
    await api.patch(f"{PODS}/p/status", {"status": {"nominatedNodeName": "m"}})
    wrong = a_binding(uid="other")
    assert (await api.send("POST", f"{PODS}/p/binding", wrong)).status == 409
    right = a_binding(uid=made["metadata"]["uid"], annotations={"a": "b"})
    status = await api.create(f"{PODS}/p/binding", right)
    assert (status["kind"], status["status"]) == ("Status", "Success")
    bound = await api.get(f"{PODS}/p")
    assert (bound["spec"]["nodeName"], bound["metadata"]["annotations"]) == ("n", {"a": "b"})
    assert "nominatedNodeName" not in bound["status"]
    assert [(each["type"], each["status"]) for each in bound["status"]["conditions"]] == [("PodScheduled", "True")]
    again = await api.send("POST", f"{PODS}/p/binding", right)
    assert (again.status, again.body["reason"]) == (409, "Conflict")
    assert (await api.send("POST", f"{PODS}/nobody/binding", a_binding("nobody"))).status == 404


async def test_a_pod_that_ends_cannot_be_bound(api: Api) -> None:
    """A pod with a deletion timestamp is no longer assigned to a node."""
    pod = a_pod("p")
    pod["metadata"]["finalizers"] = ["example.com/hold"]
    await api.create(PODS, pod)
    await api.delete(f"{PODS}/p")
    assert (await api.send("POST", f"{PODS}/p/binding", a_binding())).status == 409


async def _running(api: Api, *names: str) -> None:
    for name in names:
        await api.create(PODS, a_pod(name, labels={"app": "x"}))
        await api.create(f"{PODS}/{name}/binding", a_binding(name))
        ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        await api.patch(f"{PODS}/{name}/status", {"status": ready})


async def test_a_budget_refuses_an_eviction(api: Api) -> None:
    """Evictions pass while the budget allows them; then they answer 429 and name the budget."""
    await _running(api, "a", "b")
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}}
    await api.create(_BUDGETS, {"metadata": {"name": "keep-one"}, "spec": spec})
    await api.create(f"{PODS}/a/eviction", {"metadata": {"name": "a"}}, dryRun="All")
    await api.create(f"{PODS}/a/eviction", {"metadata": {"name": "a"}})
    assert "deletionTimestamp" in (await api.get(f"{PODS}/a"))["metadata"]
    refused = await api.send("POST", f"{PODS}/b/eviction", {"metadata": {"name": "b"}})
    assert refused.status == 429
    (cause,) = refused.body["details"]["causes"]
    assert cause["reason"] == "DisruptionBudget"
    assert "keep-one" in cause["message"]


async def test_a_pending_pod_is_evicted_without_a_budget(api: Api) -> None:
    """A pod that does not run disrupts nobody."""
    await api.create(PODS, a_pod("a", labels={"app": "x"}))
    spec = {"minAvailable": "100%", "selector": {"matchLabels": {"app": "x"}}}
    await api.create(_BUDGETS, {"metadata": {"name": "all"}, "spec": spec})
    await api.create(f"{PODS}/a/eviction", {"metadata": {"name": "a"}})
    assert await api.names(PODS) == []


@pytest.mark.parametrize(
    ("version", "kept", "served"),
    [
        ("1.37", "schedulingGroup", ["v1beta1", "v1alpha3"]),
        ("1.36", "schedulingGroup", ["v1alpha2"]),
        ("1.35", "workloadRef", ["v1alpha1"]),
    ],
)
async def test_each_release_has_its_gang_api(version: str, kept: str, served: list[str]) -> None:
    """The version played decides which gang kinds are served and which pod field is kept; others are dropped."""
    api = an_api(ServerOptions(kubernetes_version=version))
    fields = {"schedulingGroup": {"podGroupName": "g"}, "workloadRef": {"name": "w", "podGroup": "g"}}
    made = await api.create(PODS, a_pod("p", **fields))
    assert [name for name in fields if name in made["spec"]] == [kept]
    group = await api.get("/apis/scheduling.k8s.io")
    assert [each["version"] for each in group["versions"] if each["version"] != "v1"] == served
