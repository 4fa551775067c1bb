"""What a node refuses, and with which reason."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.kube.keys import Key
from spinney.nodes.admission import Rejection, admit
from spinney.nodes.lifecycle import begin
from spinney.nodes.node import SimulatedNode, Tenant
from spinney.nodes.pods import BoundPod, pod_requests
from spinney.nodes.spec import NodeSpec
from tests.nodes.builders import NOON, a_behaviour, a_bound_pod

LABELS = {"kubernetes.io/hostname": "n0", "zone": "a", "generation": "7"}
ALLOCATABLE = {"cpu": 4000, "memory": 100, "pods": 3, "nvidia.com/gpu": 8}


def verdict(pod: BoundPod, **used: int) -> Rejection | None:
    """Ask a node of 4 cores, 100 bytes, 3 pods and 8 GPUs."""
    return admit(pod, pod_requests(pod), node="n0", labels=LABELS, allocatable=ALLOCATABLE, used=used)


def wanting(**requests: Any) -> BoundPod:
    """Return a pod whose one container requests this."""
    named = {key.replace("__", "/").replace("_", "."): amount for key, amount in requests.items()}
    return a_bound_pod(containers=[{"name": "main", "resources": {"requests": named}}])


def test_a_pod_that_fits_is_taken() -> None:
    """A pod that takes exactly what is left is taken."""
    assert verdict(wanting(cpu="1500m", memory="40"), cpu=2500, memory=60, pods=2) is None


@pytest.mark.parametrize(
    ("pod", "used", "reason"),
    [
        (wanting(cpu="1501m"), {"cpu": 2500}, "OutOfcpu"),
        (wanting(memory="41"), {"memory": 60}, "OutOfmemory"),
        (wanting(), {"pods": 3}, "OutOfpods"),
        (
            a_bound_pod(containers=[{"name": "m", "resources": {"requests": {"nvidia.com/gpu": 9}}}]),
            {},
            "UnexpectedAdmissionError",
        ),
    ],
)
def test_what_does_not_fit_is_refused_with_the_kubelets_reason(
    pod: BoundPod, used: dict[str, int], reason: str
) -> None:
    """Lack of cpu, memory, pod slots or devices each has its own reason."""
    rejection = verdict(pod, **used)
    assert rejection is not None
    assert rejection.reason == reason


def test_a_resource_the_node_does_not_know_is_ignored() -> None:
    """A node cannot run short of something it was never said to have."""
    pod = a_bound_pod(containers=[{"name": "m", "resources": {"requests": {"example.com/licence": 1}}}])
    assert verdict(pod) is None


@pytest.mark.parametrize(
    ("spec", "taken"),
    [
        ({"nodeSelector": {"zone": "a"}}, True),
        ({"nodeSelector": {"zone": "b"}}, False),
        ({"affinity": {"nodeAffinity": {}}}, True),
    ],
)
def test_node_selectors_hold_on_the_node_too(spec: dict[str, Any], taken: bool) -> None:
    """A pod bound against its own node selector fails with NodeAffinity."""
    rejection = verdict(a_bound_pod(**spec))
    assert (rejection is None) is taken
    assert taken or (rejection is not None and rejection.reason == "NodeAffinity")


@pytest.mark.parametrize(
    ("terms", "taken"),
    [
        ([{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a", "b"]}]}], True),
        ([{"matchExpressions": [{"key": "zone", "operator": "NotIn", "values": ["a"]}]}], False),
        ([{"matchExpressions": [{"key": "generation", "operator": "Gt", "values": ["6"]}]}], True),
        ([{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}], False),
        ([{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n0"]}]}], True),
        ([{}], False),
        ([{}, {"matchExpressions": [{"key": "zone", "operator": "Exists"}]}], True),
    ],
)
def test_required_node_affinity_holds_on_the_node_too(terms: list[Any], taken: bool) -> None:
    """One matching term is enough, and an empty term matches nothing."""
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    assert (verdict(a_bound_pod(affinity={"nodeAffinity": required})) is None) is taken


def test_requests_count_as_kubernetes_counts_them() -> None:
    """Containers and sidecars add up, an init container counts where it is larger, overhead comes on top."""
    pod = a_bound_pod(
        containers=[
            {"name": "a", "resources": {"requests": {"cpu": "1"}}},
            {"name": "b", "resources": {"requests": {"cpu": "500m", "memory": "10"}}},
        ],
        initContainers=[
            {"name": "s", "restartPolicy": "Always", "resources": {"requests": {"cpu": "100m"}}},
            {"name": "i", "resources": {"requests": {"cpu": "1", "memory": "30"}}},
        ],
        overhead={"cpu": "10m"},
    )
    assert pod_requests(pod) == {"cpu": 1610, "memory": 30, "pods": 1}


def test_requests_of_the_pod_replace_those_of_its_containers() -> None:
    """A pod-level request stands for the sum of the containers'."""
    pod = a_bound_pod(
        containers=[{"name": "a", "resources": {"requests": {"cpu": "3", "memory": "5"}}}],
        resources={"requests": {"cpu": "1"}},
    )
    assert pod_requests(pod) == {"cpu": 1000, "memory": 5, "pods": 1}


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3000)), max_size=40))
def test_a_node_is_never_used_beyond_what_it_has(arrivals: list[tuple[int, int]]) -> None:
    """However pods come and go, what runs never exceeds what is allocatable, and the ledger is their exact sum."""
    node = SimulatedNode(NodeSpec(name="n0", capacity={}, allocatable={"cpu": "4", "pods": 3}), ip="10.0.0.1")
    for number, cpu in arrivals:
        key = Key("test", f"p{number}")
        if node.release(key) is not None:
            continue
        pod = wanting(cpu=f"{cpu}m")
        wanted = pod_requests(pod)
        if admit(pod, wanted, node="n0", labels={}, allocatable=node.allocatable, used=node.used) is None:
            node.take(key, Tenant(wanted, begin(a_behaviour(), ip="", now=NOON)))
        assert all(node.used.get(name, 0) <= limit for name, limit in node.allocatable.items())
        assert node.used.get("cpu", 0) == sum(tenant.requests.get("cpu", 0) for tenant in node.tenants.values())
