"""How processes end when Kubernetes tells them to."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.clusters import served_cluster

PROCESSES = (("scheduler", "-v", "1"), ("coscheduler", "-v", "1"), ("grouper", "-v", "1"), ("operator",))


@pytest.mark.parametrize("arguments", PROCESSES, ids=lambda each: each[0])
def test_sigterm_is_a_clean_end(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    """SIGTERM, as the kubelet sends it, ends every process with 0: a pod that was told to go has not failed."""
    with served_cluster(tmp_path) as cluster:
        command = [sys.executable, "-c", "from spinney.cli import main; main()", *arguments]
        process = subprocess.Popen(
            [*command, "--kubeconfig", str(cluster.kubeconfig)], stderr=subprocess.PIPE, text=True
        )
        assert process.stderr is not None
        said = []
        for line in process.stderr:
            said.append(line)
            if "caches synced" in line:
                process.terminate()
        process.stderr.close()

        assert process.wait(timeout=60) == 0, "".join(said)


ONE_THAT_SIGNALS = """
import os, sys
class Signalling:
    def find_spec(self, name, path=None, target=None):
        if name == sys.argv[1]:
            os.kill(os.getpid(), int(sys.argv[2]))
sys.meta_path.insert(0, Signalling())
from spinney.cli import main
main(sys.argv[3:])
"""
"""Runs a command and sends itself a signal when a module is about to be loaded."""


def ended(tmp_path: Path, command: str, module: str, number: signal.Signals) -> tuple[int, str]:
    """Return how a process ends that gets a signal while it loads a module, and what it says."""
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
        "clusters: [{name: c, cluster: {server: 'http://127.0.0.1:9'}}]\n"
        "contexts: [{name: c, context: {cluster: c, user: u}}]\nusers: [{name: u, user: {}}]\n"
    )
    arguments = [sys.executable, "-c", ONE_THAT_SIGNALS, module, str(int(number)), command]
    process = subprocess.run(
        [*arguments, "--kubeconfig", str(kubeconfig)], capture_output=True, text=True, timeout=60, check=False
    )
    return process.returncode, process.stdout + process.stderr


@pytest.mark.parametrize(
    ("command", "module"),
    [
        *((name, f"spinney.cli.bodies.{name}") for name in ("scheduler", "coscheduler", "grouper", "operator")),
        ("dashboard", "spinney.cli.bodies.dashboard"),
        ("operator", "spinney.operator.operator"),
        ("scheduler", "spinney.cli.settings.session_process"),
        ("coscheduler", "spinney.cli.settings.coscheduler_process"),
    ],
)
def test_sigterm_while_it_is_loaded_is_a_clean_end(tmp_path: Path, command: str, module: str) -> None:
    """SIGTERM ends every process with 0 and without a word before it has come to run, too."""
    assert ended(tmp_path, command, module, signal.SIGTERM) == (0, "")


@pytest.mark.parametrize("module", ["spinney.cli.bodies.coscheduler", "spinney.cli.settings.coscheduler_process"])
def test_an_interrupt_while_it_is_loaded_is_told(tmp_path: Path, module: str) -> None:
    """Ctrl-C while a process is loaded ends it as shells expect of a command that was interrupted."""
    code, _ = ended(tmp_path, "coscheduler", module, signal.SIGINT)
    assert code == 128 + signal.SIGINT


def test_a_check_that_is_told_to_go_has_not_found_all_well(tmp_path: Path) -> None:
    """SIGTERM while a configuration is being checked does not end the command with 0."""
    arguments = ["spinney.cli.bodies.scheduler", str(int(signal.SIGTERM)), "scheduler", "--check"]
    process = subprocess.run([sys.executable, "-c", ONE_THAT_SIGNALS, *arguments], timeout=60, check=False)
    assert process.returncode == -signal.SIGTERM
