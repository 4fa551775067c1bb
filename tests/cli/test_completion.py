"""Shells can complete commands, options and names, and kubectl finds the plugin."""

import os
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from click.testing import CliRunner

from spinney.api.core import NAMESPACE
from spinney.api.labels import ABOVE, GROUPED, TOP_OWNER
from spinney.api.podgang import POD_GANG
from spinney.cli import main
from spinney.kube.client import Client
from spinney.sim import Cluster
from spinney.sim.snapshots.files import write_snapshot
from tests.cli.clusters import ServedCluster
from tests.cli.workloads import a_training_job, as_yaml, until_running
from tests.cli.written import a_gang


def complete(*words: str, **variables: str) -> list[str]:
    """Return what bash would offer for the last of ``words``."""
    environment = (
        os.environ
        | variables
        | {
            "_SPINNEY_COMPLETE": "bash_complete",
            "COMP_WORDS": " ".join(words),
            "COMP_CWORD": str(len(words) - 1),
        }
    )
    script = "from spinney.cli import main; main(prog_name='spinney')"
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    return [line.partition(",")[2] for line in done.stdout.splitlines() if line]


def test_commands_and_options_are_completed() -> None:
    """The beginning of a command, or of an option of one, is completed."""
    assert complete("spinney", "si") == ["simulate"]
    assert "--context" in complete("spinney", "why", "--con")


def test_names_of_the_cluster_are_completed(served: ServedCluster) -> None:
    """What ``why`` and ``get`` take is completed with the names that are there: gangs, pods, nodes, contexts."""
    served.call(lambda client: until_running(client, a_training_job("runs", workers=1), 1))
    cluster = ["--kubeconfig", str(served.kubeconfig)]

    assert complete("spinney", "why", *cluster, "ru") == ["runs", "runs-0", "runs-0-worker"]
    assert complete("spinney", "why", *cluster, "gang/") == ["gang/runs-0"]
    (pod,) = complete("spinney", "why", *cluster, "pod/runs-0-w")
    assert pod.startswith("pod/runs-0-worker-")
    assert complete("spinney", "get", *cluster, "sets", "r") == ["runs"]
    assert complete("spinney", "plan", "defrag", *cluster, "--for", "r") == ["runs-0"]
    assert complete("spinney", "get", *cluster, "nodes", "gpu-00") == [f"gpu-00{index}" for index in range(4)]
    assert "default" in complete("spinney", "why", *cluster, "-n", "def")
    assert complete("spinney", "why", *cluster, "--context", "") == ["spinney"]


def test_a_name_that_comes_late_is_completed(served: ServedCluster) -> None:
    """Where there are more objects than are read at a time, those that begin so are found behind the others."""

    async def many(client: Client) -> None:
        for number in range(510):
            await client.create(NAMESPACE, {"metadata": {"name": f"a-{number:03d}"}})
        await client.create(NAMESPACE, {"metadata": {"name": "zoo"}})

    served.call(many)
    cluster = ["--kubeconfig", str(served.kubeconfig)]

    assert complete("spinney", "why", *cluster, "-n", "zo") == ["zoo"]
    assert len(complete("spinney", "why", *cluster, "-n", "a-")) == 200


def test_names_of_a_snapshot_are_completed(tmp_path: Path) -> None:
    """With ``--from`` the names are those in the file."""
    cluster = Cluster("2x4")
    cluster.gang("train", pods=1)
    write_snapshot(cluster.snapshot(), tmp_path / "s.json.gz")

    assert complete("spinney", "why", "--from", str(tmp_path / "s.json.gz"), "t") == ["train"]


def test_workloads_and_what_owns_them_are_completed(tmp_path: Path) -> None:
    """Their names are those that gangs say they were made for: Jobs need not be listed for it."""
    said = {TOP_OWNER: "kind: Job\nname: nightly-1\n", ABOVE: "CronJob/nightly"}
    (tmp_path / "c.yaml").write_text(as_yaml(a_gang("pg-1", labels={GROUPED: "owner"}, annotations=said)))
    why = ["spinney", "why", "--from", str(tmp_path / "c.yaml")]

    assert complete(*why, "n") == ["nightly", "nightly-1"]
    assert complete(*why, "job/") == ["job/nightly-1"]
    assert complete(*why, "cj/n") == ["cj/nightly"]
    assert complete(*why, "gang/") == ["gang/pg-1"]


def test_workloads_of_a_cluster_are_completed(served: ServedCluster) -> None:
    """``job/`` offers the Jobs that are gangs."""
    said = {TOP_OWNER: "kind: Job\nname: train\n"}
    gang = a_gang("pg-1", labels={GROUPED: "owner"}, annotations=said)
    served.call(lambda client: client.create(POD_GANG, gang, "default"))

    assert complete("spinney", "why", "--kubeconfig", str(served.kubeconfig), "jobs/") == ["jobs/train"]


@pytest.mark.parametrize("option", ["--kubeconfig", "--from"])
def test_another_cluster_is_not_asked_in_place_of_one_that_is_missing(served: ServedCluster, option: str) -> None:
    """What an option names and is not there is not the cluster that would be asked without the option."""
    served.call(lambda client: until_running(client, a_training_job("runs", workers=1), 1))
    usual = {"KUBECONFIG": str(served.kubeconfig)}

    assert complete("spinney", "why", "ru", **usual)
    assert complete("spinney", "why", option, "/nowhere/file", "ru", **usual) == []


def test_nothing_is_offered_where_nothing_can_be_asked() -> None:
    """Without a cluster, a file or a kind of that name pressing tab does nothing, not even complain."""
    nowhere = ["--kubeconfig", "/nowhere/kubeconfig"]

    assert complete("spinney", "why", *nowhere, "t") == []
    assert complete("spinney", "why", *nowhere, "--context", "") == []
    assert complete("spinney", "why", *nowhere, "gnag/") == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_for_each_shell_is_printed(shell: str) -> None:
    """The documented command prints a completion script."""
    answer = CliRunner().invoke(main, ["completion", shell])

    assert answer.exit_code == 0
    assert f"_SPINNEY_COMPLETE={shell}_complete" in answer.output


def test_kubectl_finds_the_plugin() -> None:
    """The package installs kubectl-spinney, which is how kubectl finds a plugin."""
    names = {entry.name: entry.value for entry in entry_points(group="console_scripts")}

    assert names["kubectl-spinney"] == names["spinney"] == "spinney.cli:main"
