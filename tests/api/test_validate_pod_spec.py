"""The pod spec of a clique: what the API server would refuse in its pods is refused in the set, at its exact path."""

import copy
from typing import Any

import pytest

from spinney.api.schema.validate_pod_clique_set import (
    AdmissionPolicy,
    pod_clique_set_warnings,
    validate_pod_clique_set,
)
from spinney.api.struct import JSON
from tests.api.samples import a_clique, a_set, defaulted, found

POLICY = AdmissionPolicy()
P = "spec.template.cliques[0].spec.podSpec"
MAIN = f"{P}.containers[0]"


def a_container(**fields: Any) -> JSON:
    """Build a container; a field that is ``None`` is left out."""
    return {name: value for name, value in {"name": "main", "image": "busybox", **fields}.items() if value is not None}


def faults(pod_spec: JSON) -> list[tuple[str, str]]:
    """Return path and kind of what is wrong with a set of this pod spec."""
    return found(validate_pod_clique_set(defaulted(a_set(a_clique(podSpec=pod_spec))), POLICY))


def of_container(**fields: Any) -> list[tuple[str, str]]:
    """Return what is wrong with a pod of one container with these fields."""
    return faults({"containers": [a_container(**fields)]})


PODS: dict[str, tuple[JSON, list[tuple[str, str]]]] = {
    "nothing": ({}, [(f"{P}.containers", "Required")]),
    "no containers": ({"containers": []}, [(f"{P}.containers", "Required")]),
    "containers are no list": ({"containers": {"name": "a"}}, [(f"{P}.containers", "Invalid")]),
    "a container is no object": ({"containers": ["busybox"]}, [(MAIN, "Invalid")]),
    "two containers of a name": (
        {"containers": [a_container(), a_container()]},
        [(f"{P}.containers[1].name", "Duplicate")],
    ),
    "an init container of the same name": (
        {"containers": [a_container()], "initContainers": [a_container()]},
        [(f"{P}.initContainers[0].name", "Duplicate")],
    ),
    "an init container without an image": (
        {"containers": [a_container()], "initContainers": [a_container(name="first", image=None)]},
        [(f"{P}.initContainers[0].image", "Required")],
    ),
    "unknown restart policy": (
        {"containers": [a_container()], "restartPolicy": "Sometimes"},
        [(f"{P}.restartPolicy", "NotSupported")],
    ),
    "unknown DNS policy": ({"containers": [a_container()], "dnsPolicy": "X"}, [(f"{P}.dnsPolicy", "NotSupported")]),
    "unknown preemption policy": (
        {"containers": [a_container()], "preemptionPolicy": "X"},
        [(f"{P}.preemptionPolicy", "NotSupported")],
    ),
    "scheduler is no text": (
        {"containers": [a_container()], "schedulerName": 5},
        [(f"{P}.schedulerName", "Invalid")],
    ),
    "no time to run": (
        {"containers": [a_container()], "activeDeadlineSeconds": 0},
        [(f"{P}.activeDeadlineSeconds", "Invalid")],
    ),
    "grace is no number": (
        {"containers": [a_container()], "terminationGracePeriodSeconds": "5s"},
        [(f"{P}.terminationGracePeriodSeconds", "Invalid")],
    ),
    "unnamed volume": ({"containers": [a_container()], "volumes": [{}]}, [(f"{P}.volumes[0].name", "Required")]),
    "two volumes of a name": (
        {"containers": [a_container()], "volumes": [{"name": "a"}, {"name": "a"}]},
        [(f"{P}.volumes[1].name", "Duplicate")],
    ),
    "tolerations are no list": (
        {"containers": [a_container()], "tolerations": {}},
        [(f"{P}.tolerations", "Invalid")],
    ),
    "unknown effect": (
        {"containers": [a_container()], "tolerations": [{"key": "a", "effect": "NoWay"}]},
        [(f"{P}.tolerations[0].effect", "NotSupported")],
    ),
    "tolerates no key": (
        {"containers": [a_container()], "tolerations": [{"effect": "NoSchedule"}]},
        [(f"{P}.tolerations[0].operator", "Invalid")],
    ),
    "a value for Exists": (
        {"containers": [a_container()], "tolerations": [{"key": "a", "operator": "Exists", "value": "b"}]},
        [(f"{P}.tolerations[0].operator", "Invalid")],
    ),
    "seconds without NoExecute": (
        {"containers": [a_container()], "tolerations": [{"key": "a", "tolerationSeconds": 5}]},
        [(f"{P}.tolerations[0].effect", "Invalid")],
    ),
}
CONTAINERS: dict[str, tuple[JSON, list[tuple[str, str]]]] = {
    "no name": ({"name": None}, [(f"{MAIN}.name", "Required")]),
    "bad name": ({"name": "Main"}, [(f"{MAIN}.name", "Invalid")]),
    "name is no text": ({"name": 5}, [(f"{MAIN}.name", "Invalid")]),
    "no image": ({"image": None}, [(f"{MAIN}.image", "Required")]),
    "space around the image": ({"image": " busybox"}, [(f"{MAIN}.image", "Invalid")]),
    "unknown pull policy": ({"imagePullPolicy": "Maybe"}, [(f"{MAIN}.imagePullPolicy", "NotSupported")]),
    "no port": ({"ports": [{"name": "http"}]}, [(f"{MAIN}.ports[0].containerPort", "Required")]),
    "port out of range": ({"ports": [{"containerPort": 70_000}]}, [(f"{MAIN}.ports[0].containerPort", "Invalid")]),
    "port is text": ({"ports": [{"containerPort": "80"}]}, [(f"{MAIN}.ports[0].containerPort", "Invalid")]),
    "bad host port": (
        {"ports": [{"containerPort": 80, "hostPort": -1}]},
        [(f"{MAIN}.ports[0].hostPort", "Invalid")],
    ),
    "unknown protocol": (
        {"ports": [{"containerPort": 80, "protocol": "HTTP"}]},
        [(f"{MAIN}.ports[0].protocol", "NotSupported")],
    ),
    "bad name of a port": (
        {"ports": [{"containerPort": 80, "name": "a-very-long-name-of-a-port"}]},
        [(f"{MAIN}.ports[0].name", "Invalid")],
    ),
    "two ports of a name": (
        {"ports": [{"containerPort": 80, "name": "web"}, {"containerPort": 81, "name": "web"}]},
        [(f"{MAIN}.ports[1].name", "Duplicate")],
    ),
    "mount of no volume": (
        {"volumeMounts": [{"name": "models", "mountPath": "/models"}]},
        [(f"{MAIN}.volumeMounts[0].name", "NotFound")],
    ),
    "mount without place and name": (
        {"volumeMounts": [{}]},
        [(f"{MAIN}.volumeMounts[0].name", "Required"), (f"{MAIN}.volumeMounts[0].mountPath", "Required")],
    ),
    "resources are no object": ({"resources": "much"}, [(f"{MAIN}.resources", "Invalid")]),
    "requests are no object": ({"resources": {"requests": ["cpu"]}}, [(f"{MAIN}.resources.requests", "Invalid")]),
    "no quantity": ({"resources": {"requests": {"cpu": "many"}}}, [(f"{MAIN}.resources.requests[cpu]", "Invalid")]),
    "unit misspelt": ({"resources": {"limits": {"memory": "8GB"}}}, [(f"{MAIN}.resources.limits[memory]", "Invalid")]),
    "less than nothing": ({"resources": {"limits": {"cpu": "-1"}}}, [(f"{MAIN}.resources.limits[cpu]", "Invalid")]),
    "no resource": ({"resources": {"limits": {"gpu": 1}}}, [(f"{MAIN}.resources.limits[gpu]", "Invalid")]),
    "half a device": (
        {"resources": {"limits": {"nvidia.com/gpu": "500m"}}},
        [(f"{MAIN}.resources.limits[nvidia.com/gpu]", "Invalid")],
    ),
    "requests above limits": (
        {"resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1500m"}}},
        [(f"{MAIN}.resources.requests", "Invalid")],
    ),
    "fewer devices requested than the limit": (
        {"resources": {"requests": {"nvidia.com/gpu": 1}, "limits": {"nvidia.com/gpu": 2}}},
        [(f"{MAIN}.resources.requests", "Invalid")],
    ),
    "devices without a limit": (
        {"resources": {"requests": {"nvidia.com/gpu": 1}}},
        [(f"{MAIN}.resources.limits", "Required")],
    ),
}


