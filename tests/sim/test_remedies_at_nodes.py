"""What is recommended to change on nodes is people's to change."""

import pytest

from spinney.runtime import Runtime
from spinney.sim import Cluster
from spinney.sim.advice.advice import Advisor
from spinney.sim.advice.subjects import find
from spinney.sim.embedded.shapes import RACK, topology_binding


@pytest.mark.parametrize(
    ("label", "given"),
    [
        ("disk", True),
        ("acme.io/kind", True),
        ("node-role.kubernetes.io/gpu", True),
        ("kubernetes.io/hostname", False),
        ("topology.kubernetes.io/zone", False),
        ("node.kubernetes.io/instance-type", False),
        ("nvidia.com/gpu.product", False),
        ("cloud.google.com/gke-accelerator", False),
        (RACK, False),
    ],
)
def test_a_label_that_says_what_a_node_is_is_not_changed(label: str, given: bool) -> None:
    """A node does not move to another rack, and gets no other name or GPUs, by a label: that would make it untrue."""
    cluster = Cluster("2x8")
    cluster.submit({"apiVersion": "grove.io/v1alpha1", "kind": "ClusterTopologyBinding", **topology_binding()})
    container = {"name": "main", "resources": {"limits": {"nvidia.com/gpu": "8"}}}
    spec = {"schedulerName": "spinney-scheduler", "nodeSelector": {label: "x"}, "containers": [container]}
    cluster.submit({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "default"}, "spec": spec})
    snapshot = cluster.snapshot()

    answer = Advisor(snapshot, runtime=Runtime.system(), best=20).answer(find(snapshot, "p", "default"))

    assert any(each.text.startswith("label gpu-000 with") for each in answer.remedies) == given
