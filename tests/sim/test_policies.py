"""A policy in one file is tried on a snapshot, and what it changes is shown, run after run."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from spinney.cli import main
from spinney.sim import Cluster
from spinney.sim.policies import InvalidPolicy, plugins_in
from spinney.sim.snapshot_files import write_snapshot

POLICY = """
from spinney.scheduler import Plugin


class KeepFree(Plugin):
    name = "keep-free"

    def on_session_open(self, session):
        session.add_predicate_fn(self.allowed)

    def allowed(self, task, job, node):
        return "kept free" if node.name == "{node}" else None
"""


@pytest.fixture
def last_night(tmp_path: Path) -> Path:
    """A snapshot of two nodes and two gangs of a node each."""
    cluster = Cluster("2x8")
    cluster.gang("first", pods=1, gpus=8)
    cluster.gang("second", pods=1, gpus=8)
    file = tmp_path / "last-night.json.gz"
    write_snapshot(cluster.snapshot(), file)
    return file


def test_edit_and_run_again(last_night: Path, tmp_path: Path) -> None:
    """The loop of a scheduler author: an edit of the file changes the difference that the next run shows."""
    policy = tmp_path / "policy.py"

    def changes(node: str) -> str:
        policy.write_text(POLICY.format(node=node))
        answer = CliRunner().invoke(main, ["simulate", str(last_night), "--plugin", str(policy)])
        assert answer.exit_code == 0, answer.output
        return answer.output

    assert "default/second   1 placed on gpu-001   1 pending" in changes("gpu-001")
    assert "default/first    1 placed on gpu-000   1 placed on gpu-001" in changes("gpu-000")
    assert "both configurations decide the same" in changes("no-such-node")


def test_the_same_in_the_library(last_night: Path, tmp_path: Path) -> None:
    """Two clusters from one snapshot, one with the policy, are compared gang by gang."""
    policy = tmp_path / "policy.py"
    policy.write_text(POLICY.format(node="gpu-001"))
    before, after = Cluster.load(last_night), Cluster.load(last_night, plugins=plugins_in(policy))
    before.run()
    after.run()

    (difference,) = after.differences(before)
    assert difference.gang.name == "second"
    assert (difference.before, difference.after) == ("1 placed on gpu-001", "1 pending")
    assert before.differences(before) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x = (", "policy.py:1: '(' was never closed"),
        ("\n1 / 0", "policy.py:2: ZeroDivisionError: division by zero"),
        ("import nowhere_at_all", "policy.py:1: ModuleNotFoundError"),
        ("x = 1", "defines no class that extends spinney.scheduler.Plugin"),
        ("from spinney.scheduler import Plugin", "defines no class that extends"),
        ("from spinney.scheduler import Plugin\nclass P(Plugin):\n    name = ''", "P has no name"),
    ],
)
def test_a_file_without_a_policy_is_named(tmp_path: Path, text: str, expected: str) -> None:
    """What is wrong with the file is one sentence with its line."""
    path = tmp_path / "policy.py"
    path.write_text(text)

    with pytest.raises(InvalidPolicy) as refused:
        plugins_in(path)

    assert expected in str(refused.value)


def test_a_plugin_is_not_compared_with_two_configurations(last_night: Path, tmp_path: Path) -> None:
    """Two configurations and a plugin are more than one difference, and are refused."""
    config = tmp_path / "config.yaml"
    config.write_text("{}")
    twice = ["--config", str(config), "--config", str(config), "--plugin", str(config)]
    answer = CliRunner().invoke(main, ["simulate", str(last_night), *twice])

    assert answer.exit_code == 2
    assert "not with two" in answer.output
