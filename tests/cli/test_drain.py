"""``spinney drain``: what it says, what it refuses, and that it empties nodes."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from spinney.api.core import NODE, POD, Pod
from spinney.api.policy import POD_DISRUPTION_BUDGET
from tests.cli.clusters import ServedCluster, served_cluster

WORKLOAD = Path(__file__).parents[2] / "examples" / "workloads" / "training-with-checkpoints.yaml"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedCluster]:
    """A cluster of four nodes with eight GPUs each, over HTTP, on which a gang runs."""
    with served_cluster(tmp_path_factory.mktemp("drain")) as cluster:
        answer = cluster.spinney("apply", "-f", str(WORKLOAD), "--wait", "--timeout", "60s")
        assert answer.exit_code == 0, answer.output
        yield cluster


def nodes_in_use(served: ServedCluster) -> set[str]:
    """Return the nodes that pods are on."""
    return {pod.spec.node_name for pod in served.call(lambda client: client.list(POD, type=Pod)).items}


def test_a_node_that_is_not_there_is_named(served: ServedCluster) -> None:
    """A misspelt node is an error before anything is cordoned."""
    answer = served.spinney("drain", "gpu-000", "nowhere")
    assert answer.exit_code == 1
    assert "no node is called nowhere" in answer.output
    found = served.call(lambda client: client.get(NODE, "gpu-000"))
    assert "unschedulable" not in found["spec"]


def test_a_dry_run_says_who_would_leave(served: ServedCluster) -> None:
    """Nothing is cordoned or evicted."""
    node = min(nodes_in_use(served))
    answer = served.spinney("drain", node, "--dry-run")
    assert answer.exit_code == 0, answer.output
    assert "would be evicted" in answer.output
    assert "unschedulable" not in served.call(lambda client: client.get(NODE, node))["spec"]


def test_a_pod_that_nothing_makes_anew_is_not_evicted_unasked(served: ServedCluster) -> None:
    """The command names it, and does nothing."""
    spec = {"nodeName": "gpu-003", "containers": [{"name": "main", "image": "x"}]}
    manifest = {"metadata": {"name": "lonely"}, "spec": spec}
    served.call(lambda client: client.create(POD, manifest, "default"))
    answer = served.spinney("drain", "gpu-003")
    assert answer.exit_code == 1
    assert "default/lonely" in answer.output
    assert "--force" in answer.output
    served.call(lambda client: client.delete(POD, "lonely", "default", grace_period_seconds=0))


def test_a_budget_in_the_way_is_named(served: ServedCluster) -> None:
    """A dry run names the budget, and so does a drain that has waited for it in vain; no pod has gone."""
    budget = {"metadata": {"name": "zero"}, "spec": {"maxUnavailable": 0, "selector": {}}}
    served.call(lambda client: client.create(POD_DISRUPTION_BUDGET, budget, "default"))
    node = min(nodes_in_use(served))
    foretold = served.spinney("drain", node, "--dry-run")
    stopped = served.spinney("drain", node, "--no-checkpoints", "--timeout", "1s")
    served.call(lambda client: client.delete(POD_DISRUPTION_BUDGET, "zero", "default"))
    served.call(lambda client: client.patch(NODE, node, {"spec": {"unschedulable": None}}))
    assert "would wait for a disruption budget: The disruption budget zero needs" in foretold.output
    assert stopped.exit_code == 1
    assert "may not leave after 1 s: The disruption budget zero needs" in stopped.output
    assert node in nodes_in_use(served)


def test_a_node_is_emptied(served: ServedCluster) -> None:
    """The gang on it has what it needs on other nodes when the command ends."""
    node = min(nodes_in_use(served))
    answer = served.spinney("drain", node, "--no-checkpoints", "--timeout", "4m")
    assert answer.exit_code == 0, answer.output
    assert "has what it needs again" in answer.output
    assert answer.output.endswith("1 node is empty\n")
    assert node not in nodes_in_use(served)
