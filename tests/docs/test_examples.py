"""Every example of a real situation is valid, and runs on an embedded cluster as its comment says."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from spinney.cli import main
from tests.cli.clusters import ServedCluster, served_cluster

EXAMPLES = sorted((Path(__file__).parents[2] / "examples" / "workloads").glob("*.yaml"))
PLACED_BY_OTHERS = {"migration-before.yaml"}
"""Examples whose pods another scheduler places, which the cluster of this test does not run."""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedCluster]:
    """A cluster of four nodes with eight GPUs each, over HTTP."""
    with served_cluster(tmp_path_factory.mktemp("examples")) as cluster:
        yield cluster


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_valid(example: Path) -> None:
    """Nothing is wrong with it, and nothing in it is of a kind that is not known."""
    answer = CliRunner().invoke(main, ["validate", "-f", str(example)])

    assert answer.exit_code == 0, answer.output
    assert "could not be checked" not in answer.output


@pytest.mark.parametrize(
    "example", [each for each in EXAMPLES if each.name not in PLACED_BY_OTHERS], ids=lambda path: path.stem
)
def test_an_example_runs(served: ServedCluster, example: Path) -> None:
    """Applied to an empty cluster, everything in it becomes ready."""
    try:
        answer = served.spinney("apply", "-f", str(example), "--wait", "--timeout", "60s")
        assert answer.exit_code == 0, answer.output
    finally:
        served.spinney("delete", "-f", str(example))
