"""How processes end when Kubernetes tells them to."""

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
