"""``why`` and ``simulate`` say how many nodes of which kind would start what waits, of those that could be added."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from spinney.cli import main
from spinney.sim import Cluster
from spinney.sim.snapshots.files import write_snapshot

GROUPS = """
nodes:
- {name: "h100-{index}", count: 8, capacity: {cpu: 96, memory: 1Ti, nvidia.com/gpu: 8}, labels: {accelerator: h100}}
- {name: "t4-{index}", count: 2, capacity: {cpu: 96, memory: 1Ti, nvidia.com/gpu: 4}}
- {name: "cpu-{index}", count: 50, capacity: {cpu: 96, memory: 1Ti}}
"""


@pytest.fixture
def snapshot(tmp_path: Path) -> Path:
    """Two nodes of eight GPUs, a gang that needs six, and one that could use many small ones."""
    cluster = Cluster("2x8")
    cluster.gang("train", pods=6, gpus=8)
    cluster.gang("serve", pods=6, gpus=4)
    file = tmp_path / "snapshot.json.gz"
    write_snapshot(cluster.snapshot(), file)
    return file


@pytest.fixture
def groups(tmp_path: Path) -> Path:
    """The kinds of nodes that could be added."""
    file = tmp_path / "groups.yaml"
    file.write_text(GROUPS)
    return file


def spinney(*arguments: object) -> str:
    """Run a command; return what it prints."""
    answer = CliRunner().invoke(main, list(map(str, arguments)))
    assert answer.exit_code == 0, answer.output
    return answer.output


def test_why_names_the_kind_and_the_number(snapshot: Path, groups: Path) -> None:
    """Four nodes of the only kind that is large enough; nodes that nobody offers are not recommended."""
    answer = spinney("why", "train", "--from", snapshot, "--node-groups", groups, "--best", 9)
    assert "add 4 nodes of kind h100 (8 GPUs each)" in answer
    assert "nodes like" not in answer
    assert "kind t4" not in answer
    assert "kind cpu" not in answer


def test_no_more_nodes_than_the_group_has(snapshot: Path, groups: Path) -> None:
    """Two nodes of the small kind could be added and are enough; three that could not be are not recommended."""
    assert "add 1 node of kind t4 (4 GPUs each)" not in spinney(
        "why", "train", "--from", snapshot, "--node-groups", groups
    )
    answer = spinney("why", "serve", "--from", snapshot, "--node-groups", groups, "--best", 9)
    assert "add 2 nodes of kind t4 (4 GPUs each)" in answer


def test_simulate_says_what_would_start_each(snapshot: Path, groups: Path) -> None:
    """Each gang that waits has the nodes with which it would start; as data, with the objects."""
    assert "train would start: add 4 nodes of kind h100 (8 GPUs each)" in spinney(
        "simulate", snapshot, "--node-groups", groups
    )
    told = json.loads(spinney("simulate", snapshot, "--node-groups", groups, "-o", "json"))
    remedies = {each["gang"]: each["nodesToAdd"] for each in told["runs"][0]["pending"]}
    (train,) = (found for gang, found in remedies.items() if "train" in gang)
    assert train["price"]["nodes"] == 4
    assert {patch["create"]["metadata"]["labels"]["accelerator"] for patch in train["patches"]} == {"h100"}


def test_a_file_that_is_none_is_refused_with_its_field(snapshot: Path, tmp_path: Path) -> None:
    """The message names file and field."""
    file = tmp_path / "wrong.yaml"
    file.write_text("nodes: [{name: h100, count: many}]")
    answer = CliRunner().invoke(main, ["simulate", str(snapshot), "--node-groups", str(file)])
    assert answer.exit_code != 0
    assert "count" in answer.output