@pytest.mark.parametrize(("pod_spec", "expected"), PODS.values(), ids=PODS)
def test_each_rule_of_a_pod_names_its_field(pod_spec: JSON, expected: list[tuple[str, str]]) -> None:
    """A set whose pods could not be created is refused at the field that is to blame."""
    assert faults(pod_spec) == expected


@pytest.mark.parametrize(("fields", "expected"), CONTAINERS.values(), ids=CONTAINERS)
def test_each_rule_of_a_container_names_its_field(fields: JSON, expected: list[tuple[str, str]]) -> None:
    """A container that could not be created is refused at the field that is to blame."""
    assert of_container(**fields) == expected


def test_a_pod_with_everything_is_valid() -> None:
    """Ports, mounts, devices, huge pages and tolerations as people write them are accepted."""
    container = a_container(
        imagePullPolicy="IfNotPresent",
        ports=[{"containerPort": 80, "name": "http"}, {"containerPort": 80, "protocol": "UDP", "hostPort": 8080}],
        volumeMounts=[{"name": "models", "mountPath": "/models"}, {"name": "models", "mountPath": "/more"}],
        resources={
            "requests": {"cpu": 0.5, "memory": "1Gi", "nvidia.com/gpu": 1},
            "limits": {"cpu": 1, "memory": "1Gi", "nvidia.com/gpu": "1", "hugepages-2Mi": "4Mi"},
        },
    )
    pod_spec = {
        "containers": [container],
        "initContainers": [a_container(name="first", restartPolicy="Always")],
        "volumes": [{"name": "models", "emptyDir": {}}],
        "restartPolicy": "OnFailure",
        "tolerations": [{"operator": "Exists"}, {"key": "a", "effect": "NoExecute", "tolerationSeconds": 5}],
        "activeDeadlineSeconds": 60,
    }
    assert faults(pod_spec) == []


