"""``spinney up`` is a cluster for kubectl: it says how to reach it, serves, and stops on Ctrl-C."""

import asyncio
import os
import pwd
import signal
import stat
import sys
from pathlib import Path
from typing import NoReturn

import click
import pytest
from click.testing import CliRunner

from spinney.api.core import NODE, Node
from spinney.api.grove import POD_CLIQUE_SET
from spinney.cli import main
from spinney.cli.bodies.up import run
from spinney.cli.clusters.owning import claimed
from spinney.kube.client import Client
from spinney.kube.config import load_kubeconfig
from spinney.kube.errors import Invalid
from spinney.nodes import ClusterSpec
from spinney.operator.operator import Settings
from spinney.runtime import Runtime
from spinney.sim.embedded.stack import OUR_BACKENDS, EmbeddedCluster, StackOptions


async def test_it_serves_until_interrupted(tmp_path: Path) -> None:
    """It writes a private kubeconfig, serves the nodes asked for, and ends cleanly on Ctrl-C."""
    kubeconfig = tmp_path / "kubeconfig"
    command = [sys.executable, "-c", "from spinney.cli import main; main()", "up", "--nodes", "3x4"]
    process = await asyncio.create_subprocess_exec(
        *command, "--kubeconfig", str(kubeconfig), stdout=asyncio.subprocess.PIPE, env=os.environ
    )
    assert process.stdout is not None
    said = b""
    while b"kubectl get podcliquesets" not in said:
        line = await process.stdout.readline()
        assert line, said.decode()
        said += line

    assert str(kubeconfig) in said.decode()
    assert stat.S_IMODE(kubeconfig.stat().st_mode) == 0o600
    runtime = Runtime.system()
    client = Client(load_kubeconfig(kubeconfig, runtime=runtime), runtime)
    nodes = await client.list(NODE, type=Node)
    await client.transport.close()
    runtime.executor.close()
    assert [node.status.allocatable["nvidia.com/gpu"] for node in nodes.items] == ["4", "4", "4"]

    process.send_signal(signal.SIGINT)
    rest, _ = await process.communicate()
    assert process.returncode == 130
    assert b"stopped" in rest


@pytest.mark.parametrize("shape", ["8", "x8", "8x", "0x8", "eightx8"])
def test_a_malformed_shape_is_refused(shape: str) -> None:
    """A --nodes that is not NODESxGPUS is an error that says what it should look like."""
    answer = CliRunner().invoke(main, ["up", "--nodes", shape])

    assert answer.exit_code == 2
    assert "such as 32x8" in answer.output


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nodes: [{name: n, cout: 3}]", "nodes[0].cout: unknown key; did you mean 'count'?"),
        ("nods: [{name: n, count: 3}]", "nods: unknown key; did you mean 'nodes'?"),
    ],
)
def test_a_cluster_file_with_a_typo_names_the_field(text: str, said: str, tmp_path: Path) -> None:
    """A misspelt field of the cluster file is an error that names it, its line and the nearest word."""
    file = tmp_path / "cluster.yaml"
    file.write_text(text)

    answer = CliRunner().invoke(main, ["up", "-f", str(file)])

    assert answer.exit_code == 1
    assert f"{file}:1: {said}" in answer.output


async def test_what_is_applied_is_reviewed_by_the_operator() -> None:
    """A PodCliqueSet with a mistake is refused with the path of the field, over a real webhook."""
    runtime = Runtime.system()
    cluster = EmbeddedCluster(runtime)
    clique = {"name": "worker", "spec": {"roleName": "worker", "replicas": 2, "minAvailable": 3, "podSpec": {}}}
    manifest = {"metadata": {"name": "bad"}, "spec": {"replicas": 1, "template": {"cliques": [clique]}}}
    async with cluster.running(), cluster.reviewing():
        with pytest.raises(Invalid) as refused:
            await cluster.client.create(POD_CLIQUE_SET, manifest, "default")
    runtime.executor.close()

    assert "spec.template.cliques[0].spec.minAvailable" in str(refused.value)


def test_the_cluster_file_of_the_handbook_describes_a_cluster(tmp_path: Path) -> None:
    """The file that the documentation shows for ``-f`` is one."""
    page = (Path(__file__).parents[2] / "docs" / "embedded-cluster.md").read_text()
    file = tmp_path / "cluster.yaml"
    file.write_text(page.partition("$ cat > cluster.yaml <<'EOT'\n")[2].partition("\nEOT")[0])

    nodes = ClusterSpec.load(file).expanded()

    assert len(nodes) == 18
    assert nodes[15].labels["topology.kubernetes.io/rack"] == "rack-3"


async def test_what_a_part_says_that_cannot_start_reaches_the_user(tmp_path: Path) -> None:
    """The sentence of the part that failed is the error of the command, whatever ran around it."""
    options = StackOptions(operator=Settings(profiles=OUR_BACKENDS, mnnvl_enabled=True), compute_domains=False)

    with pytest.raises(click.ClickException) as failed:
        await run(options, port=0, kubeconfig=tmp_path / "kubeconfig")

    assert failed.value.message.startswith("network.autoMNNVLEnabled is on, and the cluster does not serve")
    assert "\n" not in failed.value.message


def test_a_second_cluster_takes_another_kubeconfig(tmp_path: Path) -> None:
    """Who comes second is told who has the file and gets one beside it; a file that was let go is free again."""
    wanted = tmp_path / "kubeconfig"
    with claimed(wanted) as first, claimed(wanted) as second:
        assert (first.path, first.owner) == (wanted, "")
        assert (second.path.name, second.owner) == ("kubeconfig-2", f"process {os.getpid()}")
    with claimed(wanted) as third:
        assert third.path == wanted


def test_a_kubeconfig_that_cannot_be_written_is_said_with_what_to_do(tmp_path: Path) -> None:
    """A home directory that is read-only, or a path below a file, is no fault of the program."""
    (tmp_path / "file").touch()
    answer = CliRunner().invoke(main, ["up", "--nodes", "1x1", "--kubeconfig", str(tmp_path / "file" / "kubeconfig")])
    assert answer.exit_code == 1
    assert "kubeconfig cannot be written (File exists); --kubeconfig names another file" in answer.output


def test_a_user_without_a_home_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a container a user may have no HOME and no entry in the passwd file."""

    def unknown(uid: int) -> NoReturn:
        raise KeyError(uid)

    for variable in ("HOME", "KUBECONFIG"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", unknown)
    up = CliRunner().invoke(main, ["up", "--nodes", "1x1"])
    assert "HOME is not set; --kubeconfig names another file" in up.output
    get = CliRunner().invoke(main, ["get", "gangs"])
    assert "no kubeconfig found at ~/.kube/config" in get.output
