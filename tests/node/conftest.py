"""The node of a test session: started, with the image of this checkout on it, and stopped at the end."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from .enforcing import enforced
from .machine import IMAGE, ROOT, SYSTEM, TEAM, Machine
from .workloads import prepared

_CANNOT = 3


@pytest.fixture(scope="session")
def machine() -> Iterator[Machine]:
    """A real node; SPINNEY_NODE_KEEP=1 leaves it running for the next session."""
    script = str(ROOT / "hack" / "real-node")
    able = subprocess.run([script, "check"], capture_output=True, text=True, check=False)
    if able.returncode == _CANNOT:
        pytest.skip(f"NO NODE: {able.stdout.strip()}")
    started = subprocess.run([script, "start"], stdout=subprocess.PIPE, text=True, check=True)
    kubeconfig = Path(started.stdout.strip())
    subprocess.run([script, "build-image", str(ROOT), f"spinney:{IMAGE['tag']}"], check=True)
    yield Machine(kubeconfig, kubeconfig.parents[1] / "bin" / "kubectl", _helm())
    if not os.environ.get("SPINNEY_NODE_KEEP"):
        subprocess.run([script, "stop"], check=True)


def _helm() -> str:
    found = os.environ.get("HELM") or shutil.which("helm")
    if found is not None:
        return found
    built = subprocess.run([str(ROOT / "hack" / "helm" / "build.sh")], stdout=subprocess.PIPE, text=True, check=True)
    return built.stdout.strip()


@pytest.fixture(scope="module")
def cluster(machine: Machine) -> Iterator[Machine]:
    """A node with the namespaces of an installation and of its users, both guarded, and nothing of Spinney's."""
    machine.apply(*prepared())
    with enforced(machine):
        yield machine
    if machine.kubectl("get", "crds", "--ignore-not-found", "podcliquesets.grove.io"):
        for kind in ("podcliquesets", "clustertopologybindings"):
            machine.kubectl("delete", kind, "--all", "--all-namespaces", "--ignore-not-found", "--timeout=120s")
    machine.helm("uninstall", "spinney", "--namespace", SYSTEM, "--ignore-not-found", "--wait")
    for kind in ("deployments", "clusterroles", "clusterrolebindings"):
        machine.kubectl("delete", kind, "--all-namespaces", "--selector", "app.kubernetes.io/part-of=spinney")
    for kind in ("validating", "mutating"):
        for name in machine.kubectl("get", f"{kind}webhookconfigurations", "--output", "name").split():
            machine.kubectl("wait", name, "--for=delete", "--timeout=120s")
    machine.kubectl("delete", "namespace", SYSTEM, TEAM, "--timeout=120s")
    machine.kubectl("delete", "crds", "--ignore-not-found", *GROVE)


GROVE = (
    "podcliquesets.grove.io",
    "podcliques.grove.io",
    "podcliquescalinggroups.grove.io",
    "clustertopologybindings.grove.io",
    "podgangs.scheduler.grove.io",
)