def test_a_pod_spec_that_an_update_leaves_alone_is_not_judged_again() -> None:
    """A set from before these rules can be scaled; once its pod spec is touched, that must be right."""
    old = a_set(a_clique(podSpec={"containers": [{"name": "main"}]}))
    scaled = copy.deepcopy(old)
    scaled["spec"]["replicas"] = 3
    assert validate_pod_clique_set(defaulted(scaled), POLICY, defaulted(old)) == []
    touched = copy.deepcopy(old)
    touched["spec"]["template"]["cliques"][0]["spec"]["podSpec"]["hostNetwork"] = True
    errors = validate_pod_clique_set(defaulted(touched), POLICY, defaulted(old))
    assert found(errors) == [(f"{MAIN}.image", "Required")]


@pytest.mark.parametrize(("policy", "warned"), [(None, False), ("Always", False), ("Never", True), ("OnFailure", True)])
def test_another_restart_policy_is_warned_about(policy: str | None, warned: bool) -> None:
    """A policy other than Always is kept, and its author told what that means for a gang."""
    pod_spec = {"containers": [a_container()], **({"restartPolicy": policy} if policy else {})}
    pcs = defaulted(a_set(a_clique(podSpec=pod_spec)))
    assert validate_pod_clique_set(pcs, POLICY) == []
    assert [f"{P}.restartPolicy" in each for each in pod_clique_set_warnings(pcs, POLICY)] == [True] * warned


def test_gates_in_a_template_are_warned_about() -> None:
    """Pods are made with the gate of their gang alone, which the author of another one is told."""
    pcs = defaulted(a_set(a_clique(podSpec={"containers": [a_container()], "schedulingGates": [{"name": "mine"}]})))
    assert validate_pod_clique_set(pcs, POLICY) == []
    (warning,) = pod_clique_set_warnings(pcs, POLICY)
    assert warning.startswith(f"{P}.schedulingGates has no effect")


def test_no_pod_begins_with_ephemeral_containers() -> None:
    """A template with ephemeral containers is refused: no pod could be made from it."""
    pcs = defaulted(a_set(a_clique(podSpec={"containers": [a_container()], "ephemeralContainers": [a_container()]})))
    assert found(validate_pod_clique_set(pcs, POLICY)) == [(f"{P}.ephemeralContainers", "Forbidden")]
