"""``spinney snapshot`` writes what scheduling reads, and commands read it back as if it were the cluster."""

import gzip
import re
import stat
from pathlib import Path

import pytest
from click.testing import CliRunner

from spinney.cli import main
from tests.cli.clusters import ServedCluster
from tests.cli.workloads import a_training_job, until_refused


def test_a_snapshot_answers_like_its_cluster(served: ServedCluster, tmp_path: Path) -> None:
    """The same question has the same answer, but for the time that went by; the file is private and without secrets."""
    served.call(lambda client: until_refused(client, a_training_job("waits", workers=3)))
    file = tmp_path / "cluster.json.gz"
    written = served.spinney("snapshot", "-o", str(file))

    assert "4 nodes, 3 pods" in written.output
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert b"s3cr3t" not in gzip.decompress(file.read_bytes())
    from_file = CliRunner().invoke(main, ["why", "waits-0", "--from", str(file)])
    assert _but_for_the_wait(from_file.output) == _but_for_the_wait(served.spinney("why", "waits-0").output)


def _but_for_the_wait(answer: str) -> str:
    """Return an answer without how long the gang has waited: the cluster is asked later than the snapshot was taken."""
    masked, waits = re.subn(r"has waited \w+", "has waited", answer)
    assert waits == 1
    return masked


def test_a_snapshot_goes_to_standard_output(
    served: ServedCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With ``-o -`` it is all that is printed there, and no file is called ``-``; what else is said is an error's."""
    monkeypatch.chdir(tmp_path)
    printed = served.spinney("snapshot", "-o", "-")

    assert printed.exit_code == 0
    (tmp_path / "cluster.json.gz").write_bytes(printed.stdout_bytes)
    assert "standard output: " in printed.stderr
    assert "4 nodes" in printed.stderr
    assert [each.name for each in tmp_path.iterdir()] == ["cluster.json.gz"]
    assert CliRunner().invoke(main, ["get", "nodes", "--from", "cluster.json.gz"]).exit_code == 0


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["record", "-"], "more than one file is written; name a directory"),
        (["up", "--kubeconfig", "-"], "which has what happens; name a file"),
        (["up", "--data-dir", "-"], "more than one file is written; name a directory"),
        (["replay", "trace", "--placements", "-"], "which has the report; name a file"),
    ],
)
def test_standard_output_is_refused_where_it_has_something_else(
    command: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A ``-`` is no file and no directory of that name."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "trace").touch()
    answer = CliRunner().invoke(main, command)

    assert answer.exit_code == 2
    assert said in " ".join(answer.output.split())
    assert [each.name for each in tmp_path.iterdir()] == ["trace"]


def test_a_directory_that_is_not_there_is_named(served: ServedCluster, tmp_path: Path) -> None:
    """A file that cannot be written is one sentence."""
    answer = served.spinney("snapshot", "-o", str(tmp_path / "no" / "file"))

    assert answer.exit_code == 1
    assert "cannot be written" in answer.output
