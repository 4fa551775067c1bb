"""A real node, and the programs with which people use it."""

import json
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from spinney.api.struct import JSON

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "deploy" / "helm" / "spinney"
PREVIOUS_CHART = ROOT / "tests" / "data" / "charts" / "previous"
SYSTEM = "spinney-system"
TEAM = "team"
IMAGE = {"repository": "docker.io/library/spinney", "tag": "e2e"}
PATIENCE = "180s"


@dataclass(frozen=True)
class Machine:
    """A node, with kubectl and helm for it."""

    kubeconfig: Path
    kubectl_binary: Path
    helm_binary: str

    def kubectl(self, *arguments: str, given: str | None = None, fails: bool = False) -> str:
        """Run kubectl and return what it prints; ``fails`` says that it must."""
        return _run([str(self.kubectl_binary), "--kubeconfig", str(self.kubeconfig), *arguments], given, fails=fails)

    def helm(self, *arguments: str) -> str:
        """Run helm and return what it prints."""
        return _run([self.helm_binary, "--kubeconfig", str(self.kubeconfig), *arguments])

    def inside(self, *arguments: str) -> str:
        """Run a program in the namespaces of the node."""
        return _run([str(ROOT / "hack" / "real-node"), "run", *arguments])

    def get(self, *arguments: str) -> Any:
        """Return what kubectl gets, as data."""
        return json.loads(self.kubectl("get", *arguments, "--output", "json"))

    def apply(self, *objects: JSON) -> None:
        self.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", given=yaml.safe_dump_all(objects))

    def install(self, chart: Path, values: JSON) -> None:
        """Install or upgrade a chart, and wait until what it deploys is ready."""
        file = self.kubeconfig.with_name("values.yaml")
        file.write_text(yaml.safe_dump(values))
        self.helm("upgrade", "--install", "spinney", str(chart), "--namespace", SYSTEM, "--values", str(file))
        self.rolled_out()
        self.reviewed()

    def reviewed(self) -> None:
        """Wait until a write reaches the webhooks.

        A Service answers a moment after its pods are ready, and kube-proxy tells nobody when.
        """
        deadline = time.monotonic() + 60
        probe = {"apiVersion": "grove.io/v1alpha1", "kind": "PodCliqueSet", "metadata": {"name": "probe"}, "spec": {}}
        while True:
            said = self.kubectl(
                "create", "--dry-run=server", "--namespace", TEAM, "-f", "-", given=yaml.safe_dump(probe), fails=True
            )
            if "failed calling webhook" not in said:
                return
            assert time.monotonic() < deadline, said
            time.sleep(0.2)

    def rolled_out(self) -> None:
        """Wait until every deployment has exactly the replicas it wants, all ready, and those before are gone."""
        for name in self.kubectl("get", "deployments", "--namespace", SYSTEM, "--output", "name").split():
            self.kubectl("rollout", "status", name, "--namespace", SYSTEM, f"--timeout={PATIENCE}")
        for pod in self.get("pods", "--namespace", SYSTEM)["items"]:
            if "deletionTimestamp" in pod["metadata"]:
                self.wait(f"pod/{pod['metadata']['name']}", "delete", namespace=SYSTEM)

    def wait(self, what: str, condition: str, *more: str, namespace: str = TEAM) -> None:
        """Wait for a condition of an object, which need not be there yet, or of all that are selected."""
        steps = (condition,) if condition == "delete" else ("create", condition)
        for step in steps:
            self.kubectl("wait", what, f"--for={step}", "--namespace", namespace, f"--timeout={PATIENCE}", *more)

    def pods(self, name: str, namespace: str = TEAM) -> list[JSON]:
        """Return the pods of a PodCliqueSet that are not on their way out."""
        found = self.get("pods", "--namespace", namespace, "--selector", f"app.kubernetes.io/part-of={name}")["items"]
        return [each for each in found if "deletionTimestamp" not in each["metadata"]]

    def leader(self) -> tuple[str, int]:
        """Return the pod of the operator that leads, and how often the lease has changed hands."""
        spec = self.get("lease", "grove-operator-leader-election", "--namespace", SYSTEM)["spec"]
        return spec["holderIdentity"].rpartition("_")[0], spec.get("leaseTransitions", 0)

    def logs(self, process: str) -> list[JSON]:
        """Return what all replicas of a process have logged, line by line."""
        selector = f"app.kubernetes.io/name={process}"
        text = self.kubectl("logs", "--namespace", SYSTEM, "--selector", selector, "--tail=-1")
        return [json.loads(line) for line in text.splitlines() if line.startswith("{")]

    def names(self, *kinds: str) -> set[str]:
        """Return the names of all objects of some kinds, each with its kind and namespace."""
        items = self.get(",".join(kinds), "--all-namespaces")["items"]
        return {
            "/".join((each["kind"], each["metadata"].get("namespace", ""), each["metadata"]["name"])) for each in items
        }


def _run(command: Sequence[str], given: str | None = None, *, fails: bool = False) -> str:
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=False, timeout=300)
    assert (done.returncode != 0) is fails, f"{' '.join(command[:6])}: {done.stdout}{done.stderr}"
    return done.stderr if fails else done.stdout
