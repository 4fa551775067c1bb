"""``spinney top`` draws the nodes of any cluster with the gangs on them."""

import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

from click.testing import CliRunner

from spinney.cli import main
from spinney.cli.bodies.top import scene
from spinney.cli.pictures.picture import summary
from spinney.sim import Cluster
from spinney.sim.snapshot_files import write_snapshot
from tests.cli.clusters import ServedCluster


def test_without_a_terminal_one_picture_is_printed(served: ServedCluster) -> None:
    """Racks, nodes and free GPUs of the cluster are drawn once."""
    answer = served.spinney("top")

    assert answer.exit_code == 0, answer.output
    assert "gpu-000 ········" in answer.output
    assert "rack-0" in answer.output


def test_gangs_of_any_family_are_drawn(tmp_path: Path) -> None:
    """A gang's pods fill the cells of their nodes, and the gang is listed below."""
    cluster = Cluster("2x4")
    cluster.gang("train", pods=2, gpus=4)
    cluster.step()
    file = tmp_path / "snapshot.json.gz"
    write_snapshot(cluster.snapshot(), file)
    output = CliRunner().invoke(main, ["top", "--from", str(file)]).output

    assert "gpu-001 AAAA" in output
    assert "A train" in output


def test_gangs_of_one_name_in_two_namespaces_are_two() -> None:
    """A gang is told apart by its namespace where gangs of several are shown."""
    cluster = Cluster("2x4")
    for namespace in ("blue", "green"):
        cluster.gang("train", pods=1, gpus=4, namespace=namespace)
    cluster.step()
    snapshot = cluster.snapshot()

    assert list(summary(scene(snapshot.nodes, snapshot.pods))) == ["blue/train", "green/train"]


def test_a_cluster_without_gpus_shows_its_cpu(tmp_path: Path) -> None:
    """Where no node has GPUs a cell is an eighth of a node's CPU."""
    cluster = Cluster("2x0")
    cluster.gang("web", pods=1, cpu="48")
    cluster.step()
    file = tmp_path / "snapshot.json.gz"
    write_snapshot(cluster.snapshot(), file)
    output = CliRunner().invoke(main, ["top", "--from", str(file)]).output

    assert "node-000 AAAA····" in output
    assert "node-001 ········" in output


def test_on_a_terminal_it_follows_until_interrupted(served: ServedCluster) -> None:
    """The live picture appears, and Ctrl-C ends it with the exit status shells expect."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-c", "from spinney.cli import main; main()", "top", "--kubeconfig"]
    process = subprocess.Popen([*command, str(served.kubeconfig)], stdout=theirs, stderr=theirs, env=os.environ)
    os.close(theirs)
    shown = b""
    while b"rack-1" not in shown:
        shown += os.read(ours, 65536)
    process.send_signal(signal.SIGINT)

    assert process.wait(timeout=60) == 130
    os.close(ours)
