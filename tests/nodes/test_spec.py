"""The description of a simulated cluster: what it expands to, and how its mistakes are named."""

import pytest

from spinney.nodes import ClusterSpec, InvalidClusterSpec

TWO_RACKS = """
nodes:
  - name: gpu-{index:02d}
    count: 4
    capacity: {cpu: 64, memory: 512Gi, nvidia.com/gpu: 8}
    allocatable: {cpu: 62}
    labels: {accelerator: h100}
    taints: [{key: nvidia.com/gpu, effect: NoSchedule}]
    topology:
      - {label: topology.kubernetes.io/block, size: 4}
      - {label: topology.kubernetes.io/rack, size: 2, value: "r{index}"}
pods: {start: 1s..3s, restartBackOff: 5s}
heartbeats: {lease: 30s}
"""


def test_a_group_expands_to_nodes_with_names_and_topology() -> None:
    """Each node has its name, its host name label and the label of its domain at every level."""
    nodes = ClusterSpec.parse(TWO_RACKS).expanded()
    assert [node.name for node in nodes] == ["gpu-00", "gpu-01", "gpu-02", "gpu-03"]
    assert [node.labels["topology.kubernetes.io/rack"] for node in nodes] == ["r0", "r0", "r1", "r1"]
    assert {node.labels["topology.kubernetes.io/block"] for node in nodes} == {"block-0"}
    assert nodes[2].labels["kubernetes.io/hostname"] == "gpu-02"
    assert nodes[2].labels["accelerator"] == "h100"


def test_what_is_not_said_to_be_reserved_is_allocatable() -> None:
    """Allocatable is capacity, but for the resources that the description reserves from; pods default to 110."""
    node = ClusterSpec.parse(TWO_RACKS).expanded()[0]
    assert node.capacity == {"pods": 110, "cpu": 64, "memory": "512Gi", "nvidia.com/gpu": 8}
    assert node.allocatable == {"pods": 110, "cpu": 62, "memory": "512Gi", "nvidia.com/gpu": 8}


def test_an_empty_description_is_a_cluster_without_nodes() -> None:
    """Nothing said is nothing there, with the defaults for everything else."""
    spec = ClusterSpec.parse("")
    assert spec.expanded() == []
    assert spec.heartbeats.lease_seconds == 10
    assert spec.heartbeats.status_seconds == 300


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nodes: [{name: a, cuont: 3}]", r"c\.yaml: .*unknown field `cuont`.*nodes\[0\]"),
        ("nodes: [{name: a, count: three}]", r"c\.yaml: .*nodes\[0\]\.count"),
        ("nodes: [{count: 3}]", r"missing required field `name`"),
        ("nodes: [{name: a, count: -1}]", r"nodes\[0\]\.count: found -1, expected 0 to 100000"),
        ("nodes: [{name: a, count: 1000000000}]", r"nodes\[0\]\.count: found 1000000000, expected 0 to 100000"),
        ("nodes: [{name: a, capacity: {cpu: -8}}]", r"nodes\[0\]\.capacity\[cpu\]: found -8, expected 0 or more"),
        ("nodes: [{name: A_B}]", r"nodes\[0\]\.name: 'A_B' gives 'A_B', which must be a DNS-1123 subdomain"),
        ("nodes: [{name: 'a-{number}'}]", r"nodes\[0\]\.name: .* only \{index\} can be filled in"),
        ("nodes: [{name: a, count: 2}]", r"nodes\[0\]\.name: the node 'a' is already in nodes\[0\]"),
        ("nodes: [{name: a}, {name: a}]", r"nodes\[1\]\.name: the node 'a' is already in nodes\[0\]"),
        ("nodes: [{name: a, capacity: {cpu: lots}}]", r"nodes\[0\]\.capacity\[cpu\]: 'lots' is not a quantity"),
        ("nodes: [{name: a, labels: {'a b': c}}]", r"nodes\[0\]\.labels\[a b\]: the key 'a b'"),
        ("nodes: [{name: a, taints: [{key: k, effect: No}]}]", r"nodes\[0\]\.taints\[0\]\.effect"),
        ("nodes: [{name: a, taints: [{key: k, effect: NoExecute, vlaue: x}]}]", r"unknown field `vlaue`"),
        ("nodes: [{name: a, topology: [{label: rack, size: 0}]}]", r"topology\[0\]\.size: found 0"),
        (
            "nodes: [{name: a, topology: [{label: block, size: 10}, {label: rack, size: 4}]}]",
            r"topology\[1\]\.size: a domain of 4 nodes would straddle two of block \(10 nodes\)",
        ),
        ("pods: {ready: soon}", r"pods\.ready: 'soon' is not a latency"),
        ("heartbeats: {lease: often}", r"heartbeats\.lease: 'often' is not a duration"),
        ("nodes: {", r"c\.yaml: not YAML"),
        ("[]", r"c\.yaml: Expected `object`, got `array`"),
    ],
)
def test_a_mistake_is_named_with_its_field(text: str, message: str) -> None:
    """Whatever is wrong, the message says in which file and field, and what was expected."""
    with pytest.raises(InvalidClusterSpec, match=message):
        ClusterSpec.parse(text, source="c.yaml")
